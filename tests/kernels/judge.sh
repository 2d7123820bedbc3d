#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# judge: a service of the guest whose first process is systemd (sysroot.py): installs what the packages would, starts sonded's
# unit, lets it record, kills it, reloads, restarts and stops it, and prints what systemd, the kernel and sonde say of it, as
# sections on the second serial line (guest.py reads them). Judges nothing: test_systemd.py does.
export PATH=/usr/bin:/bin:/sbin HOME=/root
mkdir /run/bb
/bin/busybox --install -s /run/bb
PATH=$PATH:/run/bb
stty raw -echo </dev/ttyS1
exec >/dev/ttyS1 2>/dev/null
mount -t tracefs tracing /sys/kernel/tracing 2>/dev/null
store=/var/lib/sonde

. /etc/section.sh

main_pid() {
	systemctl show sonded -p MainPID --value
}

# COMMAND...: until it says yes; some minutes at most: the CPU is emulated
await() {
	n=0
	until "$@" || [ $((n += 1)) -gt 60 ]; do sleep 1; done
	[ $n -le 60 ]
}

records() {
	sonde status --json --store $store 2>/dev/null | tr -d ' \n' | grep -q '"name":"cpu","state":"running"'
}

has_samples() {
	[ "$(sonde sql --store $store --ndjson 'SELECT count(*) > 0 AS n FROM cpu_samples WHERE comm = '"'burn'" 2>/dev/null)" = '{"n":1}' ]
}

another_main() {
	now=$(main_pid)
	[ "$now" != 0 ] && [ "$now" != "$before" ] && records
}

accounts() {
	systemd-sysusers && systemd-tmpfiles --create /usr/lib/tmpfiles.d/sonde.conf && grep sonde /etc/passwd && ls -ld $store
}

# UNIT: of its processes: name, identity, rights.
rights() {
	for pid in $(cat "/sys/fs/cgroup$(systemctl show "$1" -p ControlGroup --value)/cgroup.procs"); do
		grep -E '^(Name|Uid|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/$pid/status | tr '\n\t' '  '
		echo
	done
}

# May its namespace write where it has nothing to write?
mounts() {
	grep -E ' / / | /usr | /proc/sys | /home ' /proc/$(main_pid)/mountinfo
}

record() {
	await records || return 1
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		/load/burn 500 1 >/dev/null
		! has_samples || return 0
	done
	return 1
}

given_up() {
	sonde logs --store $store | grep -q "will not be restarted"
}

# As the kernel comes, where that is stricter than others: what is said then?
refused() {
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ] || return 0
	systemctl start sonded && await given_up
	sonde status --store $store
	systemctl stop sonded
}

# Of the instance that sonde-scrape talks to.
scrape_rights() {
	unit=$(systemctl list-units 'sonde-pprof@*' --plain --no-legend | cut -d' ' -f1 | head -n 1)
	[ -n "$unit" ] && rights "$unit"
}

# A receiver on loopback, and sonde-push's unit with a password as its comment says.
push_begin() {
	mkdir -p /etc/systemd/system/sonde-push.service.d
	echo guest-s3cret >/etc/sonde/password
	chmod 600 /etc/sonde/password
	printf '[Service]\nLoadCredential=password:/etc/sonde/password\n' >/etc/systemd/system/sonde-push.service.d/password.conf
	printf '[export.guest]\nurl = http://127.0.0.1:9000\nuser = guest\npassword-file = /run/credentials/sonde-push.service/password\nevery = 5s\n' >/etc/sonde/export.conf
	echo 'tables = cpu_samples, cost' >>/etc/sonde/export.conf
	nc -ll -p 9000 -e /etc/receiver.sh >/dev/null 2>&1 &
	systemctl daemon-reload
	systemctl start sonde-push
}

# What has settled is a minute old, and this machine is slow.
pushed() {
	for i in 1 2 3 4 5 6; do
		! await test -s /run/received || break
	done
	cat /run/received
}

kill_main() {
	before=$(main_pid)
	systemctl kill -s KILL --kill-who=main sonded
	await another_main
}

section accounts accounts
section reload-units systemctl daemon-reload
section paranoia cat /proc/sys/kernel/perf_event_paranoid
section refused refused
section sysctl sysctl -p /usr/lib/sysctl.d/60-sonde.conf
mkdir -p /etc/sonde
printf '[record]\nscrape = on\n[limits]\ncpu = 0\n' >/etc/sonde/sonde.conf # what an emulated CPU takes is above any limit
section scrape-start systemctl start sonde-pprof.socket
section start systemctl start sonded
section show systemctl show sonded -p ActiveState -p SubState -p StatusText -p User -p NRestarts
section record record
record_ended=$rc
section logs sonde logs --store $store
section journal journalctl -u sonded --no-pager -o cat
[ "$record_ended" = 0 ] || { section bye dmesg -r; poweroff -f; } # what follows would only wait for it
section rights rights sonded
section mounts mounts
section status sonde status --json --store $store
section push-start push_begin
section pushed pushed
section scrape-rights scrape_rights
section push-show systemctl show sonde-push -p ActiveState -p SubState -p NRestarts
section push-rights rights sonde-push
section push-status /usr/libexec/sonde/sonde-push --status --store $store --state /var/lib/private/sonde-push
section push-journal journalctl -u sonde-push -u 'sonde-pprof@*' --no-pager -o cat
section push-stop systemctl stop sonde-push
section reload systemctl reload sonded
section killed kill_main
section restarts systemctl show sonded -p NRestarts -p ActiveState
section restart systemctl restart sonded
section again await records
section stop systemctl stop sonded
section stopped systemctl show sonded -p ActiveState -p Result -p ExecMainStatus
section left sh -c "ps -o pid,comm | grep sonde | grep -v grep || true"
section files ls -ln $store
section runs sonde sql --store $store --ndjson "SELECT state, family FROM runs ORDER BY from_ns"
section journal-end journalctl -u sonded --no-pager -o cat -n 30
section bye dmesg -r
sync
poweroff -f
