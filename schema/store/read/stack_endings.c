/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_endings: how stacks ended, by program and module. Of a range by its minutes; of all times
 * from the sums that a segment keeps of its runs, which an archive has by name: what its names are
 * packed in is not read for them.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "schema/base/array.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/reading.h"
#include "schema/store/read/row_scan.h"

enum { REASON_COMPLETE = 1, REASON_GONE = 14 };

/* As the view unwinding_reason has them, which an archive would have to make first. */
static const char *const words[] = {[REASON_COMPLETE] = "complete",
				    [2] = "its mappings were not known",
				    [3] = "the caller lies in no mapped code",
				    [4] = "the file's rows were not there yet",
				    [5] = "a rule that cannot be expressed",
				    [6] = "the stack could not be read",
				    [7] = "a rule led to an impossible place",
				    [8] = "the chain of frame pointers ended",
				    [9] = "deeper than the limit",
				    [10] = "a file was replaced meanwhile",
				    [11] = "32-bit code",
				    [12] = "its registers could not be read",
				    [13] = "the copy of the stack was too short",
				    [REASON_GONE] = "its memory was gone, by exec or exit",
				    [15] = "no room to hold it until it could be unwound"};

#define FLOOR_S (1ll << 40)

#define NAMED \
	"SELECT run, executable, module, reason, n FROM run_ending WHERE ?1 < ?2 AND (?3 = 0 OR run = ?3)"
#define ENDINGS(table, range)                                           \
	"SELECT u.run, t.value, i.name, u.reason, sum(u.n) FROM " table \
	" u LEFT JOIN text t ON t.id = u.exe"                           \
	" LEFT JOIN image i ON i.id = u.image WHERE " range             \
	" AND (?3 = 0 OR u.run = ?3) GROUP BY u.run, t.value, i.name, u.reason"

static const char *question(const struct store_segment *s, bool all_times)
{
	sqlite3 *db = s->db;

	if (s->day)
		return ENDINGS("day_unwound", "?1 < ?2");
	if (!all_times)
		return ENDINGS("unwound_row", "u.ts BETWEEN ?1 - 59 AND ?2");
	return sql_number(db, "SELECT EXISTS (SELECT 1 FROM run_ending)", 0) ?
		       NAMED :
		       ENDINGS("run_unwound", "?1 < ?2");
}

static const char *column(sqlite3_stmt *st, int i)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	return s ? s : "";
}

static int tell(sqlite3_stmt *st, int (*each)(void *ctx, const struct store_ending_row *r),
		void *ctx)
{
	int reason = sqlite3_column_int(st, 3);
	char number[32];
	struct store_ending_row r = {.run = sqlite3_column_int64(st, 0),
				     .executable = column(st, 1),
				     .module = column(st, 2),
				     .reason = number,
				     .complete = reason == REASON_COMPLETE,
				     .gone = reason == REASON_GONE,
				     .n = (uint64_t)sqlite3_column_int64(st, 4)};

	snprintf(number, sizeof(number), "reason %d", reason);
	if (reason > 0 && (size_t)reason < ARRAY_SIZE(words))
		r.reason = words[reason];
	return each(ctx, &r);
}

int store_endings(struct store_segment *s, int64_t from_ns, int64_t to_ns, int64_t run,
		  int (*each)(void *ctx, const struct store_ending_row *r), void *ctx,
		  struct err *e)
{
	const struct store_query q = {.from_ns = from_ns, .to_ns = to_ns};
	const char *sql = question(s, from_ns <= 0 && to_ns == INT64_MAX);
	int64_t first, last;
	sqlite3_stmt *st;
	int told = 0, rc = SQLITE_DONE;

	st = reading_prepare(s, sql, e);
	if (!st)
		return e && e->code ? e->code : -EIO;
	row_scan_range(s, &q, &first, &last);
	sqlite3_bind_int64(st, 1, first < -FLOOR_S ? -FLOOR_S : first);
	sqlite3_bind_int64(st, 2, last);
	sqlite3_bind_int64(st, 3, run);
	while (!told && (rc = sqlite3_step(st)) == SQLITE_ROW)
		told = tell(st, each, ctx);
	rc = reading_finish(s, st, told ? SQLITE_DONE : rc, e);
	return rc ? rc : told;
}
