/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * preempt: a program at a tracepoint runs to its end without another thread on its CPU.
 *
 * Before 7.0 each tracepoint calls its programs with preemption off. Since then it holds an SRCU lock instead (the kernel's
 * include/linux/tracepoint.h, __DECLARE_TRACE), so the scheduler may take the CPU away in the middle of a program. Then
 *
 *   1. a second run of the same program there is left out (bpf_prog.active, told as recursion_misses), and what it was to see is lost;
 *   2. a run of another program finds the first one's scratch and counters in use.
 *
 * NO_PREEMPT() is the first line of each program at a tracepoint that a process reaches with preemption on: not of those under a
 * run queue's lock. The few instructions before it can still be interrupted so: the loaders count what the kernel left out.
 *
 * bpf_preempt_disable is there since 6.10; the verifier lets global functions be called after it since 6.15.
 */
#ifndef SONDE_PROBES_PREEMPT_BPF_H
#define SONDE_PROBES_PREEMPT_BPF_H

#include "probes/kern.h"

#include <bpf/bpf_helpers.h>

extern int LINUX_KERNEL_VERSION __kconfig;
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak; /* they came together */

#define PREEMPT_SINCE ((6 << 16) + (15 << 8))

static __always_inline bool preempt_can(void)
{
	return LINUX_KERNEL_VERSION >= PREEMPT_SINCE && bpf_preempt_disable;
}

static __always_inline bool preempt_off(void)
{
	bool off = preempt_can();

	if (off)
		bpf_preempt_disable();
	return off;
}

static __always_inline void preempt_back(const bool *off)
{
	(void)off; /* asked anew: what the verifier sees is then the same constant */
	if (preempt_can())
		bpf_preempt_enable();
}

#define NO_PREEMPT() const bool no_preempt_ __attribute__((cleanup(preempt_back), unused)) = preempt_off()

#endif
