/* SPDX-License-Identifier: Apache-2.0 */
/* dictionary: a segment's dictionary, read into arrays by id, whole or what a range of time needs
 * of it (dict_some.c). Missing rows stay zeroed. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/files/readonly.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/dict/dict_rows.h"

#define INLINED_MAX 64 /* functions at one place; as in the views */
#define UNFOLD_MAX  8  /* frames for one number of a stack, on average */

/* --- stacks and series --- */

void dict_series_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	(void)ctx;
	s->series_task[id] = dict_rows_u32(r, 1);
	s->series_stack[id] = dict_rows_u32(r, 2);
	s->series_label[id] = dict_rows_u32(r, 3);
}

int dict_series_slots(struct store_segment *s, struct err *e)
{
	int rc = dict_rows_slots(s, "SELECT max(id) FROM series", &s->n_series, e);

	if (rc)
		return rc;
	s->series_task = mem_array(s->n_series, sizeof(*s->series_task));
	s->series_stack = mem_array(s->n_series, sizeof(*s->series_stack));
	s->series_label = mem_array(s->n_series, sizeof(*s->series_label));
	return 0;
}

void dict_task_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	(void)ctx;
	s->tasks[id] = (struct reading_task){
		.run = dict_rows_id(r, 1, s->dict.n_runs),
		.process = dict_rows_id(r, 2, s->dict.n_processes),
		.tid = dict_rows_u32(r, 3),
		.kind = dict_rows_u32(r, 4),
		.thread = dict_rows_text(s, r, 5),
	};
}

/* The physical function first, then what was inlined into it; as many as the damaged file's bound
 * allows. */
static size_t frames_at(const struct store_segment *s, uint32_t frame, uint32_t out[INLINED_MAX])
{
	size_t n = 0;

	for (; frame && n < INLINED_MAX; frame = s->frames[frame].outer)
		out[n++] = frame;
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t swap = out[i];

		out[i] = out[n - 1 - i];
		out[n - 1 - i] = swap;
	}
	return n;
}

static bool has_inlined(const struct store_segment *s)
{
	for (size_t i = 0; i < s->dict.n_frames; i++)
		if (s->frames[i].outer)
			return true;
	return false;
}

/* A stack names the innermost function of a place: here the ones it was inlined into come before
 * it. A file that says more than any compiler made keeps the innermost alone past UNFOLD_MAX. */
static void unfold_inlined(struct store_segment *s)
{
	struct stacktree old = s->tree, t = {.n_stacks = old.n_stacks, .node = old.node};
	size_t left = old.n * UNFOLD_MAX;
	uint32_t *moved;

	if (!has_inlined(s))
		return;
	moved = mem_array(old.n + 1, sizeof(*moved));
	for (size_t i = 0; i < old.n; i++) {
		uint32_t at[INLINED_MAX], parent = i ? moved[old.parent[i]] : 0;
		size_t n = 0;

		if (i && left && s->frames[old.frame[i]].outer)
			n = frames_at(s, old.frame[i], at);
		if (!n)
			at[n++] = old.frame[i];
		left -= n < left ? n : left;
		for (size_t k = 0; k < n; k++) {
			stacktree_grow(&t);
			t.parent[t.n] = parent;
			t.frame[t.n] = at[k];
			parent = (uint32_t)t.n++;
		}
		moved[i] = parent;
	}
	for (size_t i = 0; i < t.n_stacks; i++)
		t.node[i] = moved[t.node[i]];
	free(moved);
	free(old.parent);
	free(old.frame);
	s->tree = t;
}

static void rate_row(struct store_segment *s, const struct dict_row *r, uint32_t run, void *ctx)
{
	(void)ctx;
	s->rates[s->n_rates++] = (struct reading_rate){
		.run = run,
		.process = dict_rows_id(r, 1, s->dict.n_processes),
		.ts = dict_rows_int(r, 2) + s->t0,
		.bytes = (uint64_t)dict_rows_int(r, 3),
	};
}

