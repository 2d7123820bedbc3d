/* SPDX-License-Identifier: Apache-2.0 */
/* hooks: the programs of family l7, loaded and attached, their maps, and the reading of
 * descriptors. */
#ifndef SONDE_L7_HOOKS_H
#define SONDE_L7_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/load/taps.h"
#include "loaders/lib/bpf/family.h"
#include "probes/l7.h"

struct l7_bpf;
struct bpf_object;
struct tables_state;

#define HOOKS_MOST 64

struct hooks {
	struct l7_bpf *skel;
	struct taps taps;
	struct bpf_link *links[HOOKS_MOST], *sweep; /* of what is no perf event */
	size_t n;
	uint64_t untold_bytes; /* of closed sockets that hooks_sweep found and that had unreported
				  bytes */
	struct tables_state *tables; /* owned by sonde-maps; NULL: no loader reads which request a
					thread serves */
};

#define HOOKS_NO_SWEEP                                                                             \
	"this kernel does not list the descriptors of processes: closed Unix and UDP connections " \
	"keep their places until none is free"

/* Does the kernel tell when bytes come to a socket (6.3)? */
bool hooks_tells_came(void);
int hooks_open(struct hooks *k, const struct family_config *c, struct err *e);
struct bpf_object *hooks_object(const struct hooks *k);
int hooks_ring(const struct hooks *k);
int hooks_wants(const struct hooks *k);
int hooks_whos(const struct hooks *k); /* struct l7_who by struct l7_who_key */
/* Whose traffic is sonde's own. */
void hooks_parser(struct hooks *k, uint32_t tgid);
/* How many Java programs have an agent, in the programs (probes/l7/java.bpf.h): 0: no write is
 * looked at. */
uint32_t *hooks_agents(const struct hooks *k);
int hooks_attach(struct hooks *k, struct err *e);
/* None of them runs when this returns; `with`: neither do these. */
/* From now on one connection in 4^step is read. */
void hooks_reduce(struct hooks *k, uint32_t step);
void hooks_detach(struct hooks *k, struct taps *with);
/* Sign of life, for the families that read which request a thread serves; 0: this family ends. At
 * least once a second. */
void hooks_alive(struct hooks *k, uint64_t now_ns);
void hooks_close(struct hooks *k);
void hooks_tally(const struct hooks *k, struct l7_tally *sum);

/*
 * Unix and UDP sockets without a descriptor in any process: removes them from the map, and reports
 * them. Returns the number of connections of such sockets, or -errno (-ENOTSUP: the kernel does not
 * list descriptors). One in transit from one process to another (SCM_RIGHTS) counts as closed.
 */
int hooks_sweep(struct hooks *k, void (*gone)(void *ctx, uint64_t sk, uint64_t ino), void *ctx);

#endif
