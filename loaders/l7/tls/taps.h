/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taps: programs on tracepoints and uprobes, which are perf events, and how to be rid of many of
 * them in no time.
 *
 * The kernel lets go of each in two steps, and waits in each until nobody can be in it any more
 * (some 40 ms, up to 120 on a busy machine):
 *
 * 1. The program is taken off. Many are taken off beside each other, each by a thread of its own:
 * the waits are one. After that no program runs.
 * 2. The event is freed, under a lock of the whole kernel: those waits are one after the other,
 * whoever does it. What they are good for is the memory of events that do nothing any more, so we
 * do not stay for them: a child that has nothing but the events ends, and the kernel closes them
 * there.
 *
 * Kernels before 5.15 have no program apart from its event: there both steps are one, and waited
 * for.
 */
#ifndef SONDE_L7_TAPS_H
#define SONDE_L7_TAPS_H

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

/* "GROUP/NAME". -errno. */
int tap_tracepoint(struct bpf_program *prog, const char *name, struct tap *out);
/* In all processes, at `offset` of the file at `path`. -errno. */
int tap_uprobe(struct bpf_program *prog, const char *path, uint64_t offset, uint64_t cookie,
	       struct tap *out);
/* Takes it over. */
void taps_add(struct taps *t, struct tap tap);
void taps_release(struct taps *t); /* the list only */
/* None of their programs runs when this returns; the rest becomes of itself. Leaves the list empty.
 */
void taps_end(struct taps *t);

#endif
