/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables: the maps of probes/lib/tables.h that sonde-maps makes and fills, in place of the
 * stand-ins of the same names in a family's object.
 */
#ifndef SONDE_BPF_TABLES_H
#define SONDE_BPF_TABLES_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_map;
struct bpf_object;

/* Before load: fds (borrowed) by enum mp_tables_map; NULL: there are none, and the object keeps its
 * empty stand-ins. Skips maps that the object lacks. 0 or -errno. */
int tables_reuse(struct bpf_object *obj, const int *fds);
/* Is it one of these maps? */
bool tables_is_one(const struct bpf_map *map);

/*
 * For the family that writes `inflight` (probes/lib/inflight.bpf.h). It first removes entries of a
 * writer that was killed: they are not current requests. Then it marks itself as present, once a
 * second or more often, and writes 0 when it ends. *state is NULL if there is no reader.
 */
struct tables_state;
void tables_inflight_open(const int *fds, struct tables_state **state);
void tables_inflight_alive(struct tables_state *state, uint64_t now_ns);
void tables_inflight_close(struct tables_state *state);

#endif
