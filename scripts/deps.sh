#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# deps: install, from Debian's packages, what is missing to do one of these:
#   build   make the programs                      test    the everyday tests
#   docker  the tests inside real containers       fresh   the test on a new, empty Debian
#   page    what drives a browser for the tests of the flame graph page: Node, and two packages from npm, pinned with hashes
#   live    the servers and compilers whose stacks are looked at
#   package what packages, and what tries the packages on new systems
#   export  the engines that sonde-export feeds
#   bench   the peers that the benches compare with  kernels  the tests on other kernels, in qemu
# Usage: scripts/deps.sh SET...     Says nothing and asks for nothing where all is there already. Exit 1: something
# is missing and could not be installed; the last line names it.
set -eu

build="ca-certificates make gcc libc6-dev pkg-config clang bpftool libbpf-dev libelf-dev libdw-dev libsqlite3-dev
libjansson-dev libinih-dev zlib1g-dev libzstd-dev liblzma-dev libseccomp-dev libiberty-dev uthash-dev libpcap-dev libmicrohttpd-dev"
test="libcmocka-dev clang-format python3 libpython3-dev python3-pytest python3-pytest-xdist python3-jsonschema g++ sqlite3 linux-perf protobuf-compiler libclang-rt-14-dev llvm dwz mandoc
musl-tools php8.2-cli ruby chromium debuginfod iproute2 jq binutils gdb strace util-linux git procps
file zsh fish tmux less sysstat systemd"
docker="docker.io busybox-static podman crun runc"
fresh="debootstrap"
package="libbz2-dev debhelper lintian debootstrap debian-archive-keyring busybox-static musl-tools xz-utils binutils podman crun runc python3-yaml"
kernels="qemu-system-x86 busybox-static debian-archive-keyring dmsetup e2fsprogs mdadm lvm2 xfsprogs btrfs-progs"
page="chromium"
live="fio rsync iptables nginx-core haproxy python3-pymysql gunicorn redis-server redis-tools postgresql-15 mariadb-server sysbench wrk golang-1.19-go tcpdump tshark nghttp2-client memcached
nats-server python3-cassandra mosquitto mosquitto-clients dnsmasq-base clickhouse-server clickhouse-client
rabbitmq-server python3-pika kcat python3-grpcio php8.2-fpm php8.2-mysql php8.2-opcache php8.2-dev python3-psycopg2 python3-pymysql python3-numpy
openssl libssl-dev openssh-server python3-pymongo zookeeper python3-kazoo python3-pip"
export="prometheus clickhouse-server libcurl4"
bench="valgrind fio linux-perf bpftrace bpftool procps libbpf-tools redis-server redis-tools libssl-dev openssl"

# A toolchain on the PATH is as good as Debian's.
command -v go >/dev/null 2>&1 || test="$test golang-go"
command -v rustc >/dev/null 2>&1 || test="$test rustc"
command -v node >/dev/null 2>&1 || live="$live nodejs"
command -v npm >/dev/null 2>&1 || page="$page nodejs npm"
command -v javac >/dev/null 2>&1 || test="$test openjdk-17-jdk-headless"

wanted=
npm=
for set in "$@"; do
	case $set in
	build) wanted="$wanted $build" ;;
	test) wanted="$wanted $build $test"; [ -n "$npm" ] || npm=try ;;
	docker) wanted="$wanted $docker" ;;
	fresh) wanted="$wanted $fresh" ;;
	page) wanted="$wanted $page" npm=must ;;
	live) wanted="$wanted $test $live" ;;
	kernels) wanted="$wanted $kernels" ;;
	package) wanted="$wanted $build $package" ;;
	export) wanted="$wanted $test $export" ;;
	bench) wanted="$wanted $build $bench" ;;
	*) echo "deps: no set called '$set' (build, test, page, docker, live, fresh, kernels, bench, package, export)" >&2; exit 2 ;;
	esac
done

missing=
for package in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)
	[ "$state" = installed ] || missing="$missing $package"
done

# What drives the browser comes from npm, where there is npm: into build/node, by the hashes of the lock file, running
# nothing of it. Without it the tests of the page are skipped.
node_packages() {
	from=$(dirname "$0")/../tests/e2e/node
	to=$(dirname "$0")/../build/node
	if cmp -s "$from/package-lock.json" "$to/package-lock.json" && [ -d "$to/node_modules/playwright-core" ]; then
		return 0
	fi
	mkdir -p "$to"
	cp "$from/package.json" "$from/package-lock.json" "$to/"
	if command -v npm >/dev/null 2>&1 && (cd "$to" && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 </dev/null); then
		return 0
	fi
	rm -f "$to/package-lock.json"
	echo "deps: could not bring playwright-core and axe-core from npm: the tests of the flame graph page are skipped" >&2
	[ "$npm" != must ]
}

if [ -z "$missing" ]; then
	[ -z "$npm" ] || node_packages
	exit
fi

as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null 2>&1 || { echo "deps: not root, no sudo; missing:$missing" >&2; exit 1; }
	as_root=sudo
fi
echo "deps: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
	# shellcheck disable=SC2086
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null
}
if ! { install update && install install -y --no-install-recommends $missing; }; then
	tail -n 15 "$log" >&2
	echo "deps: could not install:$missing" >&2
	exit 1
fi
[ -z "$npm" ] || node_packages
