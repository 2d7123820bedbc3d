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

/* Before load. fds (borrowed) by enum mp_tables_map; NULL: there are none, the stand-ins stay:
 * empty, nobody publishes. A map that the object does not have is left out. 0 or -errno. */
int tables_reuse(struct bpf_object *obj, const int *fds);
/* Is it one of them? */
bool tables_is_one(const struct bpf_map *map);

/*
 * Who writes `inflight` (probes/lib/inflight.bpf.h): what one that was killed has left there is
 * taken out, for it is no request of now; then it says that it is there, once a second or more
 * often, and 0 when it goes. *state is NULL where nobody reads.
 */
struct tables_state;
void tables_inflight_open(const int *fds, struct tables_state **state);
void tables_inflight_alive(struct tables_state *state, uint64_t now_ns);
void tables_inflight_close(struct tables_state *state);

#endif
