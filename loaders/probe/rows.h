/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows: what probes saw, as rows of the store (schema/facts/probe.h). Sums of an epoch that is
 * over, the largest ROWS_MOST or ROWS_ALWAYS of each probe by themselves, the others as key
 * `~other` without a process; single hits, held until their processes are known; stacks, with the
 * label "probe".
 */
#ifndef SONDE_PROBE_ROWS_H
#define SONDE_PROBE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/hold.h"
#include "loaders/probe/hooks.h"

#define ROWS_MOST   2048
#define ROWS_ALWAYS 256 /* with buckets of FAMILY_ALWAYS_S and more */
#define ROWS_OTHER  "~other"

struct rows {
	struct hold held;                     /* single hits */
	uint64_t lost[ASKED_MOST];            /* of them, as there was no room */
	uint64_t events[ASKED_MOST];          /* rows of single hits in this epoch */
	struct probe_counts told[ASKED_MOST]; /* what rows have said so far */
	uint64_t told_lost[ASKED_MOST];
};

void rows_init(struct rows *r);
void rows_release(struct rows *r);
/* A record of the ring. */
void rows_hold(struct rows *r, const struct probe_event *ev, size_t size);
/* All of `epoch` and earlier ones: sums, single hits up to `until_ns` (boot clock; 0: all), and a
 * row for each probe. `off_ns` by probe: how long it was away meanwhile. */
void rows_store(struct rows *r, const struct hooks *k, struct family_host *h, uint32_t epoch,
		int64_t utc_ns, int64_t until_ns, const int64_t off_ns[ASKED_MOST]);
/* A record of the ring of stacks. */
void rows_stack(const struct hooks *k, struct family_host *h, const struct stack_event *ev,
		struct naming_result *named);

/* How much it adds. */
uint64_t rows_stack_amount(const struct hooks *k, const struct stack_event *ev);

#endif