static int load_rates(struct store_segment *s, struct err *e)
{
	int64_t n = sql_number(s->db, "SELECT count(*) FROM rate_row", 0);

	s->rates = mem_array((size_t)n, sizeof(*s->rates));
	return dict_rows_each(s, "run, process, ts, rate", "rate_row ORDER BY run, process, ts",
			      s->dict.n_runs, rate_row, NULL, e);
}

static int load_stacks(struct store_segment *s, struct err *e)
{
	int rc = stacktree_load(s->db, &s->tree);

	return rc == SQLITE_OK ?
		       0 :
		       err_set(e, -EBADMSG, EXIT_STORE,
			       "the store's segment %s is damaged: stacks out of order", s->path);
}

/* Stacks and frames are known: stacks get what was inlined into their functions. */
static void finish_stacks(struct store_segment *s)
{
	for (size_t i = 0; i < s->tree.n; i++)
		if (s->tree.frame[i] >= s->dict.n_frames)
			s->tree.frame[i] = 0;
	unfold_inlined(s);
	s->dict.n_stacks = s->tree.n;
}

static int load_tasks(struct store_segment *s, struct err *e)
{
	int rc = dict_rows_slots(s, "SELECT max(id) FROM task", &s->n_tasks, e);

	if (rc)
		return rc;
	s->tasks = mem_array(s->n_tasks, sizeof(*s->tasks));
	for (size_t i = 0; i < s->n_tasks; i++)
		s->tasks[i].thread = "";
	return dict_rows_each(s, DICT_TASK_COLUMNS, "task", s->n_tasks, dict_task_row, NULL, e);
}

/* Series and tasks are there, and stacks, if `stacks`: series say which stack, by its id there. */
static void finish_series(struct store_segment *s, bool stacks)
{
	for (size_t i = 0; i < s->n_series; i++) {
		const uint32_t stack = s->series_stack[i];

		if (stacks && stack) /* a row that is missing is not touched: it may take no memory
				      */
			s->series_stack[i] = s->tree.node[stack < s->tree.n_stacks ? stack : 0];
		if (s->series_task[i] >= s->n_tasks)
			s->series_task[i] = 0;
	}
}

/* --- runs --- */

static void run_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	uint32_t bucket_s = dict_rows_u32(r, 4);

	(void)ctx;
	s->runs[id] = (struct store_run_row){
		.family = dict_rows_text(s, r, 1),
		.options = dict_rows_text(s, r, 2),
		.scope = (enum store_scope)dict_rows_id(r, 3, STORE_SCOPE_PARTIAL + 1),
		.bucket_s = bucket_s ? bucket_s : 1,
		.cpus = dict_rows_u32(r, 5),
		.from_ns = dict_rows_int(r, 6),
		.to_ns = dict_rows_int(r, 7),
		.elsewhere = dict_rows_int(r, 8) == STORE_RUN_ELSEWHERE,
		.present = true,
	};
}

struct period_fill {
	size_t n;
};

static void period_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct period_fill *f = ctx;
	struct choice_run *run = &s->choice_runs[id];

	if (!run->n_periods)
		run->periods = &s->periods[f->n];
	s->periods[f->n++] =
		(struct choice_period){dict_rows_int(r, 1), (uint64_t)dict_rows_int(r, 2)};
	run->n_periods++;
	s->runs[id].period_ns = (uint64_t)dict_rows_int(r, 2);
}

static uint32_t family_number(const struct store_segment *s, size_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (s->runs[k].present && !strcmp(s->runs[k].family, s->runs[i].family))
			return k;
	return (uint32_t)i;
}

