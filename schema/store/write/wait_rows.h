/* SPDX-License-Identifier: Apache-2.0 */
/* waitrows: what a batch has of store/write/waits.h, as it came: rows of one bucket and key add up in the segment. */
#ifndef SONDE_STORE_WRITE_WAIT_ROWS_H
#define SONDE_STORE_WRITE_WAIT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that a number of a row can mean, 2.3 years in nanoseconds: sums of such rows stay within SQLite's integers,
 * where one number past them would fail the whole batch, and each later sum over the table. */
#define WAITROW_MOST (1ULL << 56)

enum waitrow_table {
	WAITROW_WAIT, WAITROW_WAKE, WAITROW_CULPRIT, WAITROW_THROTTLE, WAITROW_STEAL, WAITROW_ON, WAITROW_SLOWED, WAITROW_TABLES
};

struct waitrow {
	int64_t ts;          /* start of the bucket, seconds since 1970 */
	enum waitrow_table table;
	uint32_t run;
	uint32_t task;       /* DICT_TASK; of throttle DICT_TEXT, the cgroup */
	uint32_t class, flags; /* of a wake-up: context; of a culprit: class is its kind; of
				  what was waited on: flags is DICT_TEXT */
	uint32_t by;         /* waker, culprit: DICT_TASK, 0 none */
	uint32_t stack;      /* of a wake-up, and of what was waited on: DICT_NODE */
	uint64_t value[3];   /* the table's numbers, in its order */
	uint32_t *hist;      /* n_hist of them, its own; NULL: none */
	size_t n_hist;
};

struct waitrows {
	struct waitrow *rows;
	uint32_t n, cap;
	size_t hist_bytes;
};

void waitrows_release(struct waitrows *w);
size_t waitrows_bytes(const struct waitrows *w);
/* Copies the row and its histogram. */
void waitrows_add(struct waitrows *w, const struct waitrow *row);
/* No number of it is past WAITROW_MOST. */
bool waitrow_believable(const struct waitrow *row);
/* Events of one run; 0: of all. */
uint64_t waitrows_events(const struct waitrows *w, uint32_t run);

#endif
