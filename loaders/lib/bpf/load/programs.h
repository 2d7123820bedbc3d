/* SPDX-License-Identifier: Apache-2.0 */
/* programs: which of an object's programs are loaded on this kernel, and what it counts of them. */
#ifndef SONDE_BPF_PROGRAMS_H
#define SONDE_BPF_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_object;
struct bpf_program;

struct programs_figures {  /* of all its programs, since they were loaded */
	uint64_t ns, runs; /* 0 while kernel.bpf_stats_enabled is off */
	uint64_t missed;   /* runs that the kernel left out, since another one had not ended on that
			      CPU; 0 before 5.12 */
};

/* `obj` NULL: there are none. */
void programs_read(struct bpf_object *obj, struct programs_figures *out);

/* Between open and load, after autoload was set of the programs of which there are two
 * (probes/lib/preempt.bpf.h): instead of each that is to be loaded its `_still` one, where the
 * kernel needs it and has what it calls (6.15; needed from 7.0 on). */
void programs_keep_still(struct bpf_object *obj);
/* After it: the one of the two that is loaded; of one that has no second it is itself. */
struct bpf_program *programs_used(struct bpf_object *obj, struct bpf_program *prog);

/* Does this kernel accept an iterator over `target` ("task_file")? An empty program asks. */
bool programs_iterates(const char *target);
/* Between open and load, after a load of the same programs failed: does not load the iterators that
 * this kernel refuses (bpf_program__autoload is false then). How many they are; 0: the load failed
 * for another reason. */
size_t programs_drop_iterators(struct bpf_object *obj);

#endif
