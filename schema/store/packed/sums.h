/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums: what an archive has in addition to its columns: the rows of tables that have one for each
 * bucket, summed over the whole file. A question about days takes them from each file that lies in
 * its range as a whole, and reads the columns of the others only.
 *
 *   1. Table NAME_row has its sums in NAME_sum: a row for each key and run. Counters add up. Gauges
 *      are those of the last row that has the table's main gauge, and ts is that row's; where none
 *      has it, and where a table has none, the last row's.
 *   2. A file in which two captures of one family ran at once has no sums: which rows count depends
 *      on the range. A table without rows has none either. meta 'sums' says that they were made.
 *   3. A sum past 2^63 - 1 stays there.
 *
 * They are tables of archives alone, made when a segment is packed and dropped when it becomes rows
 * again. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKED_SUMS_H
#define SONDE_STORE_PACKED_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fact;
struct sqlite3;

/* Do two runs of one family share a bucket, or could they? Then which rows count depends on the
 * range. */
#define SUMS_AT_ONCE                                                                           \
	"SELECT EXISTS (SELECT 1 FROM run a JOIN run b ON b.id > a.id AND b.family = a.family" \
	" AND a.from_ns - max(a.bucket_s, b.bucket_s) * 1000000000 < b.to_ns"                  \
	" AND b.from_ns - max(a.bucket_s, b.bucket_s) * 1000000000 < a.to_ns)"

/* Of a file whose tables are rows. SQLite's code, as all here. */
int sums_make(struct sqlite3 *db);
/* Of an archive that has them, after its rows were summed by minute: their times change. */
int sums_remake(struct sqlite3 *db);
/* Of several files (archive/day.h): makes NAME_sum for table number i and a temporary table
 * NAME_parts with the same columns, which the caller fills; the second sums those by key. Returns
 * SQLite's code; SQLITE_DONE: there is no table of that number. */
int sums_parts(struct sqlite3 *db, size_t i, const char **table);
int sums_of_parts(struct sqlite3 *db, size_t i);
/* Of a file whose tables are rows again. */
int sums_drop(struct sqlite3 *db);
/* Is this the name of a table of sums? */
bool sums_has(const char *table);
/* process_row: process_sum */
#define SUMS_NAME_MAX 64
void sums_name(const char *table, char out[SUMS_NAME_MAX]);

/* Tables of wide rows that have sums, as they are declared. */
struct sums_fact {
	const struct fact *fact;
	const char *gauge; /* rule 1: the main one; NULL: none */
	bool peak;         /* its gauges are the highest of all rows, not the last */
	/* of a range that is not the whole file: a row that is partly in it counts in part, else it
	 * counts if it begins there; gauges may be those of so many seconds before it */
	bool in_part;
	int64_t before_s;
};
/* NULL: it is not one of them. */
const struct sums_fact *sums_fact_of(const char *table);

#endif
