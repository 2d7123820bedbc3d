#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# guest: the first process of the booted kernel. Runs sonde's programs on workloads, step by step, and prints what they
# say as sections on the second serial line (guest.py reads them); at the end the machine is switched off. Judges
# nothing: that is done outside, by what the workloads say that they did.
#   words of the kernel's command line: seconds=N (length of each workload), steps=A,B (only these)
export PATH=/sonde:/load:/usr/bin:/bin HOME=/run
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev 2>/dev/null
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tracefs tracing /sys/kernel/tracing
stty raw -echo </dev/ttyS1
exec >/dev/ttyS1 2>/dev/console

seconds=4 steps=
for word in $(cat /proc/cmdline); do
	case $word in
	seconds=*) seconds=${word#*=} ;;
	steps=*) steps=,${word#*=}, ;;
	esac
done
hz=499

. /etc/section.sh

# The rest of a step is only run where it is asked for.
step() {
	[ -z "$steps" ] && return 0
	case $steps in *,$1,*) return 0 ;; esac
	return 1
}

# A step that takes long: only where it is named.
asked() {
	[ -n "$steps" ] && step "$1"
}

# The indexes are made once: an emulated CPU takes long for them. Steps before warm_all do without.
warm() {
	[ -d "$1" ] || [ ! -d /run/store-warm ] || { mkdir "$1" && cp -r /run/store-warm/images "$1/"; }
}

# STORE OPTIONS...: start sonde-cpu, or $program; returns once it samples. Its messages are read from descriptor 5.
capture_begin() {
	store=/run/store-$1
	shift
	warm "$store"
	rm -f /run/progress /run/messages
	mkfifo /run/progress /run/messages
	${program:-sonde-cpu --freq $hz} --store "$store" --bucket 1s --progress-fd 3 "$@" 3>/run/progress 2>/run/messages &
	cpu=$!
	exec 4</run/progress 5</run/messages
	while read -r line <&4; do
		case $line in *'"ready"'*) return 0 ;; esac
	done
	cat <&5 >&2
	return 1
}

# Wait for a message of sonde-cpu.
capture_says() {
	while read -r line <&5; do
		echo "$line" >&2
		case $line in *"$1"*) return 0 ;; esac
	done
	return 1
}

# End it; prints its last word, a JSON object.
capture_end() {
	kill -TERM $cpu
	while read -r line <&4; do
		case $line in *'"done"'*) echo "$line" ;; esac
	done
	cat <&5 >&2
	wait $cpu
	rc=$?
	exec 4<&- 5<&-
	return $rc
}

ask() {
	sonde sql --store "/run/store-$1" --ndjson "$2"
}

# --- what the host is said to offer

capabilities() {
	section kernel uname -r
	section check sonde-cpu --check --json --store /run/store-none
	section doctor sonde doctor --json --store /run/store-none
	section maps-check sonde-maps --check --json
}

# --- every program once, or until its tables were there

