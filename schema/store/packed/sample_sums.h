/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_sums: of a file's samples and amounts what sums.h says of other tables. They are many, and
 * their series are nearly as many, so each question has its table:
 *
 *   sample_sum(task, stack, n)       of the whole file: samples by thread and stack
 *   sample_time_sum(ts, task, n)     samples by bucket and thread: of any range
 *   amount_sum(task, n, value)       of the whole file: what counters and durations come to by
 *                                    thread, whatever the stack; not of kinds that are sampled by
 *                                    size, each row of which counts for more (reader.h)
 *   wait_stack_sum(task, stack, label, ...)  of a day alone (archive/day_waits.h): waits by thread,
 *                                    stack and class
 *
 * A number past 2^63 - 1 is in none: then the table is not there. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKED_SAMPLE_SUMS_H
#define SONDE_STORE_PACKED_SAMPLE_SUMS_H

#include <stdbool.h>

#include "schema/store/model/kinds.h"

struct sqlite3;

#define SAMPLE_SUM      "sample_sum"
#define SAMPLE_TIME_SUM "sample_time_sum"
#define AMOUNT_SUM      "amount_sum"
#define WAIT_STACK_SUM  "wait_stack_sum"

/* Of a file whose tables are rows. SQLite's code, as all here. */
int sample_sums_make(struct sqlite3 *db);
int sample_sums_drop(struct sqlite3 *db);
/* Empty tables but for SAMPLE_TIME_SUM, for the sums of several files (archive/day.h). */
int sample_sums_empty(struct sqlite3 *db);
/* Is what amount_sum has of this kind what its rows come to? */
bool sample_sums_adds_up(enum store_kind kind);
/* Is this the name of one of them? */
bool sample_sums_has(const char *table);

#endif
