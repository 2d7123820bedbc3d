/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks: where the program is attached: at typed tracepoints, or, where the kernel refuses those,
 * at plain ones. At plain ones each look at a thread costs up to twice as much, and there is no
 * reading of the threads that are there at the start: each is taken in when it first runs, and one
 * that sleeps all the time is not seen.
 */
#ifndef SONDE_OFFCPU_HOOKS_H
#define SONDE_OFFCPU_HOOKS_H

#include <stdbool.h>

#include "loaders/lib/bpf/load/leftout.h"

struct err;
struct offcpu_bpf;
struct bpf_link;

#define HOOKS 8

/* What a recording can do without. */
extern const struct leftout_program HOOKS_OPTIONAL[];

/* The programs of objects that are opened from now on are those of plain tracepoints. 0 or -errno.
 */
int hooks_plain(void);
/* Attaches the loaded programs. On an error, `links` holds those already attached. */
int hooks_attach(struct offcpu_bpf *skel, bool plain, struct bpf_link *links[HOOKS], struct err *e);
void hooks_detach(struct bpf_link *links[HOOKS]);
/* Reads the existing threads; none with plain tracepoints, or if the kernel does not list them
 * (which is logged). */
void hooks_seed(struct offcpu_bpf *skel, bool plain);

#endif