programs=$(ls -d /load/* /usr/bin/xz | grep -Evc '/load/(waits|connstorm|thrash|scripts)') # the first has no time on a CPU to be seen by

warm_run() {
	for i in 1 2 3 4 5; do
		sonde record --store /run/store-warm -q -F $hz -- sh -c 'waits run sleep:1:20:2 >/dev/null
			for p in shares shares-cpp shares-go onecall; do [ ! -e /load/$p ] || $p 0.2; done; burn 200 2
			/usr/bin/xz -0 -c -k /init >/dev/null' || return 1
		ready=$(ask warm "SELECT count(DISTINCT executable) AS n FROM unwinding \
			WHERE complete AND (executable GLOB '/load/[^w]*' OR executable = '/usr/bin/xz')")
		[ "$ready" != "{\"n\":$programs}" ] || return 0
	done
	echo "after $i times: of $programs programs $ready have complete stacks" >&2
}

warm_all() {
	section warm warm_run
}

# --- shares of known chains, a system call's path, a short process's arguments

# A program of Debian's own, without frame pointers, for so many seconds.
pack() {
	timeout "$1" /usr/bin/xz -1 -c -k /load/* /load/* /load/* /load/* /load/* /load/* >/dev/null
}

shares_run() {
	capture_begin shares || return 1
	shares "$seconds" &
	one=$!
	shares-go "$seconds"
	wait $one
	onecall "$seconds" &
	one=$!
	shares-cpp "$seconds"
	wait $one
	pack "$seconds"
	burn 300 1 --note=brief
	capture_end
}

shares_all() {
	section shares shares_run
	section shares-stacks ask shares "SELECT p.pid, p.comm, s.folded, sum(c.samples) AS samples, sum(c.cpu_ns) AS cpu_ns \
		FROM cpu_samples c JOIN processes p ON p.id = c.process_id JOIN stacks s ON s.id = c.stack_id \
		WHERE p.comm LIKE 'shares%' OR p.comm IN ('onecall', 'burn') GROUP BY p.id, s.folded"
	section shares-sums ask shares "SELECT (SELECT sum(samples) FROM cpu_samples) AS stored, \
		coalesce((SELECT sum(lost) FROM loss WHERE reason <> 'maps'), 0) AS lost"
	section shares-processes ask shares "SELECT pid, comm, exe, args, cgroup FROM processes"
	section shares-top sonde stacks --store /run/store-shares --json -n 30
	section shares-cost ask shares "SELECT program, sum(cpu_ns) AS cpu_ns, sum(runs) AS runs FROM cost GROUP BY program"
	section shares-unwinding ask shares "SELECT executable, module, reason, complete, samples FROM unwinding"
	section status sonde status --store /run/store-shares --json
}

# --- one process explained

explain() {
	shares 60 >/dev/null &
	explained=$!
	sonde doctor --pid $explained --json --store /run/store-shares
	rc=$?
	kill $explained
	return $rc
}

# --- narrowed in the kernel: a command with its children, a cgroup, a name

narrow_run() {
	burn 400 1 outside &
	other=$!
	warm /run/store-command
	sonde record --store /run/store-command -F $hz --json -- sh -c 'burn 400 1 inside & burn 400 1 inside; wait'
	wait $other
}

cgroup_run() {
	mkdir -p /sys/fs/cgroup/top/below
	capture_begin cgroup --cgroup /top || return 1
	burn 400 1 outside &
	other=$!
	sh -c 'echo $$ >/sys/fs/cgroup/top/below/cgroup.procs; exec burn 400 1 inside'
	wait $other
	capture_end
}

name_run() {
	ln -sf /load/burn /run/renamed
	capture_begin name --comm renamed || return 1
	burn 400 1 outside &
	other=$!
	/run/renamed 400 1 inside
	wait $other
	capture_end
}

narrow_all() {
	section command narrow_run
	section command-processes ask command "SELECT p.comm, p.args, sum(c.samples) AS samples, sum(c.cpu_ns) AS cpu_ns \
		FROM cpu_samples c JOIN processes p ON p.id = c.process_id GROUP BY p.id"
	for kind in cgroup name; do
		section $kind ${kind}_run
		section $kind-processes ask $kind "SELECT p.comm, p.args, sum(c.samples) AS samples, sum(c.cpu_ns) AS cpu_ns \
			FROM cpu_samples c JOIN processes p ON p.id = c.process_id GROUP BY p.id"
	done
}

# --- a CPU goes and comes back while we record: slowly, and faster than anybody looks

cpu_switch() {
	echo "$1" >/sys/devices/system/cpu/cpu1/online
}

hotplug_run() {
	capture_begin hotplug --verbose || return 1
	taskset 2 burn 500 1 before
	cpu_switch 0 || return 1
	capture_says "CPU 1 went offline" || return 1
	burn 500 1 without
	cpu_switch 1 || return 1
	capture_says "CPU 1 came online" || return 1
	taskset 2 burn 500 1 after
	cpu_switch 0 && cpu_switch 1 || return 1
	capture_says "CPU 1 came online" || return 1
	taskset 2 burn 500 1 again
	capture_end
}

hotplug_all() {
	if [ ! -w /sys/devices/system/cpu/cpu1/online ]; then
		section hotplug-missing echo "this kernel cannot take CPU 1 offline"
		return
	fi
	section hotplug hotplug_run
	section hotplug-processes ask hotplug "SELECT p.comm, p.args, s.folded, sum(c.samples) AS samples, sum(c.cpu_ns) AS cpu_ns \
		FROM cpu_samples c JOIN processes p ON p.id = c.process_id JOIN stacks s ON s.id = c.stack_id \
		WHERE p.comm = 'burn' GROUP BY p.id, s.folded"
	section hotplug-sums ask hotplug "SELECT (SELECT sum(samples) FROM cpu_samples) AS stored, \
		coalesce((SELECT sum(lost) FROM loss WHERE reason <> 'maps'), 0) AS lost"
}

# --- waits of planned kinds

# NAME OPTIONS...: ends with what the workload and the loader say; $meanwhile is run beside the workload
offcpu_run() {
	program=sonde-offcpu
	capture_begin "$@" --stack-rate 100000
	rc=$?
	program=
	[ $rc = 0 ] || return 1
	sleep 1000 &
	sleeper=$!
	$meanwhile &
	beside=$!
	waits run sleep:1:200:2 futex:1:200:2 pipe:1:200:2 poll:1:200:2 stop:1:20:5
	sh -c 'sleep 0.3; exec sleep 0.5'
	rm -f /run/beside
	wait $beside
	kill $sleeper
	capture_end
}

# CPU 1 comes and goes, threads with it, until /run/beside is gone; how often is left in /run/switched.
cpu_comes_and_goes() {
	n=0
	while [ -e /run/beside ]; do
		cpu_switch 0 && sleep 0.1 && cpu_switch 1 && n=$((n + 1))
		sleep 0.1
	done
	echo $n >/run/switched
}

# Hundredths of a second since the start, those asleep too.
uptime_cs() {
	up=$(cut -d' ' -f1 /proc/uptime)
	echo "${up%.*}${up#*.}"
}

# The wall clock is set ahead and back, and the machine sleeps, if it can, until it is woken from outside (guest.py); what it
# said is in /run/slept, with the hundredths of a second that this took.
clock_is_set_and_we_sleep() {
	sleep 1
	for by in 3600 -7200 3600; do
		date -s "@$(($(date +%s) + by))"
		sleep 0.3
	done
	before=$(uptime_cs)
	echo mem >/sys/power/state && echo "slept $(($(uptime_cs) - before))"
} >/run/slept 2>&1

# The wall clock does not tell how long this took.
offcpu_clock() {
	cut -d' ' -f1 /proc/uptime >/run/uptimes
	offcpu_run offcpu-clock
	rc=$?
	cut -d' ' -f1 /proc/uptime >>/run/uptimes
	return $rc
}

offcpu_told() {
	section $1-totals ask $1 "SELECT tid, comm, thread, state, reason, sum(count) AS count, sum(total_ns) AS ns, \
		max(max_ns) AS max_ns FROM wait_totals WHERE comm IN ('waits', 'sleep') GROUP BY 1, 2, 3, 4, 5"
	section $1-stacks ask $1 "SELECT w.tid, sum(w.count) AS count, sum(w.total_ns) AS ns FROM waits w \
		JOIN stacks k ON k.id = w.stack_id WHERE w.comm = 'waits' AND k.folded LIKE '%;way_a;%' GROUP BY 1"
	section $1-wakers ask $1 "SELECT tid, by_thread, context, sum(count) AS count FROM wakers \
		WHERE comm = 'waits' GROUP BY 1, 2, 3"
}

offcpu_all() {
	section offcpu-check sonde-offcpu --check --json
	meanwhile=true
	section offcpu offcpu_run offcpu
	offcpu_told offcpu
	section offcpu-plain offcpu_run offcpu-plain --tracepoints plain
	offcpu_told offcpu-plain
	meanwhile=clock_is_set_and_we_sleep
	section offcpu-clock offcpu_clock
	section offcpu-clock-slept cat /run/slept
	section offcpu-clock-uptimes cat /run/uptimes
	offcpu_told offcpu-clock
}

cpus_all() {
	if [ ! -w /sys/devices/system/cpu/cpu1/online ]; then
		section offcpu-cpus-missing echo "this kernel cannot take CPU 1 offline"
		return
	fi
	meanwhile=cpu_comes_and_goes
	touch /run/beside
	section offcpu-cpus offcpu_run offcpu-cpus
	section offcpu-cpus-switched cat /run/switched
	offcpu_told offcpu-cpus
}

# --- connections, of a program that knows them

net_run() {
	program=sonde-net
	capture_begin net
	rc=$?
	program=
	[ $rc = 0 ] || return 1
	ip link set lo up
	mkfifo /run/go
	connstorm 300 0 20 </run/go &
	exec 6>/run/go
	sleep 4
	echo >&6
	exec 6>&-
	wait $!
	capture_end
}

# Where sonde-maps stands: in epoll_wait(2), on its socket to sonde-net among others.
pstack_run() {
	program=sonde-net
	capture_begin pstack
	rc=$?
	program=
	[ $rc = 0 ] || return 1
	sonde pstack --store /run/store-pstack --json
	rc=$?
	capture_end >&2
	return $rc
}

net_all() {
	section net-check sonde-net --check --json
	section net net_run
	section net-flows ask net "SELECT side, owner, sum(attempts) AS attempts, sum(opened) AS opened, sum(closed) AS closed, \
		sum(tx_bytes) AS tx, sum(rx_bytes) AS rx, max(open_now) AS open_now, min(peer_pid) AS peer FROM flows \
		WHERE comm = 'connstorm' GROUP BY 1, 2"
	section net-kernel ask net "SELECT sum(active_opens) AS opens, sum(seen_attempts) AS seen FROM netns_stats"
}

# --- bytes that a program moves on its sockets, which knows how many

l7_run() {
	program=sonde-l7
	capture_begin l7
	rc=$?
	program=
	[ $rc = 0 ] || return 1
	ip link set lo up
	mkfifo /run/go-l7
	connstorm 300 0 20 </run/go-l7 &
	exec 6>/run/go-l7
	sleep 4
	echo >&6
	exec 6>&-
	wait $!
	capture_end
}

l7_all() {
	section l7-check sonde-l7 --check --json
	sonde-l7 --check -v 2>&1 | grep -v "CO-RE" | tail -c 6000
	section l7 l7_run
	section l7-bytes ask l7 "SELECT side, sum(seen) AS seen, sum(parsed + skipped + blind) AS told FROM request_bytes WHERE comm = 'connstorm' GROUP BY 1"
}

# --- a cgroup that meets its limit and is removed at once, then a host without memory; who held it, the kernel knows

host_run() {
	program=sonde-host
	capture_begin host
	rc=$?
	program=
	[ $rc = 0 ] || return 1
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/hog
	echo 32M >/sys/fs/cgroup/hog/memory.max
	sh -c 'echo 0 >/sys/fs/cgroup/hog/cgroup.procs; tail /dev/zero; exit $?'
	echo "hog ended with $?"
	rmdir /sys/fs/cgroup/hog
	tail /dev/zero
	echo "ended with $?"
	sleep 3
	capture_end
}

host_all() {
	section host-check sonde-host --check --json
	section host host_run
	section host-oom sonde oom --store /run/store-host --json
	section host-events sonde events --store /run/store-host --all --json
	section host-hog ask host "SELECT sum(oom_kills) AS oom_kills, sum(user_us + system_us) AS cpu_us FROM cgroup_stats WHERE cgroup = '/hog'"
}

# --- frames of a script: in samples, and in waits

python="python3.11 -S -E /load/scripts.py"

# Until its tables were there.
scripts_warm() {
	for i in 1 2 3 4 5; do
		sonde record --store /run/store-warm -q -F $hz -- $python 2 >/dev/null || return 1
		case $(ask warm "SELECT count(*) AS n FROM frames WHERE runtime = 'python'") in *:0}) ;; *) return 0 ;; esac
	done
	return 1
}

scripts_run() {
	scripts_warm || return 1
	capture_begin scripts || return 1
	$python "$seconds"
	capture_end
	rc=$?
	program=sonde-offcpu
	capture_begin scripts-waits --stack-rate 100000 || return 1
	program=
	$python 0.1
	capture_end && return $rc
}

scripts_all() {
	section scripts scripts_run
	section scripts-stacks ask scripts "SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN processes p ON p.id = c.process_id \
		JOIN stacks s ON s.id = c.stack_id WHERE p.comm LIKE 'python%' GROUP BY 1"
	section scripts-waits ask scripts-waits "SELECT k.folded, sum(w.count) AS n FROM waits w JOIN stacks k ON k.id = w.stack_id \
		WHERE w.comm LIKE 'python%' GROUP BY 1"
}

families_all() {
	for family in cpu offcpu net l7 host mem disk probe; do
		# "families" alone: all of them; with one of their names: that one
		case $steps in *,family-*) step family-$family || continue ;; esac
		section check-$family sonde-$family --check --json
	done
}

# --- probes of each kind, on programs that know what they did

# Python's own account of its collections is the judge of the USDT probe; it ends without those of its end.
probed_python="
import gc, posix, sys
for i in range(9): sys.setrecursionlimit(5000 + i % 3)
for i in range(30): gc.collect(i % 3)
gc.disable()
print('{\"collections\":', str([s['collections'] for s in gc.get_stats()]) + '}', flush=True)
posix._exit(0)"

probe_run() {
	program=sonde-probe
	capture_begin probe --probe "signals=tracepoint:signal:signal_generate(sig, comm) sig==28 by sig" \
		--probe "folders=syscall:mkdir(path=str \$1) path~'/tmp/probe' by path,ret" \
		--probe "limits=func:/usr/bin/python3.11:Py_SetRecursionLimit(n=int32 \$1) n>=5000 by n" \
		--probe "collections=usdt:/usr/bin/python3.11:python:gc__start by arg1" \
		--probe "wholes=func:/usr/bin/python3.11:Py_SetRecursionLimit%return(n=int32 \$1) n>=5000 by n" \
		--probe "passes=latency from usdt:/usr/bin/python3.11:gc__start(generation=int32 \$1) to usdt:/usr/bin/python3.11:gc__done by tid by generation" \
		--probe "interrupts=latency from tracepoint:irq:softirq_entry to tracepoint:irq:softirq_exit by cpu,vec rate 0"
	rc=$?
	program=
	[ $rc = 0 ] || return 1
	sleep 1000 &
	sleeper=$!
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do kill -WINCH $sleeper; done
	kill $sleeper
	for i in 1 2 3 4 5 1 1; do mkdir /tmp/probe$i; done
	python3.11 -S -E -c "$probed_python"
	capture_end
}

probe_all() {
	section probe probe_run
	section probe-sums ask probe "SELECT probe, key, sum(hits) AS hits, sum(errors) AS errors FROM probe_stats GROUP BY 1, 2"
	section probe-events ask probe "SELECT probe, args, sum(weight) AS n FROM probe_events GROUP BY 1, 2"
	section probe-lost ask probe "SELECT probe, sum(lost + unpaired) AS lost, sum(off_us) AS off_us FROM probes GROUP BY 1"
}

# A writer in memory that cannot be given up, above its cgroup's memory.high: the kernel makes it sleep. Its first CPU alone, as
# PSI weighs CPUs by how busy they are.
memory_high() {
	local group=/sys/fs/cgroup/tight
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	echo 8M >$group/memory.high
	program=sonde-mem capture_begin memory || return 1
	busybox sh -c "echo 0 >$group/cgroup.procs; exec taskset 1 dd if=/dev/zero of=/tmp/big bs=64k count=$1"
	cat $group/memory.pressure
	sleep 3
	capture_end
}

memory_all() {
	section memory-high memory_high 192
	section memory-told sonde sql --store /run/store-memory --json "SELECT comm, sum(n) AS n, sum(value) AS ns,
		sum(CASE WHEN function = '[no stack]' THEN value ELSE 0 END) AS bare FROM amounts WHERE type = 'memwait' GROUP BY comm"
}

# All pages that are in use, the kernel's too: what a program holds, and what of it is gone after its end.
pages_run() {
	program="sonde-mem --pages on --interval 2s" capture_begin pages || return 1
	/load/thrash 48 1 12 &
	sleep 6
	ask pages "SELECT 1 AS one" >/dev/null
	wait $!
	sleep 4
	capture_end
}

pages_all() {
	section pages pages_run
	section pages-most ask pages "SELECT comm, function, max(value) AS most FROM amounts WHERE type = 'pages' AND comm = 'thrash' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 4"
	section pages-last ask pages "SELECT a.comm, a.function, a.value FROM amounts a JOIN (SELECT series_id, max(ts) AS ts FROM amounts WHERE type = 'pages'
		GROUP BY 1) l USING (series_id, ts) WHERE a.type = 'pages' AND a.comm = 'thrash' AND a.value"
}

# Memory that comes back from swap, in a cgroup that has half of what its program wants: from a device that takes 2 ms a request, and
# from one in memory, where nobody sleeps. Its first CPU alone, as above.
modules_take() {
	local i order
	order=$(cat /lib/modules/order) || return 1
	for i in $order; do [ -d /sys/module/$i ] || insmod /lib/modules/$i || return 1; done
}

swap_make() {
	modules_take || return 1
	[ -e /dev/loop6 ] || mknod /dev/loop6 b 7 6
	dd if=/dev/zero of=/tmp/swap bs=1M count=64 && losetup /dev/loop6 /tmp/swap || return 1
	dmsetup create slowswap --table "0 131072 delay /dev/loop6 0 2" && mkswap /dev/mapper/slowswap || return 1
	[ -e /sys/block/zram0 ] || cat /sys/class/zram-control/hot_add
	echo 64M >/sys/block/zram0/disksize && mkswap /dev/zram0
}

# DEVICE STORE
swap_use() {
	local group=/sys/fs/cgroup/$2
	swapon $1 || return 1
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	echo 16M >$group/memory.max
	program=sonde-mem capture_begin $2 || return 1
	busybox sh -c "echo 0 >$group/cgroup.procs; exec taskset 1 /load/thrash 32 3 3"
	cat $group/memory.pressure
	sleep 2
	capture_end && swapoff $1
}

swap_all() {
	export DM_DISABLE_UDEV=1 PATH=$PATH:/usr/sbin
	section swap-make swap_make
	for kind in mapper/slowswap zram0; do
		section swap-${kind#*/} swap_use /dev/$kind ${kind#*/}
		section swap-${kind#*/}-told ask ${kind#*/} "SELECT type, function, sum(n) AS n, sum(value) AS value FROM amounts
			WHERE comm = 'thrash' AND type IN ('majorfaults', 'memwait') GROUP BY 1, 2"
		section swap-${kind#*/}-stacks ask ${kind#*/} "SELECT s.folded, sum(a.n) AS n FROM amounts a JOIN stacks s ON s.id = a.stack_id
			WHERE a.comm = 'thrash' AND a.type = 'majorfaults' GROUP BY 1"
	done
}

# Devices on top of others: a stretch of one, ciphered, on two at once, and one that is slow. Nobody else uses them.
disks_make() {
	local i
	modules_take || return 1
	for i in 0 1 2 3 4; do
		[ -e /dev/loop$i ] || mknod /dev/loop$i b 7 $i
		truncate -s 24M /tmp/disk$i && losetup /dev/loop$i /tmp/disk$i || return 1
	done
	dmsetup create linear --table "0 40000 linear /dev/loop0 8" &&
		dmsetup create ciphered --table "0 40000 crypt aes-cbc-plain64 00112233445566778899aabbccddeeff 0 /dev/loop1 0" &&
		dmsetup create mirrored --table "0 40000 mirror core 2 1024 nosync 2 /dev/loop2 0 /dev/loop3 0" &&
		dmsetup create slow --table "0 40000 delay /dev/loop4 0 100" &&
		dmsetup create broken --table "0 1000 error" && dmsetup ls
}

# A mirror and a logical volume, made with the real tools where the host has them.
disks_tools() {
	local i
	for i in 5 6 7; do
		[ -e /dev/loop$i ] || mknod /dev/loop$i b 7 $i
		truncate -s 24M /tmp/disk$i && losetup /dev/loop$i /tmp/disk$i || return 1
	done
	mdadm --create /dev/md0 --run --assume-clean --metadata=1.2 --level=1 --raid-devices=2 /dev/loop5 /dev/loop6 || return 1
	export LVM_SUPPRESS_FD_WARNINGS=1
	mkdir -p /run/lvm /run/lock/lvm /etc/lvm
	echo 'activation { udev_sync=0 udev_rules=0 } devices { use_devicesfile=0 obtain_device_list_from_udev=0 }' >/etc/lvm/lvm.conf
	lvm pvcreate -f /dev/loop7 && lvm vgcreate house /dev/loop7 && lvm lvcreate -y -Wn -Zn -L 12M -n data house && dmsetup ls
}

disks_use() {
	program=sonde-disk capture_begin disks || return 1
	cat /proc/diskstats >/run/diskstats
	dd if=/dev/zero of=/dev/mapper/linear bs=4096 count=64 oflag=direct
	dd if=/dev/zero of=/dev/mapper/mirrored bs=4096 count=32 oflag=direct
	dd if=/dev/zero of=/dev/mapper/slow bs=4096 count=3 oflag=direct
	[ ! -e /dev/md0 ] || dd if=/dev/zero of=/dev/md0 bs=4096 count=32 oflag=direct
	[ ! -e /dev/mapper/house-data ] || dd if=/dev/zero of=/dev/mapper/house-data bs=4096 count=16 oflag=direct
	/usr/sbin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/mapper/ciphered
	mkdir -p /mnt && mount -t ext4 -o noatime /dev/mapper/ciphered /mnt && dd if=/dev/zero of=/mnt/big bs=65536 count=16 conv=fsync
	local i
	for i in 1 2 3 4; do dd if=/dev/zero of=/mnt/small$i bs=4096 count=1 conv=fsync; done # each with a commit of the journal
	dd if=/dev/mapper/broken of=/dev/null bs=4096 count=1 iflag=direct
	dd if=/mnt/big of=/dev/null bs=4096 count=16
	dd if=/mnt/big of=/dev/null bs=65536 count=4 iflag=direct
	sleep 6 # its files are named where it is mounted; an emulated CPU takes long for that
	umount /mnt # nothing is written behind the last reading
	cat /run/diskstats
	echo after
	cat /proc/diskstats
	capture_end
}

# KIND NUMBER: a file system that is a module, on loop device NUMBER.
disks_filesystem() {
	local make device=/dev/loop$2
	[ -e $device ] || mknod $device b 7 $2
	truncate -s 160M /tmp/disk$2 && losetup $device /tmp/disk$2 || return 1
	case $1 in xfs) make="mkfs.xfs -q --unsupported" ;; btrfs) make="mkfs.btrfs -q" ;; esac
	/usr/sbin/$make $device && mkdir -p /mnt/$1 && mount -t $1 -o noatime $device /mnt/$1 || return 1
	program=sonde-disk capture_begin $1 || return 1
	cat /proc/diskstats >/run/diskstats
	dd if=/dev/zero of=/mnt/$1/big bs=65536 count=16 conv=fsync
	echo 1 >/proc/sys/vm/drop_caches
	dd if=/mnt/$1/big of=/dev/null bs=4096 count=16
	dd if=/mnt/$1/big of=/dev/null bs=65536 count=4 skip=12 iflag=direct
	sleep 6
	umount /mnt/$1
	cat /run/diskstats
	echo after
	cat /proc/diskstats
	capture_end
}

