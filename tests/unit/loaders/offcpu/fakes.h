/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fakes: what loaders/offcpu works with, without a kernel and without a store: maps whose entries a
 * test lays down, a store that notes what it was given, stacks that are named by their sizes. One
 * test at a time: all is global.
 */
#ifndef TESTS_OFFCPU_FAKES_H
#define TESTS_OFFCPU_FAKES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "probes/offcpu.h"
#include "schema/store/model/kinds.h"
#include "schema/store/write/waits.h"

#define FAKES      64
#define FAKE_TASK  1000 /* + process: a task without a thread's number */
#define FAKE_BRIEF 500  /* the process of those that came and went */
enum fake_map {
	FAKE_THREADS = 3,
	FAKE_WHO,
	FAKE_TOTALS,
	FAKE_WAKES,
	FAKE_CULPRITS,
	FAKE_FREE,
	FAKE_FREE_STEPS,
	FAKE_FREE_WAKES,
	FAKE_RESTS,
	FAKE_MAPS
};

struct fake_amount {
	uint32_t process, stack, label;
	enum store_kind kind;
	uint64_t n, value, max, n_variance, value_variance;
};
struct fake_wait {
	uint32_t task;
	int64_t utc_ns;
	struct store_wait x;
	char hist[128]; /* as stored */
};
struct fake_wake {
	uint32_t task;
	struct store_wake x;
};
struct fake_on {
	uint32_t task;
	struct store_wait_on x;
	char object[64];
};
struct fake_culprit {
	uint32_t task;
	struct store_culprit x;
};

struct fakes {
	struct fake_amount amounts[FAKES];
	size_t n_amounts;
	struct fake_wait waits[FAKES];
	size_t n_waits;
	struct fake_wake wakes[FAKES];
	size_t n_wakes;
	struct fake_on on[FAKES];
	size_t n_on;
	struct fake_culprit culprits[FAKES];
	size_t n_culprits;
	uint64_t tagged_n, tagged_ns; /* what was reported of requests */
	struct {
		uint64_t key[4], value[40];
		size_t key_size, value_size;
	} map[FAKE_MAPS][FAKES];
	size_t n_map[FAKE_MAPS];
	struct offcpu_sum sums[FAKES];
	struct offcpu_steps steps[FAKES];
	struct offcpu_count wake_sums[FAKES];
	struct offcpu_slots freed[FAKES];
	size_t n_freed; /* what was put into the queue FAKE_FREE */
	struct offcpu_slots freed_steps[FAKES];
	size_t n_freed_steps;
	struct offcpu_slots freed_wakes[FAKES];
	size_t n_freed_wakes;
	uint32_t wake_turn;
	struct offcpu_rest rests[OFFCPU_RESTS]; /* of all CPUs */
	uint32_t rests_made;
	uint32_t epoch;
	int stale;      /* this many further calls are refused with -ESTALE, each in a new epoch */
	unsigned named; /* calls of naming_stack */
	bool symbols;   /* the kernel's: addresses 200..299 are __schedule, 300..399 schedule, all
			   others tick */
};
extern struct fakes fake;

void fakes_reset(struct family_host *h);
void fake_map_put(enum fake_map m, const void *key, size_t key_size, const void *value,
		  size_t value_size);

#endif
