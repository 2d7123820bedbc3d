/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/fold_slices.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"

/* The widest bucket of the runs that have something of the kind, 0 (wall time): of any; `run` 0: of
 * any. */
static void bucket_of_run(sqlite3 *db, const struct selection *sel, int64_t run,
			  enum store_kind kind, int64_t *bucket_s)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(
		    db,
		    "SELECT max(bucket_s) FROM run WHERE from_ns < ?2 AND to_ns > ?1 AND (?3 = 0 OR id = ?3)"
		    " AND EXISTS (SELECT 1 FROM task t WHERE t.run = run.id AND (?4 = 0 OR t.kind = ?4))",
		    -1, &st, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, sel->from_ns);
		sqlite3_bind_int64(st, 2, sel->to_ns);
		sqlite3_bind_int64(st, 3, run);
		sqlite3_bind_int64(st, 4, kind);
		if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int64(st, 0) > *bucket_s)
			*bucket_s = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
}

static int bucket_of_segment(const char *path, const struct selection *sel, enum store_kind kind,
			     int64_t *bucket_s, struct err *e)
{
	struct store_segment *s = NULL;
	int64_t run = select_run_in(sel, path, 0);
	int rc = run < 0 ? 0 : select_segment(sel, path, &s, e);

	for (size_t i = 1; rc == 0 && run >= 0; i++) {
		bucket_of_run(store_segment_tables(s), sel, run, kind, bucket_s);
		run = select_run_in(sel, path, i);
	}
	return rc;
}

int fold_slices_bucket(const struct selection *sel, enum store_kind kind, int64_t *bucket_s,
		       struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < sel->n_segments && rc == 0; i++)
		rc = bucket_of_segment(sel->segments[i].path, sel, kind, bucket_s, e);
	return rc;
}

static int64_t round_up(int64_t v, int64_t unit)
{
	return v > INT64_MAX - unit ? v - v % unit : (v + unit - 1) / unit * unit;
}

int fold_slices_plan(const struct selection *sel, uint32_t max, struct fold *f, struct err *e)
{
	int64_t bucket_s = 1, bucket_ns, from, to, each, at;
	int rc = fold_slices_bucket(sel, f->kind->kind, &bucket_s, e);

	if (rc)
		return rc;
	bucket_ns = bucket_s * NSEC_PER_SEC;
	from = round_up(sel->from_ns > 0 ? sel->from_ns : 0, bucket_ns);
	to = round_up(sel->to_ns, bucket_ns);
	each = to > from ? round_up((to - from + (int64_t)max - 1) / (int64_t)max, bucket_ns) :
			   bucket_ns;
	f->slices = mem_array(max, sizeof(*f->slices));
	at = sel->from_ns;
	do {
		from += each;
		f->slices[f->n_slices++] =
			(struct fold_slice){.from_ns = at, .to_ns = from < to ? from : sel->to_ns};
		at = from;
	} while (from < to && f->n_slices < max);
	f->slices[f->n_slices - 1].to_ns = sel->to_ns;
	f->slice_ns = each;
	return 0;
}

/* --- of whole files --- */

#define DAY_NS       (86400ll * NSEC_PER_SEC)
#define MANY_DAYS    12
#define DAY_NAME     8    /* YYYYMMDD, as names of segments begin */
#define MOST_OF_TIME 0.75 /* of the longest file's */

static int64_t begin_of(const struct selection *sel, const struct store_segment_info *s)
{
	return s->from_ns > sel->from_ns ? s->from_ns : sel->from_ns;
}

static int64_t end_of(const struct selection *sel, const struct store_segment_info *s)
{
	return s->to_ns < sel->to_ns ? s->to_ns : sel->to_ns;
}

static const char *name_of(const struct store_segment_info *s)
{
	const char *slash = strrchr(s->path, '/');

	return slash ? slash + 1 : s->path;
}

static int64_t longest_of(const struct selection *sel)
{
	int64_t longest = 1;

	for (size_t i = 0; i < sel->n_segments; i++) {
		const int64_t ns =
			end_of(sel, &sel->segments[i]) - begin_of(sel, &sel->segments[i]);

		longest = ns > longest ? ns : longest;
	}
	return longest;
}

/* Does a slice begin with file i, the last one having begun with file `last`? */
static bool begins_slice(const struct selection *sel, size_t last, size_t i, bool by_days,
			 int64_t each_ns)
{
	const struct store_segment_info *before = &sel->segments[i - 1], *at = &sel->segments[i];
	const int64_t so_far = begin_of(sel, at) - begin_of(sel, &sel->segments[last]);

	return by_days ? strncmp(name_of(before), name_of(at), DAY_NAME) != 0 && so_far > 0 :
			 (double)so_far >= MOST_OF_TIME * (double)each_ns;
}

