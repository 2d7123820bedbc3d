/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endings: how stacks ended, by program and module. Of a range by its minutes; of all times from the sums that a segment keeps
 * of its runs, which an archive has by name: what its names are packed in is not read for them.
 */
#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "schema/store/pass.h"
#include "schema/store/reading.h"

enum { REASON_COMPLETE = 1, REASON_GONE = 14 }; /* unwinding_reason */

#define FLOOR_S (1ll << 40)

#define NAMED "SELECT u.run, u.executable, u.module, coalesce(w.words, 'reason ' || u.reason), u.reason, u.n FROM run_ending u" \
	      " LEFT JOIN unwinding_reason w ON w.reason = u.reason WHERE ?1 < ?2 AND (?3 = 0 OR u.run = ?3)"
#define ENDINGS(table, range)                                                                                         \
	"SELECT u.run, t.value, i.name, coalesce(w.words, 'reason ' || u.reason), u.reason, sum(u.n) FROM " table     \
	" u LEFT JOIN text t ON t.id = u.exe LEFT JOIN image i ON i.id = u.image LEFT JOIN unwinding_reason w"        \
	" ON w.reason = u.reason WHERE " range " AND (?3 = 0 OR u.run = ?3) GROUP BY u.run, t.value, i.name, u.reason"

static const char *question(sqlite3 *db, bool all_times)
{
	if (!all_times)
		return ENDINGS("unwound_row", "u.ts BETWEEN ?1 - 59 AND ?2");
	return reading_number(db, "SELECT EXISTS (SELECT 1 FROM run_ending)", 0) ? NAMED : ENDINGS("run_unwound", "?1 < ?2");
}

static const char *column(sqlite3_stmt *st, int i)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	return s ? s : "";
}

static int tell(sqlite3_stmt *st, int (*each)(void *ctx, const struct store_ending_row *r), void *ctx)
{
	int reason = sqlite3_column_int(st, 4);
	struct store_ending_row r = {.run = sqlite3_column_int64(st, 0), .executable = column(st, 1), .module = column(st, 2),
				     .reason = column(st, 3), .complete = reason == REASON_COMPLETE, .gone = reason == REASON_GONE,
				     .n = (uint64_t)sqlite3_column_int64(st, 5)};

	return each(ctx, &r);
}

int store_endings(struct store_segment *s, int64_t from_ns, int64_t to_ns, int64_t run,
		  int (*each)(void *ctx, const struct store_ending_row *r), void *ctx, struct err *e)
{
	const struct store_query q = {.from_ns = from_ns, .to_ns = to_ns};
	const char *sql = question(s->db, from_ns <= 0 && to_ns == INT64_MAX);
	int64_t first, last;
	sqlite3_stmt *st;
	int told = 0, rc = SQLITE_DONE;

	rc = reading_views(s, "unwinding_reason", e);
	if (rc)
		return rc;
	st = reading_prepare(s, sql, e);
	if (!st)
		return e && e->code ? e->code : -EIO;
	pass_range(s, &q, &first, &last);
	sqlite3_bind_int64(st, 1, first < -FLOOR_S ? -FLOOR_S : first);
	sqlite3_bind_int64(st, 2, last);
	sqlite3_bind_int64(st, 3, run);
	while (!told && (rc = sqlite3_step(st)) == SQLITE_ROW)
		told = tell(st, each, ctx);
	rc = reading_finish(s, st, told ? SQLITE_DONE : rc, e);
	return rc ? rc : told;
}
