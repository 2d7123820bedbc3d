#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# receiver: in the guest of test_systemd.py in the place of ClickHouse: takes one request, notes its first line and who sent it, says that it took it.
n=0
IFS= read -r first
while IFS= read -r line; do
	line=${line%?} # its carriage return
	case $line in
	"") break ;;
	Content-Length:*) n=${line#*: } ;;
	Authorization:*) who=$line ;;
	esac
done
head -c "$n" >/dev/null
echo "${first%?} $who" >>/run/received
printf 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
