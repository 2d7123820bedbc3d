/* SPDX-License-Identifier: Apache-2.0 */
/* scope: tells a family's program which tasks the capture is about (probes/lib/scope.bpf.h). */
#ifndef SONDE_BPF_SCOPE_H
#define SONDE_BPF_SCOPE_H

#include "loaders/lib/bpf/family.h"
#include "probes/lib/scope.h"

struct bpf_object;

/* Before load: set the sizes of the maps `pids`, `cgroups` and `comms`, and `config`, the
 * skeleton's .rodata `scope`. */
void scope_configure(struct bpf_object *obj, const struct family_target *t,
		     struct scope_config *config);
/* After load: fill these maps. 0 or -errno. */
int scope_fill(struct bpf_object *obj, const struct family_target *t);

#endif
