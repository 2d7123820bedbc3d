/* SPDX-License-Identifier: Apache-2.0 */
/* Kills are read segment by segment; the circumstances of each are read from the store for its own
 * range. */
#include "tools/events/oomstory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold.h"
#include "tools/fold/ranking/top.h"
#include "tools/select/askrows.h"
#include "tools/select/filter.h"

#define SAMPLES_LEAST 10 /* fewer say nothing about shares */
#define GREW_MOST     5  /* kills with the lines that grew before: each reads ten minutes again */

struct reading {
	const struct selection *sel;
	struct oomstories *out;
	size_t cap;
	struct oomstory *at; /* the one at hand */
};

static void release(struct oomstory *x)
{
	free(x->comm);
	free(x->container);
	free(x->cgroup);
	free(x->asked_by);
	for (size_t i = 0; i < x->n_tasks; i++)
		free(x->tasks[i].name);
	for (size_t i = 0; i < x->n_others; i++)
		free(x->others[i].name);
	for (size_t i = 0; i < x->n_stacks; i++)
		free(x->stacks[i].name);
	oomgrew_release(&x->grew);
}

void oomstories_release(struct oomstories *x)
{
	for (size_t i = 0; i < x->n; i++)
		release(&x->rows[i]);
	free(x->rows);
	*x = (struct oomstories){0};
}

static int64_t number(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? -1 :
								sqlite3_column_int64(st, column);
}

/* --- which --- */

static bool wants(const struct selection *sel, const struct oomstory *x)
{
	struct store_process_row p = select_process_row(x->comm, x->container, x->container);

	p.pid = x->pid;
	p.cgroup = x->cgroup ? x->cgroup : "";
	return x->at_ns >= sel->from_ns && x->at_ns < sel->to_ns && select_wants_process(sel, &p);
}

/* Of one kill, which two segments, or the kernel and its process's end, may tell. */
static struct oomstory *known(struct oomstories *all, const struct oomstory *x)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->rows[i].pid == x->pid &&
		    llabs(all->rows[i].at_ns - x->at_ns) < NSEC_PER_SEC)
			return &all->rows[i];
	return NULL;
}

static void take_kill(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	bool log = sqlite3_column_int(st, 10);
	struct oomstory x = {.at_ns = sqlite3_column_int64(st, 0),
			     .comm = mem_strdup(askrows_text(st, 1)),
			     .pid = (uint32_t)sqlite3_column_int64(st, 2),
			     .container = mem_strdup(askrows_text(st, 3)),
			     .cgroup = log ? mem_strdup(askrows_text(st, 4)) : NULL,
			     .asked_by = log ? mem_strdup(askrows_text(st, 5)) : NULL,
			     .limit = number(st, 6),
			     .usage = number(st, 7),
			     .anon = number(st, 8),
			     .file = number(st, 9),
			     .shmem = number(st, 11),
			     .own_limit = sqlite3_column_int(st, 12),
			     .most = -1};
	struct oomstory *was;

	if (!wants(r->sel, &x)) {
		release(&x);
		return;
	}
	was = known(r->out, &x);
	if (was && (was->cgroup || !log)) {
		release(&x);
		return;
	}
	if (was) {
		release(was);
		*was = x;
		return;
	}
	mem_grow(r->out->rows, r->out->n, r->cap);
	r->out->rows[r->out->n++] = x;
}

static int each_segment(const struct selection *sel, const char *sql,
			void (*row)(void *ctx, sqlite3_stmt *st), void *ctx, struct err *e)
{
	return askrows_each(sel, NULL, &(struct askrows_part){sql, row, ctx}, 1, e);
}

