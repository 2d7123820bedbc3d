/* SPDX-License-Identifier: Apache-2.0 */
/* tlssweep: what the programs remember of processes, threads and connections that are gone, taken
 * out of their maps. */
#ifndef SONDE_L7_TLSSWEEP_H
#define SONDE_L7_TLSSWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

/* This process has such a library. */
void tlssweep_process(struct bpf_object *obj, uint32_t tgid, bool go);
void tlssweep(struct bpf_object *obj);

#endif
