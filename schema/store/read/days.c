/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/read/days.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/stamp.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/dict/dict_rows.h"
#include "schema/store/read/reading.h"

#define DAY_NAME 8 /* YYYYMMDD, as names of segments begin */

static bool off, used;

bool store_days_off(void)
{
	off = true;
	return used;
}

bool store_segment_is_day(const struct store_segment *s)
{
	return s->day;
}

int reading_refuse_day(const struct store_segment *s, struct err *e)
{
	return err_set(e, -EXDEV, EXIT_STORE, "%s has no answer to this: its archives have",
		       s->path);
}

/* ---- what a day's tables say ---- */

static void run_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	(void)ctx;
	s->day_runs[id] = (struct reading_day_run){dict_rows_id(r, 1, s->dict.n_runs),
						   dict_rows_u32(r, 2), dict_rows_u32(r, 3)};
}

static void task_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	(void)ctx;
	s->day_files[id] = (uint64_t)dict_rows_int(r, 1);
}

int reading_load_day(struct store_segment *s, struct err *e)
{
	int rc;

	s->day_runs = mem_array(s->dict.n_runs + 1, sizeof(*s->day_runs));
	s->day_files = mem_array(s->n_tasks + 1, sizeof(*s->day_files));
	rc = dict_rows_each(s, "run, first, number, kinds", "day_run", s->dict.n_runs, run_row,
			    NULL, e);
	return rc ? rc :
		    dict_rows_each(s, "task, files", "day_task", s->n_tasks, task_row, NULL, e);
}

void store_task_runs(const struct store_segment *s, uint32_t task, uint32_t run,
		     void (*each)(void *ctx, uint32_t run), void *ctx)
{
	if (!s->day_runs || task >= s->n_tasks || !s->day_files[task]) {
		each(ctx, run);
		return;
	}
	for (uint32_t i = 1; i < s->dict.n_runs; i++)
		if (s->day_runs[i].first == run && s->day_runs[i].number < 64 &&
		    s->day_files[task] >> s->day_runs[i].number & 1)
			each(ctx, i);
}

/* ---- rule 1 ---- */

struct group { /* segments of a folder and a day, one after the other */
	const struct store_segment_info *info;
	size_t n;
};

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool same_day(const char *a, const char *b)
{
	const size_t n = (size_t)(name_of(a) - a) + DAY_NAME;

	return folder_is_segment_name(name_of(a)) && folder_is_segment_name(name_of(b)) &&
	       !strncmp(a, b, n);
}

static bool path_of(const char *segment, char out[512])
{
	const char *name = name_of(segment);

	return (size_t)snprintf(out, 512, "%.*sdays/%.*s.db", (int)(name - segment), segment,
				DAY_NAME, name) < 512 &&
	       access(out, R_OK) == 0;
}

/* Do the group's segments from *first on begin with those of the file? */
static bool has_files(struct sqlite3 *db, const struct group *g, size_t *first, size_t *n)
{
	sqlite3_stmt *st = NULL;
	bool same = sqlite3_prepare_v2(db, "SELECT name, stamp FROM day_file ORDER BY number", -1,
				       &st, NULL) == SQLITE_OK;

	*first = *n = 0;
	while (same && sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		while (name && !*n && *first < g->n && strcmp(name_of(g->info[*first].path), name))
			++*first;
		same = name && *first + *n < g->n &&
		       !strcmp(name_of(g->info[*first + *n].path), name) &&
		       stamp_of(g->info[*first + *n].path) == sqlite3_column_int64(st, 1);
		++*n;
	}
	sqlite3_finalize(st);
	return same && *n;
}

static void span_take(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n,
		      const struct store_segment *s, sqlite3_stmt *st, struct reading_span *out)
{
	const char *name = (const char *)sqlite3_column_text(st, 0);
	const int64_t from = sqlite3_column_int64(st, 2), to = sqlite3_column_int64(st, 3);
	char path[PATH_MAX];

	for (size_t i = 0; name && i < n; i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		if (from >= 0 && from < to && to < INT64_MAX / 2 &&
		    stamp_of(path) == sqlite3_column_int64(st, 1))
			out[i] = (struct reading_span){from, to, s->schema};
		return;
	}
}

void reading_day_spans(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n,
		       struct reading_span *out)
{
	for (size_t i = 0, end; !off && i < n; i = end) {
		struct store_segment *s = NULL;
		struct err unsaid = {0};
		sqlite3_stmt *st = NULL;
		char first[PATH_MAX], path[512];

		for (end = i + 1; end < n && !strncmp(names[i], names[end], DAY_NAME); end++)
			;
		snprintf(first, sizeof(first), "%s/%s", dir, names[i]);
		if (end == i + 1 || !path_of(first, path) || store_segment_open(path, &s, &unsaid))
			continue;
		if (s->day &&
		    sqlite3_prepare_v2(s->db, "SELECT name, stamp, from_ns, to_ns FROM day_file",
				       -1, &st, NULL) == SQLITE_OK)
			while (sqlite3_step(st) == SQLITE_ROW)
				span_take(dir, names + i, end - i, s, st, out + i);
		sqlite3_finalize(st);
		store_segment_close(s);
	}
}

static bool has_range(struct sqlite3 *db, int64_t from_ns, int64_t to_ns)
{
	const int64_t first = sql_number(db, "SELECT value FROM meta WHERE key = 'day_first'", -1),
		      last = sql_number(db, "SELECT value FROM meta WHERE key = 'day_last'", -1);

	return first >= 0 && last >= first && last < INT64_MAX / NSEC_PER_SEC - 1 &&
	       from_ns <= first * NSEC_PER_SEC && to_ns >= (last + 1) * NSEC_PER_SEC;
}

static bool day_of(const struct group *g, int64_t from_ns, int64_t to_ns, struct store_part *part)
{
	struct store_segment *s = NULL;
	struct err unsaid = {0};
	bool fits;

	if (!path_of(g->info->path, part->path) || store_segment_open(part->path, &s, &unsaid))
		return false;
	fits = s->day && has_range(s->db, from_ns, to_ns) &&
	       has_files(s->db, g, &part->first, &part->n);
	store_segment_close(s);
	return fits;
}

static void add(struct store_part *parts, size_t *n, const struct store_segment_info *info,
		size_t i)
{
	struct store_part *p = &parts[(*n)++];

	snprintf(p->path, sizeof(p->path), "%s", info[i].path);
	p->day = false;
	p->first = i;
	p->n = 1;
}

void store_days(const struct store_segment_info *info, size_t n, int64_t from_ns, int64_t to_ns,
		struct store_part **out, size_t *n_out)
{
	struct store_part *parts = mem_array(n + 1, sizeof(*parts));
	size_t made = 0;

	for (size_t i = 0, end; i < n; i = end) {
		struct store_part day = {.day = true};

		for (end = i + 1; end < n && same_day(info[i].path, info[end].path); end++)
			;
		if (!off && end > i + 1 &&
		    day_of(&(struct group){&info[i], end - i}, from_ns, to_ns, &day)) {
			day.first += i;
			for (size_t k = i; k < day.first; k++)
				add(parts, &made, info, k);
			parts[made++] = day;
			used = true;
			i = day.first + day.n;
		}
		for (; i < end; i++)
			add(parts, &made, info, i);
	}
	*out = parts;
	*n_out = made;
}