static int by_time(const void *a, const void *b)
{
	const struct oomstory *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Is there a later kill of the same container, or outside of containers of the same command? */
static bool is_told_later(const struct oomstories *x, size_t at)
{
	const struct oomstory *k = &x->rows[at];

	for (size_t i = at + 1; i < x->n; i++)
		if (!strcmp(x->rows[i].container, k->container) &&
		    (*k->container || !strcmp(x->rows[i].comm, k->comm)))
			return true;
	return false;
}

/* The last of each victim first: one that is killed every minute hides no other. */
static void keep_last(struct oomstories *x, size_t most)
{
	cleanup_free bool *kept = mem_array(x->n + 1, sizeof(*kept));
	size_t n = 0;

	for (int again = 0; again < 2; again++)
		for (size_t i = x->n; i-- > 0 && n < most;)
			if (!kept[i] && (again || !is_told_later(x, i))) {
				kept[i] = true;
				n++;
			}
	n = 0;
	for (size_t i = 0; i < x->n; i++) {
		if (kept[i])
			x->rows[n++] = x->rows[i];
		else
			release(&x->rows[i]);
	}
	x->n = n;
}

static int kills_read(struct reading *r, size_t most, struct err *e)
{
	int rc = each_segment(
		r->sel,
		"SELECT at_ns, comm, pid, container, cgroup, asked_by, mem_limit, mem, anon, file, 1, shmem, cgroup = victim_cgroup FROM oom_kills"
		" WHERE ts BETWEEN ?1 AND ?2",
		take_kill, r, e);

	if (!rc)
		rc = each_segment(
			r->sel,
			"SELECT p.end_ns, p.comm, p.pid, coalesce(c.name, ''), '', '', NULL, NULL, NULL, NULL, 0, NULL, 0"
			" FROM process p LEFT JOIN containers c ON c.id = p.container"
			" WHERE p.how = 3 AND p.end_ns / 1000000000 BETWEEN ?1 AND ?2",
			take_kill, r, e);
	r->out->total = r->out->n;
	if (!rc && r->out->n) {
		qsort(r->out->rows, r->out->n, sizeof(*r->out->rows), by_time);
		keep_last(r->out, most);
	}
	return rc;
}

/* --- who held memory --- */

static void take_task(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct oomstory probe = {.at_ns = sqlite3_column_int64(st, 0),
				 .pid = (uint32_t)sqlite3_column_int64(st, 4)},
			*x = known(r->out, &probe);

	if (!x)
		return;
	x->all_tasks++;
	if (x->n_tasks < OOMSTORY_TASKS)
		x->tasks[x->n_tasks++] = (struct oomstory_holder){
			mem_strdup(askrows_text(st, 1)), (uint32_t)sqlite3_column_int64(st, 2),
			(uint64_t)sqlite3_column_int64(st, 3)};
}

static int tasks_read(struct reading *r, struct err *e)
{
	return each_segment(
		r->sel,
		"SELECT t.at_ns, t.comm, t.pid, t.rss + t.swap, p.pid FROM oom_tasks t JOIN process p ON p.id = t.process_id"
		" WHERE t.at_ns / 1000000000 BETWEEN ?1 AND ?2 ORDER BY t.at_ns, t.rss + t.swap DESC",
		take_task, r, e);
}

/* --- memory before --- */

static void other_put(struct oomstory *x, const char *name, uint64_t bytes)
{
	size_t at = x->n_others;

	while (at && x->others[at - 1].bytes < bytes)
		at--;
	if (at == OOMSTORY_OTHERS)
		return;
	if (x->n_others == OOMSTORY_OTHERS)
		free(x->others[--x->n_others].name);
	memmove(&x->others[at + 1], &x->others[at], (x->n_others - at) * sizeof(*x->others));
	x->others[at] = (struct oomstory_holder){mem_strdup(name), 0, bytes};
	x->n_others++;
}

static void other_drop(struct oomstory *x, const char *name)
{
	for (size_t i = 0; i < x->n_others; i++) {
		if (strcmp(x->others[i].name, name) != 0)
			continue;
		free(x->others[i].name);
		x->n_others--;
		memmove(&x->others[i], &x->others[i + 1], (x->n_others - i) * sizeof(*x->others));
		return;
	}
}

static void take_other(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const char *name = askrows_text(st, 0);

	if (!*name || !strcmp(name, r->at->container))
		return;
	other_drop(r->at, name); /* an older reading, of an earlier segment */
	other_put(r->at, name, (uint64_t)sqlite3_column_int64(st, 1));
}

/* A reading holds until the next one. */
static void take_point(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct oomstory *x = r->at;
	int64_t width = OOMSTORY_BEFORE_NS / OOMSTORY_POINTS,
		from = sqlite3_column_int64(st, 0) * NSEC_PER_SEC - (x->at_ns - OOMSTORY_BEFORE_NS);
	double bytes = sqlite3_column_double(st, 2);

	if (strcmp(askrows_text(st, 1), x->container) != 0 || from >= OOMSTORY_BEFORE_NS)
		return;
	for (int64_t i = from > 0 ? from / width : 0;
	     i < OOMSTORY_POINTS && i * width < from + 70 * NSEC_PER_SEC; i++)
		x->curve[i] = bytes;
	x->most = bytes > x->most ? bytes : x->most;
}

/* Readings are seconds apart, memory can grow in less: at the kill it was what the kernel said. */
static void add_kill(struct oomstory *x)
{
	const int64_t held = x->usage >= 0 ? x->usage : x->limit;

	if (!x->own_limit || x->most < 0 || (double)held <= x->most)
		return;
	x->most = (double)held;
	x->curve[OOMSTORY_POINTS - 1] = x->most;
}

/* --- what ran before --- */

static void stacks_read(struct oomstory *x, const struct selection *sel)
{
	struct fold_opts o = {.kind = STORE_KIND_CPU, .flat = true};
	struct flame_tree tree = {0};
	struct fold *f;
	struct top top;
	struct err none = {0};

	if (fold_make(sel, &o, &f, &none)) /* there was no CPU time, or it was not recorded */
		return;
	top_of_flat(&top, &tree, f);
	for (size_t i = 0; i < top.n_rows && x->n_stacks < OOMSTORY_STACKS && top.rows[i].self_ns &&
			   f->nodes[0].total_samples >= SAMPLES_LEAST;
	     i++)
		x->stacks[x->n_stacks++] = (struct oomstory_function){
			mem_strdup(tree.frames[top.rows[i].frame].name),
			(double)top.rows[i].self_ns / (double)f->nodes[0].total_ns};
	top_release(&top);
	flame_tree_release(&tree);
	fold_free(f);
}

/* Another window of the same store, of the container or the command. */
static int window(const struct oomstory *x, const char *store, int64_t before_ns, bool narrow,
		  struct selection **out, struct err *e)
{
	const char *who = *x->container ? x->container : x->comm;
	struct option_list one = {&who, 1, 1};
	struct select_args a = {.self = !narrow};
	char from[32], to[32];

	snprintf(from, sizeof(from), "%.3f", 1e-9 * (double)(x->at_ns - before_ns));
	snprintf(to, sizeof(to), "%.3f", 1e-9 * (double)(x->at_ns + 1000000));
	a.from = from;
	a.to = to;
	if (narrow && *x->container)
		a.container = one;
	else if (narrow)
		a.comm = one;
	return select_new(&a, store, NULL, 0, true, out, e);
}

static void grew_read(struct oomstory *x, const char *store)
{
	bool host = x->cgroup && !*x->cgroup;
	enum oomgrew_of of = host ? OOMGREW_HOST : *x->container ? OOMGREW_CONTAINER : OOMGREW_COMM;

	oomgrew_read(store, of, *x->container ? x->container : x->comm, x->at_ns, &x->grew);
}

static int around_read(struct reading *r, struct oomstory *x, struct err *e)
{
	struct selection *sel = NULL;
	int rc = window(x, r->sel->store, OOMSTORY_BEFORE_NS, false, &sel, e);

	for (size_t i = 0; i < OOMSTORY_POINTS; i++)
		x->curve[i] = -1;
	r->at = x;
	if (!rc && *x->container)
		rc = each_segment(
			sel,
			"SELECT ts, container, coalesce(working, mem) FROM container_stats WHERE ts BETWEEN ?1 - 70 AND ?2"
			" AND coalesce(working, mem) IS NOT NULL ORDER BY ts",
			take_point, r, e);
	add_kill(x);
	if (!rc)
		rc = each_segment(
			sel,
			"SELECT container, coalesce(anon + coalesce(kernel, 0), working, mem), max(ts) FROM container_stats WHERE ts BETWEEN ?2 - 130 AND ?2"
			" GROUP BY container HAVING coalesce(working, mem) IS NOT NULL",
			take_other, r, e);
	select_free(sel);
	sel = NULL;
	if (!rc && !window(x, r->sel->store, OOMSTORY_STACKS_NS, true, &sel, &(struct err){0}))
		stacks_read(x, sel);
	select_free(sel);
	if (!rc && x < r->out->rows + GREW_MOST)
		grew_read(x, r->sel->store);
	return rc;
}

int oomstories_read(const struct selection *sel, size_t most, struct oomstories *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	int rc;

	*out = (struct oomstories){0};
	rc = kills_read(&r, most, e);
	if (!rc)
		rc = tasks_read(&r, e);
	for (size_t i = 0; !rc && i < out->n; i++)
		rc = around_read(&r, &out->rows[i], e);
	if (rc)
		oomstories_release(out);
	return rc;
}