bool fold_slices_of_files(const struct selection *sel, uint32_t max, struct fold *f)
{
	const bool by_days = sel->to_ns - sel->from_ns >= MANY_DAYS * DAY_NS;
	const int64_t longest = longest_of(sel),
		      least = (sel->to_ns - sel->from_ns) / (int64_t)max * 4 / 3 + 1,
		      each = by_days         ? DAY_NS :
			     longest > least ? longest :
					       least;
	struct fold_slice *slices;
	size_t n = 0, last = 0;

	if (sel->rec || store_names_hosts() || strchr(sel->store, STORE_LIST) ||
	    sel->n_segments < FOLD_SLICES_OF_FILES || sel->gap_from_ns != sel->gap_to_ns)
		return false;
	slices = mem_array(sel->n_segments, sizeof(*slices));
	slices[n++] = (struct fold_slice){.from_ns = sel->from_ns};
	for (size_t i = 1; i < sel->n_segments; i++) {
		if (!begins_slice(sel, last, i, by_days, each))
			continue;
		slices[n - 1].to_ns = begin_of(sel, &sel->segments[i]);
		slices[n] = (struct fold_slice){.from_ns = slices[n - 1].to_ns};
		n++;
		last = i;
	}
	slices[n - 1].to_ns = sel->to_ns;
	if (n < FOLD_SLICES_OF_FILES || n > max) {
		free(slices);
		return false;
	}
	f->slices = slices;
	f->n_slices = n;
	f->slice_ns = each; /* a longer one has a gap, or a file more */
	return true;
}

uint32_t fold_slice_of_file(const struct selection *sel, const struct fold *f,
			    const struct store_segment_info *file)
{
	const int64_t from = begin_of(sel, file), to = end_of(sel, file),
		      middle = from + (to - from) / 2;
	uint32_t i = 0;

	while (i + 1 < f->n_slices && middle >= f->slices[i].to_ns)
		i++;
	return i;
}

/* --- what was recorded --- */

void fold_slices_counted(const struct selection *sel, uint32_t bucket_s, int64_t *from_ns,
			 int64_t *to_ns)
{
	int64_t bucket_ns = (bucket_s ? bucket_s : 1) * NSEC_PER_SEC;

	*from_ns = round_up(sel->from_ns > 0 ? sel->from_ns : 0, bucket_ns);
	*to_ns = round_up(sel->to_ns, bucket_ns);
}

void fold_spans_add(struct fold_spans *s, int64_t from_ns, int64_t to_ns)
{
	if (from_ns >= to_ns)
		return;
	mem_grow(s->v, s->n, s->cap);
	s->v[s->n++] = (struct fold_span){from_ns, to_ns};
}

void fold_spans_note(struct fold_spans *s, const struct selection *sel, const struct store_dict *d,
		     int64_t run)
{
	for (size_t i = 1; i < d->n_runs; i++) {
		const struct store_run_row *r = &d->runs[i];
		int64_t from, to;

		if (!r->present || (run && (int64_t)i != run) || !r->bucket_s)
			continue;
		fold_slices_counted(sel, r->bucket_s, &from, &to);
		from = r->from_ns > from ? r->from_ns : from;
		to = r->to_ns < to ? r->to_ns : to;
		fold_spans_add(s, from, to);
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct fold_span *x = a, *y = b;

	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

void fold_spans_cover(struct fold_spans *s, struct fold_slice *slices, size_t n)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_begin);
	for (size_t i = 0; i < n; i++) {
		/* what is at the ends was cut to the range already, bucket by bucket */
		int64_t at = i ? slices[i].from_ns : INT64_MIN,
			end = i + 1 < n ? slices[i].to_ns : INT64_MAX;

		slices[i].covered_ns = 0;
		for (size_t k = 0; k < s->n && s->v[k].from_ns < end; k++) {
			int64_t from = s->v[k].from_ns > at ? s->v[k].from_ns : at;
			int64_t to = s->v[k].to_ns < end ? s->v[k].to_ns : end;

			if (from >= to)
				continue;
			slices[i].covered_ns += (uint64_t)(to - from);
			at = to;
		}
	}
	free(s->v);
	*s = (struct fold_spans){0};
}

uint64_t fold_spans_length(struct fold_spans *s)
{
	struct fold_slice all = {0};

	fold_spans_cover(s, &all, 1);
	return all.covered_ns;
}
