/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks: the programs of family probe, one object for each probe that was asked for: loaded,
 * attached, taken away and put back, and the epochs of their sums. What they share (rings, the set
 * of processes) is the first one's.
 */
#ifndef SONDE_PROBE_HOOKS_H
#define SONDE_PROBE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/taps.h"
#include "loaders/probe/asked.h"
#include "probes/probe/plan.h"

struct probe_bpf;
struct ring_buffer;
struct sample_tally;

typedef void (*hooks_hit)(void *ctx, const struct probe_event *ev, size_t size);

struct hook {
	const struct asked_probe *asked; /* borrowed */
	struct probe_bpf *skel;
	struct taps taps; /* those in place; none while it is away */
	bool cookies;     /* the kernel has them */
};

struct hooks {
	struct hook v[ASKED_MOST];
	size_t n;
	struct bpf_link *follow[2]; /* of `-- command` */
	struct ring_buffer *ring;
	hooks_hit hit;
	void *ctx;
};

/* `asked` must outlive it. `hit` is called by hooks_read. */
int hooks_open(struct hooks *k, const struct family_config *c, const struct asked *asked,
	       hooks_hit hit, void *ctx, struct err *e);
struct bpf_object *hooks_object(const struct hooks *k); /* the first one's */
int hooks_attach(struct hooks *k, struct err *e);
/* One probe, taken away or put back. */
int hook_attach(struct hook *h, struct err *e);
void hook_detach(struct hook *h);
/* No program runs any more; the sums can still be read. */
void hooks_detach(struct hooks *k);
void hooks_close(struct hooks *k);

int hooks_stack_fd(const struct hooks *k);
int hooks_late_fd(const struct hooks *k);
/* Single hits that wait in the ring. */
void hooks_read(struct hooks *k);
/* The programs go on in the next epoch; returns the one that is over. Some may still be adding to
 * it for a moment. */
uint32_t hooks_epoch_end(struct hooks *k);
int hook_sums_fd(const struct hook *h);
/* Takes out what found no room in the sums of an epoch that is over. */
void hook_rest(const struct hook *h, uint32_t epoch, struct probe_sum *out);
void hook_counts(const struct hook *h, struct probe_counts *out);
/* Runs that the kernel left out, as another program was active on that CPU; 0 where it does not
 * count them. */
uint64_t hook_missed(const struct hook *h);
void hook_every(struct hook *h, uint32_t every);
/* Of stacks alone. */
void hooks_tally(const struct hooks *k, struct sample_tally *out);

#endif