static int load_runs(struct store_segment *s, struct err *e)
{
	struct period_fill fill = {0};
	int64_t n_periods = sql_number(s->db, "SELECT count(*) FROM run_period", 0);
	size_t n = 0;
	int rc = dict_rows_slots(s, "SELECT max(id) FROM run", &n, e);

	if (rc)
		return rc;
	s->runs = mem_array(n, sizeof(*s->runs));
	s->choice_runs = mem_array(n, sizeof(*s->choice_runs));
	s->periods = mem_array((size_t)n_periods, sizeof(*s->periods));
	for (size_t i = 0; i < n; i++)
		s->runs[i] = (struct store_run_row){.family = "", .options = "", .bucket_s = 1};
	s->dict.n_runs = n;
	rc = dict_rows_each(s, "id, family, options, scope, bucket_s, cpus, from_ns, to_ns, state",
			    "run", n, run_row, NULL, e);
	if (!rc)
		rc = dict_rows_each(s, "run, from_ns, period_ns",
				    "run_period ORDER BY run, from_ns", n, period_row, &fill, e);
	for (size_t i = 0; i < n; i++) {
		struct choice_run *c = &s->choice_runs[i];

		c->present = s->runs[i].present;
		c->elsewhere = s->runs[i].elsewhere;
		c->scope = s->runs[i].scope;
		c->bucket_s = s->runs[i].bucket_s;
		c->from_ns = s->runs[i].from_ns;
		c->to_ns = s->runs[i].to_ns;
		c->family = family_number(s, i);
	}
	return rc;
}

/* --- all of it --- */

static void dict_point(struct store_segment *s)
{
	s->dict.processes = s->processes;
	s->dict.images = s->images;
	s->dict.frames = s->frames;
	s->dict.n_series = s->n_series;
	s->dict.n_tasks = s->n_tasks;
	s->dict.runs = s->runs;
	s->dict.stack_parent = s->tree.parent;
	s->dict.stack_frame = s->tree.frame;
}

/* What is read from here on is of one instant; a reader is short-lived, so the log can be folded in
 * again soon. */
static void begin_snapshot(struct store_segment *s)
{
	if (!s->snapshot && sqlite3_get_autocommit(s->db))
		s->snapshot = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
}

void store_segment_narrow(struct store_segment *s, int64_t from_ns, int64_t to_ns)
{
	if (s->has_tasks || s->archived)
		return;
	sqlite3_exec(s->db, "PRAGMA cache_size=-512", NULL, NULL,
		     NULL); /* KB: rows are looked up here and there, and not again */
	s->narrow_from_ns = from_ns;
	s->narrow_to_ns = to_ns;
}

static void label_row(struct store_segment *s, const struct dict_row *r, uint32_t task, void *ctx)
{
	(void)ctx;
	s->tasks[task].labels = dict_rows_text(s, r, 1);
}

/* A file of an earlier schema has none. */
static int load_labels(struct store_segment *s, struct err *e)
{
	if (!sql_number(s->db, "SELECT EXISTS (SELECT 1 FROM pragma_table_info('task_label'))", 0))
		return 0;
	return dict_rows_each(s, "task, labels", "task_label", s->n_tasks, label_row, NULL, e);
}

/* What rows of the range need. Where more than one run may say who is covered, or columns have to
 * be read whole, it is all. */
static int load_some(struct store_segment *s, struct err *e)
{
	int rc = load_runs(s, e);

	if (!rc)
		rc = dict_some_load(s, e);
	if (rc)
		return rc;
	finish_stacks(s);
	finish_series(s, true);
	rc = load_rates(s, e);
	if (!rc)
		rc = load_labels(s, e);
	s->has_processes = s->has_tasks = s->has_series = s->has_stacks = !rc;
	return rc;
}

static int load_processes(struct store_segment *s, struct err *e)
{
	int rc = s->has_processes ? 0 : dict_processes_load(s, e);

	s->has_processes = !rc;
	return rc;
}

static int load_to_tasks(struct store_segment *s, struct err *e)
{
	int rc = load_processes(s, e);

	if (rc || s->has_tasks)
		return rc;
	rc = load_runs(s, e);
	if (!rc)
		rc = load_tasks(s, e);
	if (!rc)
		rc = load_rates(s, e);
	if (!rc)
		rc = load_labels(s, e);
	if (!rc && s->day)
		rc = reading_load_day(s, e);
	s->has_tasks = !rc;
	return rc;
}

