/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series_list: whose each series of a file is, and its stack, by the series' id: for those that go
 * over all samples. Of a file whose tables are rows. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKED_SERIES_LIST_H
#define SONDE_STORE_PACKED_SERIES_LIST_H

#include <stddef.h>
#include <stdint.h>

struct sqlite3;

struct series_list {
	struct series_list_one {
		uint32_t task, stack; /* task 0: there is no such series; stack 0: none */
	} * of;                       /* by id */
	size_t n, n_tasks;            /* greatest id + 1: of series, of tasks */
};

/* SQLite's code; SQLITE_TOOBIG: ids that no writer of ours gave, as a damaged file has them. To be
 * released in any case. */
int series_list_read(struct sqlite3 *db, struct series_list *out);
void series_list_release(struct series_list *l);
/* One more than the largest id, which `max_sql` asks for, of a table whose rows `count_sql` counts:
 * room for an array by id. 0: as SQLITE_TOOBIG above. */
size_t series_list_slots(struct sqlite3 *db, const char *max_sql, const char *count_sql);

#endif
