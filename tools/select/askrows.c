/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/select/askrows.h"

#include <errno.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/store/read/days.h"

const char *askrows_text(sqlite3_stmt *st, int column)
{
	const char *s = (const char *)sqlite3_column_text(st, column);

	return s ? s : "";
}

static int64_t first_s(const struct selection *sel)
{
	return sel->from_ns / NSEC_PER_SEC;
}

static int64_t last_s(const struct selection *sel)
{
	return (sel->to_ns - 1) / NSEC_PER_SEC;
}

int askrows(const struct selection *sel, struct store_segment *seg, const char *path,
	    const char *sql, void (*row)(void *ctx, sqlite3_stmt *st), void *ctx, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = store_segment_prepare(seg, sql, &st);

	if (rc == SQLITE_ERROR && store_segment_is_day(seg))
		return err_set(e, -EXDEV, EXIT_STORE,
			       "%.300s has no answer to this: its archives have", path);
	if (rc == SQLITE_ERROR) /* older than the view */
		return 0;
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, first_s(sel));
		sqlite3_bind_int64(st, 2, last_s(sel));
		while ((rc = sqlite3_step(st)) == SQLITE_ROW)
			row(ctx, st);
	}
	if (rc != SQLITE_DONE)
		rc = err_set(e, -EIO, EXIT_STORE, "cannot read %.300s: %s", path,
			     sqlite3_errmsg(store_segment_tables(seg)));
	else
		rc = 0;
	sqlite3_finalize(st);
	return rc;
}

int askrows_summed(const struct selection *sel, struct store_segment *seg, const char *path,
		   const struct askrows_sums *sums, const char *rows,
		   void (*row)(void *ctx, sqlite3_stmt *st), void *ctx, struct err *e)
{
	bool summed = sums->sql != NULL;

	for (size_t i = 0; i < ARRAY_SIZE(sums->table); i++)
		if (summed && sums->table[i])
			summed = store_segment_sums(seg, sums->table[i], first_s(sel), last_s(sel));
	return askrows(sel, seg, path, summed ? sums->sql : rows, row, ctx, e);
}

static int ask_part(const struct selection *sel, struct store_segment *seg, const char *path,
		    const struct askrows_part *part, const struct store_dict **dict, struct err *e)
{
	int rc;

	if (part->table && !store_segment_has(seg, part->table))
		return 0;
	rc = dict ? store_segment_processes(seg, dict, e) : 0;
	return rc ? rc :
		    askrows_summed(sel, seg, path, &part->sums, part->sql, part->row, part->ctx, e);
}

int askrows_each(const struct selection *sel, const struct store_dict **dict,
		 const struct askrows_part *parts, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sel->n_segments; i++) {
		const char *path = sel->segments[i].path;
		struct store_segment *seg;

		rc = select_segment(sel, path, &seg, e);
		for (size_t k = 0; !rc && k < n; k++)
			rc = ask_part(sel, seg, path, &parts[k], dict, e);
	}
	return rc;
}

/* ---- days ---- */

int askrows_segments(const struct selection *sel, const struct store_part *part,
		     int (*ask)(void *ctx, struct store_segment *seg, const char *path,
				struct err *e),
		     void *ctx, struct err *e)
{
	int rc = 0;

	for (size_t i = part->first; !rc && i < part->first + part->n; i++) {
		const char *path = sel->segments[i].path;
		struct store_segment *seg;

		rc = select_segment(sel, path, &seg, e);
		if (!rc)
			rc = ask(ctx, seg, path, e);
	}
	return rc;
}

struct asking {
	const struct selection *sel;
	const struct askrows_part *part;
	const struct store_dict **dict;
};

static int ask_segment(void *ctx, struct store_segment *seg, const char *path, struct err *e)
{
	const struct asking *a = ctx;

	return ask_part(a->sel, seg, path, a->part, a->dict, e);
}

bool askrows_may(struct store_segment *seg, const char *sql)
{
	sqlite3_stmt *st = NULL;
	const bool may = store_segment_prepare(seg, sql, &st) == SQLITE_OK;

	sqlite3_finalize(st);
	return may;
}

static int ask_day(const struct asking *how, const struct store_part *day, size_t n, struct err *e)
{
	struct asking a = *how;
	struct store_segment *seg;
	int rc = 0;

	for (size_t k = 0; !rc && k < n; k++, a.part++) {
		rc = select_segment(a.sel, day->path, &seg, e);
		if (!rc)
			rc = askrows_may(seg, a.part->sums.sql ? a.part->sums.sql : a.part->sql) ?
				     ask_segment(&a, seg, day->path, e) :
				     askrows_segments(a.sel, day, ask_segment, &a, e);
	}
	return rc;
}

int askrows_each_day(const struct selection *sel, const struct store_dict **dict,
		     const struct askrows_part *parts, size_t n, struct err *e)
{
	const struct store_part *files;
	const size_t n_files = select_parts(sel, &files);
	int rc = 0;

	for (size_t i = 0; !rc && i < n_files; i++) {
		struct asking a = {sel, parts, dict};
		struct store_segment *seg;

		if (files[i].day) {
			rc = ask_day(&a, &files[i], n, e);
			continue;
		}
		rc = select_segment(sel, files[i].path, &seg, e);
		for (size_t k = 0; !rc && k < n; k++)
			rc = ask_part(sel, seg, files[i].path, &parts[k], dict, e);
	}
	return rc;
}
