/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * calls: what a program at a system call's own tracepoint is given, as
 * /sys/kernel/tracing/events/syscalls/NAME/format says on x86-64.
 */
#ifndef SONDE_PROBES_LIB_CALLS_BPF_H
#define SONDE_PROBES_LIB_CALLS_BPF_H

#include "probes/lib/kern.h"

struct sys_enter { /* syscalls:sys_enter_NAME; some calls have fewer arguments */
	__u64 common;
	__s64 nr;
	__u64 args[6];
};
struct sys_exit { /* syscalls:sys_exit_NAME */
	__u64 common;
	__s64 nr;
	__s64 ret; /* negative: the error */
};

#endif
