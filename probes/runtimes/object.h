/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * object: objects of a sampled process's runtime, as they were when the sample was taken: its
 * collector moves them before they can be read. The BPF side includes probes/lib/kern.h before it,
 * user space <linux/types.h>.
 */
#ifndef SONDE_PROBES_RUNTIMES_OBJECT_H
#define SONDE_PROBES_RUNTIMES_OBJECT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* frames of V8's own code, innermost first; of those beyond it is read later */
#define STACK_OBJECTS      64
#define STACK_OBJECT_WORDS 6

/* The word two below a frame pointer in V8's own code (the function, in a frame of JavaScript): the
 * object at that time. */
struct stack_object {
	__u64 at; /* its address; 0: none is there */
	__u64 word[STACK_OBJECT_WORDS];
};

#endif
