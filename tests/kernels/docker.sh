#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# docker: the first process of a guest whose cgroups are version 2 alone: starts a real dockerd, runs containers under
# sonde-cpu, one under sonde-offcpu, and reports as guest.sh does. Judges nothing: test_docker_v2.py does.
export PATH=/sonde:/usr/bin:/usr/sbin:/usr/local/bin:/bin HOME=/run DOCKER_RAMDISK=1
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev 2>/dev/null
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mkdir -p /var/lib/docker /dev/pts /dev/shm
mount -t tmpfs docker /var/lib/docker
mount -t devpts pts /dev/pts
mount -t cgroup2 cgroup /sys/fs/cgroup
for name in cpu memory pids; do echo "+$name" >/sys/fs/cgroup/cgroup.subtree_control; done
mount -t tracefs tracing /sys/kernel/tracing
ip link set lo up
stty raw -echo </dev/ttyS1
exec >/dev/ttyS1 2>/dev/console

. /etc/section.sh

# Wait for the engine; it says on its own output why it ends.
engine() {
	dockerd --storage-driver vfs --bridge none --iptables=false --ip-masq=false --exec-opt native.cgroupdriver=cgroupfs \
		>/run/dockerd.log 2>&1 &
	daemon=$!
	until docker version >/run/version 2>&1; do
		if ! kill -0 $daemon 2>/dev/null; then
			tail -n 20 /run/dockerd.log >&2
			return 1
		fi
		sleep 1
	done
	docker info --format '{{.CgroupVersion}} {{.CgroupDriver}} {{.ServerVersion}}'
	tar -C /image -c . | docker import - shop/web:1 >/dev/null
}

# STORE PROGRAM OPTIONS...: returns once it records.
capture() {
	store=$1
	shift
	rm -f /run/progress
	mkfifo /run/progress
	"$@" --store "/run/$store" --bucket 1s --progress-fd 3 3>/run/progress 2>/run/messages &
	loader=$!
	exec 4</run/progress
	while read -r line <&4; do
		case $line in *'"ready"'*) return 0 ;; esac
	done
	cat /run/messages >&2
	return 1
}

# One that fails once and is started again by its runtime; its own view of its cgroup, and the host's.
contain() {
	docker run -d --name web-1 --network none --restart on-failure:1 --label com.docker.compose.project=shop \
		--label com.docker.compose.service=web shop/web:1 /bin/sh -c '/bin/burn-static 1500 1; exit 1'
	# `docker wait` is content with its first end, and what follows may take a while here
	until [ "$(docker inspect --format '{{.RestartCount}} {{.State.Status}}' web-1)" = '1 exited' ] || [ $((waited += 1)) -gt 600 ]; do sleep 0.5; done
	docker run -d --name host-view --network none --cgroupns host shop/web:1 /bin/sh -c \
		'cat /proc/self/cgroup; /bin/burn-static 1500 1'
	docker wait host-view
	docker logs host-view
}

# Cgroups as Docker makes them through systemd, and containerd for a pod: by hand, for there is no systemd here.
by_hand() {
	for path in "$@"; do
		mkdir -p "/sys/fs/cgroup/$path"
		sh -c "echo 0 >'/sys/fs/cgroup/$path/cgroup.procs'; exec /image/bin/burn-static 1500 1"
	done
}

# Its last words; the section ends when it has.
captured() {
	kill -INT $loader
	while kill -0 $loader 2>/dev/null; do sleep 1; done
	cat /run/messages
}

# One that wants a whole CPU and may have half: what its cgroup says of it, before the capture ends and after.
quota() {
	capture waits sonde-offcpu || return 1
	docker run -d --name half --network none --cpus 0.5 shop/web:1 /bin/burn-static 600000 1 >/dev/null
	sleep 8
	half="/sys/fs/cgroup/docker/$(docker inspect --format '{{.Id}}' half)"
	cat "$half/cpu.max" "$half/cpu.stat" || return 1
	captured >&2
	sed 's/^/after_/' "$half/cpu.stat"
	docker kill half >/dev/null
}

# What sonde-host tells of a container with limits that uses them up, of a thousand short processes in another, and of a host without memory.
limits() {
	capture host sonde-host || return 1
	docker run -d --name hog --network none -m 48m --memory-swap 48m shop/web:1 /bin/sh -c 'sleep 3; exec tail /dev/zero'
	docker run -d --name slow --network none --cpus 0.3 shop/web:1 /bin/burn-static 600000 1
	docker wait hog
	docker run -d --name short --network none shop/web:1 /bin/sh -c 'i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done; echo done; sleep 8'
	until docker logs short 2>/dev/null | grep -q done || [ "$(docker inspect --format '{{.State.Running}}' short)" = false ]; do sleep 1; done
	cd "/sys/fs/cgroup/docker/$(docker inspect --format '{{.Id}}' slow)" || return 1
	echo "slow $(tr '\n' ' ' <cpu.stat) pressure $(grep some cpu.pressure)"
	cd /
	docker wait short
	docker kill slow
}

# All memory of the host, swap there is none.
host_oom() {
	tail /dev/zero
	echo "ended with $?"
	dmesg | grep -i 'out of memory' | tail -n 1
	sleep 4
	captured >&2
}

ID=1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
section kernel uname -r
section engine engine
section capture capture store sonde-cpu --freq 199
section contain contain
section inspect docker inspect --format '{{.Name}} {{.Id}} {{.RestartCount}} {{.Config.Image}}' web-1 host-view
section by-hand by_hand "system.slice/docker-$ID.scope" \
	"kubepods.slice/kubepods-pod1a_2b.slice/cri-containerd-2${ID#?}.scope" "lxc.payload.db-1/system.slice/x.service"
section messages captured
section containers sonde sql --store /run/store --json "SELECT DISTINCT p.comm, c.name, c.runtime, c.runtime_id, c.image, c.project,
	c.service, c.restarts, p.unit, p.cgroup FROM processes p LEFT JOIN containers c ON c.runtime_id = p.container_id AND c.runtime_id <> ''
	WHERE p.comm = 'burn-static'"
section quota quota
section neighbours sonde neighbours --store /run/waits --comm burn-static --json
section ready sonde sql --store /run/waits --json "SELECT sum(total_ns) AS ns FROM runqueue WHERE comm = 'burn-static'"
section limits limits
section host-oom host_oom
section events sonde events --store /run/host --all -n 1000 --json
section oom sonde oom --store /run/host --json
section stats sonde sql --store /run/host --json "SELECT container, sum(user_us + system_us) AS cpu_us, sum(throttled_us) AS throttled_us,
	max(cpu_limit_m) AS cpu_limit_m, max(mem_limit) AS mem_limit, max(working) AS working, sum(psi_cpu_us) AS psi_cpu_us, sum(oom_kills) AS oom_kills
	FROM container_stats GROUP BY container_id"
section ended sonde sql --store /run/host --json "SELECT container, comm, sum(n) AS n, sum(user_us + system_us) AS cpu_us FROM ended_stats GROUP BY 1, 2"
section lived sonde sql --store /run/host --json "SELECT container, sum(user_us + system_us) AS cpu_us FROM process_stats GROUP BY 1"
section log tail -n 40 /run/dockerd.log
section bye dmesg
poweroff -f
