/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* kstack_check: what the program of the test counts. */
#ifndef TESTS_UNIT_PROBES_KSTACK_CHECK_BPF_H
#define TESTS_UNIT_PROBES_KSTACK_CHECK_BPF_H

#define KSTACK_CHECK_MAX 128

struct kstack_check {
	__u64 stacks;
	__u64 frames;    /* of those that were walked to their end */
	__u64 otherwise; /* stacks left to bpf_get_stack */
	__u64 differ;
	__u32 differ_at;
	__u32 possible;
};

#endif
