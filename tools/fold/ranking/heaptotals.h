/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptotals: what processes hold in all at each end of heapsites' steps, as the kernel counts it.
 * What lines hold is an estimate from samples, each of which stands for up to hundreds of MiB; all
 * lines of a process together are the kernel's count (loaders/mem/held.h). So where a line seems to
 * grow and its processes do not, it is chance: other lines have as much less.
 *
 * What a process has from its parent by fork(2) is left out: where a child writes to it the child
 * gets pages of its own, and the kernel's count stays the same.
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
/* `process` has `bytes` more at the end of `step`. `who`: what lines are told apart by. */
void heaptotals_add(struct heaptotals *t, uint64_t process, uint64_t who, bool began, size_t step,
		    uint64_t bytes);
/* By how much the processes of `who` have grown, those that became smaller left out. A beginning
 * that is not known is the first end at which the process has something. */
uint64_t heaptotals_grown(const struct heaptotals *t, uint64_t who);
/* Is it more than chance that a line of them holds so many bytes more? Their growth is at least
 * half of it: in the same time they may have freed some. */
bool heaptotals_explain(const struct heaptotals *t, uint64_t who, uint64_t grown);

#endif
