/* SPDX-License-Identifier: Apache-2.0 */
/* hooks: the programs of family net: loaded and attached, each that a kernel has no place for left
 * out, and their readings. */
#ifndef SONDE_NET_HOOKS_H
#define SONDE_NET_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "loaders/lib/bpf/family.h"
#include "probes/net.h"

struct net_bpf;
struct bpf_link;
struct bpf_object;
struct ring_buffer;

/* In the order in which they are attached: the programs that the states depend on come first. */
enum hook {
	HOOK_RESET_IN,
	HOOK_RESET_OUT,
	HOOK_SYNACK,
	HOOK_DESTROY,
	HOOK_STATE,
	HOOK_SENT,
	HOOK_RECEIVED,
	HOOK_READ,
	HOOK_SWEEP,
	HOOKS
};

#define HOOKS_NO_SWEEP                                                                           \
	"this kernel does not list the descriptors of processes: connections from before the "   \
	"capture, the owners of accepted ones that are open, and idle Unix and UDP sockets are " \
	"not recorded"

typedef void (*hooks_take)(void *ctx, const void *record, size_t size);

struct hooks {
	struct net_bpf *skel;
	struct bpf_link *links[HOOKS];
	struct ring_buffer *ring;
	hooks_take take;
	void *ctx;
	bool talks; /* the kernel has tracepoints of each send and receive */
	bool looks; /* the kernel refuses the map's iterator: look-ups instead */
};

/* What this kernel refuses is left out, if the rest can do without. */
int hooks_open(struct hooks *k, const struct family_config *c, hooks_take take, void *ctx,
	       struct err *e);
struct bpf_object *hooks_object(const struct hooks *k);
int hooks_attach(struct hooks *k, struct err *e);
/* The tracepoints; what is there can still be read. */
/* From now on one message of Unix and UDP sockets in 4^step is looked at, and counts for all of
 * these. */
void hooks_reduce(struct hooks *k, uint32_t step);
void hooks_detach(struct hooks *k);
void hooks_close(struct hooks *k);

/* Becomes readable when the ring fills faster than it is read. */
int hooks_wake_fd(const struct hooks *k);

/* Does this kernel have tracepoints for each send and receive? */
bool hooks_tells_talks(void);
/* Of the map `talks`; -1: the kernel has no tracepoints for it (before 6.3). */
int hooks_talks(const struct hooks *k);

/* All ends that wait in the ring; how many. */
int hooks_ends(struct hooks *k);
/* Each entry of the map, once; one that is added or deleted meanwhile may be missing. 0, or -errno
 * if others may be missing, too. */
int hooks_read(struct hooks *k);
/* Descriptors of all processes. 0 or -errno; -ENOTSUP: the kernel refuses to list them. */
int hooks_sweep(struct hooks *k);
void hooks_tally(const struct hooks *k, struct net_tally *sum);

#endif
