/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind: the user part of a stack. One function, so that how it is found can change in one place: by frame pointers,
 * through the kernel's own helper, until the table-driven unwinder stands here.
 */
#ifndef SONDE_PROBES_UNWIND_BPF_H
#define SONDE_PROBES_UNWIND_BPF_H

#include <bpf/bpf_helpers.h>

#include "probes/stack.h"

/*
 * Write at most STACK_USER_MAX return addresses of the current task's user stack, leaf first, to `frames` (which has
 * room for that many). Returns how many, or a negative errno if the stack cannot be read.
 */
static __always_inline long unwind_user(void *ctx, __u64 *frames)
{
	long size = bpf_get_stack(ctx, frames, STACK_USER_MAX * sizeof(*frames), BPF_F_USER_STACK);

	return size < 0 ? size : (long)((__u64)size / sizeof(*frames));
}

#endif