static int load_to_series(struct store_segment *s, struct err *e)
{
	int rc = load_to_tasks(s, e);

	if (!rc)
		rc = dict_series_load(s, e);
	if (rc)
		return rc;
	finish_series(s, s->has_stacks);
	s->has_series = true;
	return 0;
}

/* Whatever does not need the stacks is read in parallel with them. */
static int load_to_stacks(struct store_segment *s, bool series, struct err *e)
{
	struct err other_err = {0};
	struct dict_thread *other = dict_thread_begin(s, series);
	int rc = load_to_tasks(s, e), other_rc;

	if (!rc)
		rc = load_stacks(s, e);
	other_rc = dict_thread_end(other, &other_err);
	if (!rc && other_rc && e)
		*e = other_err;
	rc = rc ? rc : other_rc;
	if (rc)
		return rc;
	finish_stacks(s);
	if (series || s->has_series)
		finish_series(s, true);
	s->has_series = s->has_series || series;
	s->has_stacks = true;
	return 0;
}

static int loaded(struct store_segment *s, int rc)
{
	if (rc)
		reading_unload(s);
	else
		dict_point(s);
	return rc;
}

int reading_load_processes(struct store_segment *s, struct err *e)
{
	begin_snapshot(s);
	return loaded(s, load_processes(s, e));
}

int reading_load_tasks(struct store_segment *s, struct err *e)
{
	begin_snapshot(s);
	return loaded(s, s->narrow_to_ns ? load_some(s, e) : load_to_tasks(s, e));
}

int reading_load_series(struct store_segment *s, struct err *e)
{
	begin_snapshot(s);
	return loaded(s, s->narrow_to_ns ? load_some(s, e) : load_to_series(s, e));
}

int reading_load_stacks(struct store_segment *s, bool series, struct err *e)
{
	begin_snapshot(s);
	if (s->narrow_to_ns)
		return loaded(s, load_some(s, e));
	if (s->has_stacks)
		return loaded(s, load_to_series(s, e));
	return loaded(s, load_to_stacks(s, series && !s->has_series, e));
}

static void dict_release(struct store_segment *s)
{
	free(s->processes);
	free(s->images);
	free(s->frames);
	free(s->runs);
	free(s->periods);
	free(s->tree.parent);
	free(s->tree.frame);
	free(s->tree.node);
	free(s->tasks);
	free(s->series_task);
	free(s->series_stack);
	free(s->series_label);
	free(s->rates);
	free(s->day_runs);
	free(s->day_files);
	dict_rows_strings_free(&s->strings);
}

void reading_unload(struct store_segment *s)
{
	/* what is temporary, views and sums, was made within it, and stays */
	if (s->snapshot && sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		s->has_views = false;
		s->sums = (struct reading_sums){0};
	}
	free(s->choice_runs);
	if (!s->borrows)
		dict_release(s);
	*s = (struct store_segment){.db = s->db,
				    .path = s->path,
				    .host = s->host,
				    .t0 = s->t0,
				    .schema = s->schema,
				    .archived = s->archived,
				    .day = s->day,
				    .checked = s->checked,
				    .has_views = s->has_views,
				    .sums = s->sums};
}

int store_segment_share(struct store_segment *s, const struct store_segment *of)
{
	struct store_segment same = *of;

	if (s->has_processes || !of->has_series || !of->has_stacks || !s->archived ||
	    strcmp(s->path, of->path))
		return -EAGAIN;
	begin_snapshot(s);
	if (!s->snapshot || readonly_archived_ns(s->db) != readonly_archived_ns(of->db)) {
		reading_unload(s);
		return -EAGAIN;
	}
	same.db = s->db;
	same.path = s->path;
	same.sums = s->sums;
	same.snapshot = true;
	same.borrows = true;
	same.choice_runs = mem_array(same.dict.n_runs,
				     sizeof(*same.choice_runs)); /* written by each question */
	memcpy(same.choice_runs, of->choice_runs, same.dict.n_runs * sizeof(*same.choice_runs));
	for (size_t i = 0; i < same.dict.n_runs; i++)
		same.choice_runs[i].has = NULL;
	*s = same;
	return 0;
}
