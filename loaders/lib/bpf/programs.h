/* SPDX-License-Identifier: Apache-2.0 */
/* programs: what the kernel counts of an object's programs. */
#ifndef SONDE_BPF_PROGRAMS_H
#define SONDE_BPF_PROGRAMS_H

#include <stdint.h>

struct bpf_object;

struct programs_figures {       /* of all its programs, since they were loaded */
	uint64_t ns, runs;      /* 0 while kernel.bpf_stats_enabled is off */
	uint64_t missed;        /* runs that the kernel left out, since another one had not ended on that CPU; 0 before 5.12 */
};

/* `obj` NULL: there are none. */
void programs_read(struct bpf_object *obj, struct programs_figures *out);

#endif
