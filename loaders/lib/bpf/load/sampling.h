/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling: what families share that take stacks: opening, configuring and loading the skeleton,
 * attaching single programs, and what their rings and tallies say. A family's main.c has
 *
 *	SKELETON_OPEN(NAME)	(kerneltypes.h) before its first use of skel_open()
 *	sampling_configure()	between open and load, then what only the family sets
 *	sampling_load()		one try to load
 *	sampling_tries()	all tries: with less of scripts, and with programs less
 */
#ifndef SONDE_BPF_SAMPLING_H
#define SONDE_BPF_SAMPLING_H

#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/kerneltypes.h"
#include "probes/lib/scope.h"
#include "probes/lib/tally.h"

struct leftout_program;

/* Where a skeleton's .rodata has these. */
struct sampling_settings {
	struct scope_config *scope;
	uint32_t *stack_depth, *ring_bytes, *runtime_kinds;
	bool *runtimes_on;
};
#define SAMPLING_SETTINGS(skel_)                                                             \
	(&(const struct sampling_settings){.scope = &(skel_)->rodata->scope,                 \
					   .stack_depth = &(skel_)->rodata->stack_depth,     \
					   .ring_bytes = &(skel_)->rodata->ring_bytes,       \
					   .runtime_kinds = &(skel_)->rodata->runtime_kinds, \
					   .runtimes_on = &(skel_)->rodata->runtimes_on})

/* Sizes of the rings `events` and `late`, the depth of kernel stacks, the scope, and the runtimes
 * whose frames are walked (scripts.h). Ends with leftout_disable: what else is switched on or off
 * comes before it. */
void sampling_configure(struct bpf_object *obj, const struct family_config *c, uint32_t kinds,
			const struct sampling_settings *s);
/* With sonde-maps' tables and the scope's maps. 0 or -errno; the caller destroys the skeleton. */
int sampling_load(struct bpf_object_skeleton *s, const struct family_config *c);
/* `load` opens, configures and loads once and sets *out, or returns -errno and has nothing. Calls
 * it until it succeeds or there is nothing left to do without: 0 or the last -errno. */
int sampling_tries(int (*load)(const struct family_config *c, uint32_t kinds, void *out),
		   const struct family_config *c, const struct leftout_program *optional,
		   void *out);

/* Attaches a program if it was loaded: *link stays NULL if not. 0 or -errno, with *e. */
int sampling_attach(struct bpf_program *prog, struct bpf_link **link, struct err *e);

/* Has this record of a ring the size that its counts of frames say? */
bool sampling_fits(const struct stack_event *ev, size_t size);
/* The map `tally`, summed over all CPUs. */
struct sample_tally sampling_sum(const struct bpf_map *tally);
/* The same, as the loop wants it. */
void sampling_tally(const struct bpf_map *tally, struct family_tally *out);

#endif
