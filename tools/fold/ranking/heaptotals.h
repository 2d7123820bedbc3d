/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptotals: what processes hold in all at each end of heapsites' steps, as the kernel counts it.
 * What lines hold is an estimate from samples, a single one of which may be MiB; all lines of a
 * process together are the kernel's count (loaders/mem/held.h). So where a line seems to
 * grow and its processes do not, it is chance: other lines have as much less.
 *
 * What a process has from its parent by fork(2) is left out: when a child writes to such a page it
 * gets a copy, and the kernel counts as many pages of the child as before.
 */
#ifndef SONDE_TOOLS_HEAPTOTALS_H
#define SONDE_TOOLS_HEAPTOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "tools/fold/ranking/heapsites.h"

struct heaptotals {
	struct heaptotal {
		uint64_t who;
		uint64_t at[HEAPSITES_STEPS + 1];
		bool began; /* within the range: it had nothing at its beginning */
	} * list;
	size_t n, cap;
	struct idmap by_process;
};

/* Zeroed, it is empty. */
void heaptotals_release(struct heaptotals *t);
/* Adds `bytes` that `process` has at the end of `step`. `who`: its container or command; by an exec
 * a process becomes another who, whose memory is its own. */
void heaptotals_add(struct heaptotals *t, uint64_t process, uint64_t who, bool began, size_t step,
		    uint64_t bytes);
/* By how much the processes of `who` have grown, those that became smaller left out. A beginning
 * that is not known is the first end at which the process has something. */
uint64_t heaptotals_grown(const struct heaptotals *t, uint64_t who);
/* Is the growth of a line of `who` more than chance? Its processes have grown by half of it at
 * least: in the same time they may have freed memory of other lines. */
bool heaptotals_explain(const struct heaptotals *t, uint64_t who, uint64_t grown);

#endif
