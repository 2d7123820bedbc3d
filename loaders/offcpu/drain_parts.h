/* SPDX-License-Identifier: Apache-2.0 */
/* drain_parts: what drain.c has in common with its parts: who the threads are (drain_who), the sums
 * of their waits (drain_sums), and who woke and who held up whom (drain_counts). */
#ifndef SONDE_OFFCPU_DRAIN_PARTS_H
#define SONDE_OFFCPU_DRAIN_PARTS_H

#include <stdbool.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/offcpu/drain.h"
#include "schema/store/write/waits.h"

struct drain_who {
	struct offcpu_who who;
	uint32_t task, epoch; /* of the store */
	uint32_t turned;      /* naming_turned then */
	uint32_t alive;       /* the last turn in which its thread was there and it was this */
	uint32_t first;       /* the turn in which it was met, or the one that follows */
	enum {
		DRAIN_LONG,
		DRAIN_BRIEF_THREAD,
		DRAIN_BRIEF_PROCESS
	} brief; /* it, or all of its process, came and went between two readings */
	struct offcpu_count small; /* what each of many took from it in this reading, together */
	int64_t removed_ns;        /* from the map: known here only; 0: it is there */
};

struct drain_sum {
	struct offcpu_key key;
	struct drain_who
		*who; /* in the table: who are gone leave it behind their sums and counts */
	uint32_t slot;
	uint64_t n, total_ns;
	uint32_t *coarse; /* OFFCPU_POWERS of them; NULL: it had steps for each */
};

struct drain_count {
	struct offcpu_wake_key key; /* of a culprit: id and by */
	struct drain_who *who, *by; /* as in drain_sum; by NULL: no thread */
	struct offcpu_count count;
};

struct removal { /* keys that are to be removed from a map */
	uint8_t *keys;
	size_t n, cap, size;
};

struct reading {
	struct drain *d;
	struct family_host *h;
	int64_t utc_ns; /* the bucket that it is for */
	uint32_t number;
	int64_t from_ns; /* boot clock: when the reading before it was, or the capture began; 0: one
			    thread is asked for */
	struct idmap threads, processes; /* that are there: address of the task -> tid, tgid -> 1;
					    where short-lived ones are one */
	struct removal totals, wakes, culprits, slots, steps; /* at its end */
	struct removal smalls; /* struct drain_who *: those who have some */
};

void drain_removal_add(struct removal *x, const void *key, size_t size);

/* ---- drain_who ---- */

struct drain_who *drain_who_find(struct drain *d, uint64_t id);
/* Of the map `who`, and of `threads` behind it. */
void drain_who_read(void *ctx, const void *key, const void *value);
void drain_thread_read(void *ctx, const void *key, const void *value);
/* Which of those that this reading met first came and went. */
void drain_briefs_judge(struct reading *r);
/* Of which process and which thread it is told. */
uint32_t drain_who_process(struct reading *r, const struct drain_who *w,
			   char thread[STACK_COMM_LEN + 1], uint32_t *tid);
/* The store's id of a thread; 0: it is not known (yet). */
uint32_t drain_who_task(struct reading *r, struct drain_who *w);
bool drain_who_forgotten(const struct drain *d, uint64_t id);
bool drain_who_gone(const struct drain *d, const struct drain_who *w);
void drain_who_forget(struct drain *d);

/* ---- drain_sums ---- */

/* Of the map `totals`. */
void drain_sum_read(void *ctx, const void *key, const void *value);
int drain_wait_put(struct reading *r, struct drain_who *who, const struct store_wait *x);
void drain_sums_forget(struct reading *r);
void drain_sum_free(struct drain_sum *x);

/* ---- drain_counts ---- */

/* Of the maps `wakes` and `culprits`. */
void drain_wake_read(void *ctx, const void *key, const void *value);
void drain_culprit_read(void *ctx, const void *key, const void *value);
/* What each of many took from others, together. */
void drain_smalls_put(struct reading *r);
void drain_counts_forget(struct reading *r);

#endif