disks_all() {
	export DM_DISABLE_UDEV=1 PATH=$PATH:/usr/sbin
	section disks-make disks_make
	[ ! -x /usr/sbin/mdadm ] || [ ! -x /usr/sbin/lvm ] || section disks-tools disks_tools
	section disks-use disks_use
	section disks-blocks ask disks "SELECT disk, op, comm, sum(requests) AS requests, sum(bytes) AS bytes, sum(errors) AS errors FROM block_stats GROUP BY 1, 2, 3"
	section disks-under ask disks "SELECT DISTINCT disk, under FROM block_devices"
	section disks-files ask disks "SELECT disk, file, sum(coalesce(read_bytes, 0)) AS got, sum(coalesce(write_bytes, 0)) AS put, sum(coalesce(dirty_bytes, 0)) AS dirty
		FROM disk_files GROUP BY 1, 2"
	section disks-syncs ask disks "SELECT file, call, comm, sum(calls) AS calls FROM fsyncs GROUP BY 1, 2, 3"
	section disks-calls ask disks "SELECT file, call, comm, sum(calls) AS calls, sum(bytes) AS bytes FROM file_calls GROUP BY 1, 2, 3"
	local kind
	for kind in xfs/8 btrfs/9; do
		[ -x /usr/sbin/mkfs.${kind%/*} ] || continue
		section disks-${kind%/*} disks_filesystem ${kind%/*} ${kind#*/}
		section disks-${kind%/*}-blocks ask ${kind%/*} "SELECT disk, op, sum(requests) AS requests, sum(bytes) AS bytes FROM block_stats GROUP BY 1, 2"
		section disks-${kind%/*}-files ask ${kind%/*} "SELECT disk, file, sum(coalesce(read_bytes, 0)) AS got, sum(coalesce(write_bytes, 0)) AS put FROM disk_files GROUP BY 1, 2"
	done
	section disks-check sonde-disk --check --json
	section disks-shown sonde disk --store /run/store-disks --json
}

step capabilities && capabilities
step families && families_all
step probe && [ -x /usr/bin/python3.11 ] && probe_all
asked family-mem && section check-mem sonde-mem --check --json
asked pages && pages_all
asked disks && disks_all
case $steps in ,families, | ,probe, | ,families,*probe, | ,disks, | ,swap,* | ,pages,*) ;; *) warm_all ;; esac
step shares && shares_all
step shares && section explain explain
step narrow && narrow_all
step hotplug && hotplug_all
step offcpu && offcpu_all
step cpus && cpus_all
step net && net_all
step pstack && section pstack pstack_run
step l7 && l7_all
step scripts && [ -x /usr/bin/python3.11 ] && scripts_all
step host && host_all
asked memory && memory_all
asked swap && swap_all
section bye dmesg -r
sync
poweroff -f
