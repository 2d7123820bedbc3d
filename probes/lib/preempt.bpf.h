/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * preempt: a program at a tracepoint runs to its end without another thread on its CPU.
 *
 * Before 7.0 each tracepoint calls its programs with preemption off. Since then it holds an SRCU
 * lock instead (the kernel's include/linux/tracepoint.h, __DECLARE_TRACE), so the scheduler may
 * take the CPU away in the middle of a program. Then
 *
 *   1. a second run of the same program there is left out (bpf_prog.active, told as
 *      recursion_misses), and what it was to see is lost;
 *   2. a run of another program finds the first one's scratch and counters in use.
 *
 * TRACEPOINT(hook, name, arguments...) { body } is for each program at a tracepoint that a process
 * reaches with preemption on: not for those under a run queue's lock. It makes two programs:
 * `name`, and `name_still`, which turns preemption off around the same body. programs_keep_still
 * (loaders/lib/bpf/load/programs.h) loads the one that the kernel needs. Two, since a call to a
 * function that the kernel lacks is refused by 5.13 to 5.15 even where it is never reached. The few
 * instructions before the call can still be interrupted so: the loaders count what the kernel left
 * out.
 */
#ifndef SONDE_PROBES_PREEMPT_BPF_H
#define SONDE_PROBES_PREEMPT_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/* Both of them: `section` with its kind, `call` of the body with the program's `ctx`. */
#define PREEMPT_PAIR(section_, name_, call_)       \
	SEC(section_)                              \
	int name_(unsigned long long *ctx)         \
	{                                          \
		return call_;                      \
	}                                          \
	SEC("?" section_)                          \
	int name_##_still(unsigned long long *ctx) \
	{                                          \
		int rc;                            \
                                                   \
		bpf_preempt_disable();             \
		rc = call_;                        \
		bpf_preempt_enable();              \
		return rc;                         \
	}

#define TRACEPOINT(hook_, name_, args...)                                                     \
	static __always_inline int ____##name_(unsigned long long *ctx, ##args);              \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wint-conversion\"") \
		PREEMPT_PAIR("tp_btf/" #hook_, name_, ____##name_(___bpf_ctx_cast(args)))     \
			_Pragma("GCC diagnostic pop") static __always_inline int ____##name_( \
				unsigned long long *ctx, ##args)

#endif
