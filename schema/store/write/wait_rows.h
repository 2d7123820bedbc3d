/* SPDX-License-Identifier: Apache-2.0 */
/* wait_rows: the wait rows of a batch. Rows of one bucket and key add up, here and
 * in the segment. */
#ifndef SONDE_STORE_WRITE_WAIT_ROWS_H
#define SONDE_STORE_WRITE_WAIT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/store/model/hist.h"

/* The most that a number of a row can mean, 2.3 years in nanoseconds: sums of such rows stay within
 * SQLite's integers, where one number past them would fail the whole batch, and each later sum over
 * the table. */
#define WAIT_ROW_MOST (1ULL << 56)

enum wait_row_table {
	WAIT_ROW_WAIT,
	WAIT_ROW_WAKE,
	WAIT_ROW_CULPRIT,
	WAIT_ROW_THROTTLE,
	WAIT_ROW_STEAL,
	WAIT_ROW_ON,
	WAIT_ROW_SLOWED,
	WAIT_ROW_TABLES
};

struct wait_row {
	int64_t ts; /* start of the bucket, seconds since 1970 */
	enum wait_row_table table;
	uint32_t run;
	uint32_t task;         /* DICT_TASK; of throttle DICT_TEXT, the cgroup */
	uint32_t class, flags; /* of a wake-up: context; of a culprit: class is its kind; of
				  what was waited on: flags is DICT_TEXT */
	uint32_t by;           /* waker, culprit: DICT_TASK, 0 none */
	uint32_t stack;        /* of a wake-up, and of what was waited on: DICT_NODE */
	uint64_t value[3];     /* the table's numbers, in its order */
	const uint32_t *hist;  /* n_hist of them, from first_slot on, as they are given: borrowed;
				  NULL: none */
	size_t n_hist;
	unsigned first_slot;
	struct hist sum; /* of all that were given */
};

struct wait_rows {
	struct wait_row *rows;
	uint32_t n, cap;
	struct idmap at; /* hash of a key -> index in `rows` */
	size_t hist_bytes;
};

void wait_rows_release(struct wait_rows *w);
size_t wait_rows_bytes(const struct wait_rows *w);
/* Copies the row and its histogram, or adds them to the one of its key. */
void wait_rows_add(struct wait_rows *w, const struct wait_row *row);
/* Is it of a task, as what the ring has is; such rows are sums. Rows of the host and of cgroups are
 * not. */
bool wait_row_of_task(const struct wait_row *row);
/* All its numbers are at most WAIT_ROW_MOST. */
bool wait_row_believable(const struct wait_row *row);
/* Events of one run; 0: of all. */
uint64_t wait_rows_events(const struct wait_rows *w, uint32_t run);

#endif
