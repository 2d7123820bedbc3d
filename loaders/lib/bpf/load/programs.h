/* SPDX-License-Identifier: Apache-2.0 */
/* programs: which programs of an object this kernel loads, and their counters. */
#ifndef SONDE_BPF_PROGRAMS_H
#define SONDE_BPF_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_object;
struct bpf_program;

struct programs_figures {  /* of all its programs, since they were loaded */
	uint64_t ns, runs; /* 0 while kernel.bpf_stats_enabled is off */
	uint64_t missed;   /* runs that the kernel skipped because another one was still active on
			      that CPU; 0 before 5.12 */
};

/* `obj` NULL: all 0. */
void programs_read(struct bpf_object *obj, struct programs_figures *out);
/* Runs of this program, or of its variant, that the kernel skipped. */
uint64_t programs_missed(struct bpf_object *obj, struct bpf_program *prog);

/* Call it between open and load, after autoload is set. Some programs exist twice
 * (probes/lib/preempt.bpf.h): this loads the `_still` variant instead where the kernel needs it and
 * has what it calls (6.15; needed from 7.0 on). */
void programs_keep_still(struct bpf_object *obj);
/* After load: which of the two variants is loaded; a program without a variant is itself. */
struct bpf_program *programs_used(struct bpf_object *obj, struct bpf_program *prog);

#endif
