/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_load: reading a task. A program at a typed tracepoint (tp_btf) is given tasks that the
 * kernel vouches for, and loads from them as from its own memory. One at a plain tracepoint, which
 * the loader takes where typed ones are refused, has bare numbers, and asks a helper: 20 ns each.
 * The same program is loaded as either; what is not meant is cut out then.
 */
#ifndef SONDE_PROBES_OFFCPU_LOAD_BPF_H
#define SONDE_PROBES_OFFCPU_LOAD_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/arch_x86.h"

const volatile bool plain = false;

#define LOAD(from_, field_) (plain ? BPF_CORE_READ(from_, field_) : (from_)->field_)

/* How `task` entered the kernel; where tracepoints are plain, it is the current one. */
static __always_inline bool entry_read(struct task_struct *task, struct arch_entry *to)
{
	if (plain)
		return arch_entry_read(arch_current_entry(task), to);
	return arch_task_entry_read(task, to);
}

#endif
