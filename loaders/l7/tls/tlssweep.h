/* SPDX-License-Identifier: Apache-2.0 */
/* tlssweep: removes entries of ended processes, threads and connections from the programs' maps. */
#ifndef SONDE_L7_TLSSWEEP_H
#define SONDE_L7_TLSSWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

/* This process has such a library. */
void tlssweep_process(struct bpf_object *obj, uint32_t tgid, bool go);
void tlssweep(struct bpf_object *obj);

#endif
