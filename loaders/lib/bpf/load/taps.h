/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taps: programs on tracepoints and uprobes, which are perf events, and how to detach many of them
 * quickly.
 *
 * The kernel releases each in two steps, and in each waits until no CPU can be in it any more (some
 * 40 ms, up to 120 on a busy machine):
 *
 * 1. The program is detached. Many are detached at the same time, each by its own thread, so that
 *    the waits overlap. After that no program runs.
 * 2. The event is freed, under a global lock of the kernel: these waits cannot overlap. They only
 *    free the memory of events that do nothing any more, so we do not wait for them: a child that
 *    holds nothing but the events ends, and the kernel closes them there.
 *
 * Kernels before 5.15 do not separate the program from its event: there both steps are one, and we
 * wait for it.
 */
#ifndef SONDE_BPF_TAPS_H
#define SONDE_BPF_TAPS_H

#include <stddef.h>
#include <stdint.h>

struct bpf_link;
struct bpf_program;

struct tap {
	struct bpf_link *link; /* own */
	int event;             /* own; -1: it is the link's */
};
struct taps { /* {0}: none */
	struct tap *items;
	size_t n, cap;
};

/* `id`: the tracepoint's number (loaders/lib/bpf/load/tracefs.h). -errno. */
int tap_tracepoint(struct bpf_program *prog, uint64_t id, struct tap *out);
/* In all processes, at `offset` of the file at `path`. `semaphore`: where in the file a counter is
 * that the kernel raises meanwhile in all processes, 0: it has no counter. -errno. */
int tap_uprobe(struct bpf_program *prog, const char *path, uint64_t offset, uint64_t semaphore,
	       uint64_t cookie, struct tap *out);
/* Takes it over. */
void taps_add(struct taps *t, struct tap tap);
void taps_release(struct taps *t); /* the list only */
/* None of their programs runs when this returns; the rest becomes of itself. Leaves the list empty.
 */
void taps_end(struct taps *t);

#endif
