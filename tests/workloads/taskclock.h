/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taskclock: how long a thread was on a CPU, by the kernel's task-clock counter
 * (perf_event_open(2)). CPU time (schedstat, getrusage) excludes the time that a hypervisor took;
 * task-clock includes it, as a sampler does and a program that times context switches.
 */
#ifndef SONDE_WORKLOADS_TASKCLOCK_H
#define SONDE_WORKLOADS_TASKCLOCK_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The counter of the calling thread, from now on; -1 where it cannot be had. */
static inline int taskclock_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Nanoseconds on a CPU since `fd` was opened, which ends with this; `otherwise` where there is no
 * counter. */
static inline uint64_t taskclock_close(int fd, uint64_t otherwise)
{
	uint64_t ns = otherwise;

	if (fd >= 0 && (read(fd, &ns, sizeof(ns)) != sizeof(ns) || close(fd)))
		ns = otherwise;
	return ns;
}

#endif
