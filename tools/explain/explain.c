/* SPDX-License-Identifier: Apache-2.0 */
/* explain: which statements there are. How they are said: explain_say.c. */
#include "tools/explain/explain.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "schema/store/model/stored.h"
#include "schema/store/read/waits.h"
#include "tools/explain/explain_inner.h"
#include "tools/explain/explain_unread.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/fold_slices.h"
#include "tools/print/when.h"
#include "tools/select/askrows.h"

#define WINDOW_NS  (60ll * NSEC_PER_SEC)
#define BEFORE_NS  (600ll * NSEC_PER_SEC)
#define NEW_SHARE  0.02 /* of the other side: as good as nothing */
#define STANDS_FOR 0.8  /* of a function's change: it is said with its group */
#define CAME       40   /* samples of a container or command that has none in the other window */
#define WAITING    0.25
/* what bytes held, or allocated in a second, are a share of, at least: a few more are no cause,
 * however small all heaps are */
#define HEAP_LEAST (64.0 * 1024 * 1024)

static const enum store_kind KINDS[EXPLAIN_KINDS] = {
	STORE_KIND_CPU,   STORE_KIND_INUSE,  STORE_KIND_ALLOC,    STORE_KIND_RUNQUEUE,
	STORE_KIND_MUTEX, STORE_KIND_OFFCPU, STORE_KIND_JAVALOCK, STORE_KIND_JAVAALLOC};

/* --- the two windows --- */

void explain_span_set(struct select_args *a, struct explain_span *s, int64_t from_ns, int64_t to_ns)
{
	snprintf(s->from, sizeof(s->from), "%lld.%09lld", (long long)(from_ns / NSEC_PER_SEC),
		 (long long)(from_ns % NSEC_PER_SEC));
	snprintf(s->to, sizeof(s->to), "%lld.%09lld", (long long)(to_ns / NSEC_PER_SEC),
		 (long long)(to_ns % NSEC_PER_SEC));
	a->last_ns = 0;
	a->at = a->rec = NULL;
	a->from = s->from;
	a->to = s->to;
}

/* What the two windows are made of. */
struct windows {
	const char *store;
	struct select_args args;
	char *const *words;
	size_t n_words;
	int64_t before_ns; /* 0: ten minutes, or as long as the window */
	struct selection **out;
};

static int window_set(struct windows *w, int side, int64_t from_ns, int64_t to_ns, struct err *e)
{
	struct explain_span span;
	struct selection *new = NULL, *old = w->out[side];
	int rc;

	explain_span_set(&w->args, &span, from_ns, to_ns);
	rc = select_new(&w->args, w->store, w->words, w->n_words, true, &new, e);
	if (!rc && (old || w->out[!side])) /* mostly of the same segment */
		select_share(new, old ? old : w->out[!side]);
	select_free(old);
	w->out[side] = new;
	return rc;
}

/* The time before the window. */
static int before_set(struct windows *w, struct err *e)
{
	const int64_t from_ns = w->out[DIFF_AFTER]->from_ns,
		      length = w->out[DIFF_AFTER]->to_ns - from_ns;
	int64_t before_ns = w->before_ns ? w->before_ns : length > BEFORE_NS ? length : BEFORE_NS;

	before_ns = before_ns > from_ns ? from_ns : before_ns;
	return window_set(w, DIFF_BEFORE, from_ns - before_ns, from_ns, e);
}

static int windows_set(struct windows *w, int64_t from_ns, int64_t to_ns, struct err *e)
{
	int rc = window_set(w, DIFF_AFTER, from_ns, to_ns, e);

	return rc ? rc : before_set(w, e);
}

static void take_extent(void *ctx, sqlite3_stmt *st)
{
	int64_t *extent = ctx;
	const int64_t from = sqlite3_column_int64(st, 0), to = sqlite3_column_int64(st, 1);

	if (to <= from)
		return;
	extent[0] = !extent[0] || from < extent[0] ? from : extent[0];
	extent[1] = to > extent[1] ? to : extent[1];
}

/* From the first to the last moment of a selection at which anything was recorded. */
static int64_t recorded_ns(const struct selection *sel)
{
	static const char SQL[] =
		"SELECT max(from_ns, ?1 * 1000000000), min(to_ns, (?2 + 1) * 1000000000) FROM run"
		" WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";
	int64_t extent[2] = {0, 0};
	struct err ignored = {0};

	(void)askrows_each(sel, NULL,
			   &(struct askrows_part){.sql = SQL, .row = take_extent, .ctx = extent}, 1,
			   &ignored);
	return extent[1] - extent[0];
}

/* The end of the newest recording. */
static int windows_of_recording(struct windows *w, int64_t from_ns, int64_t to_ns, struct err *e)
{
	int rc = windows_set(w, to_ns > WINDOW_NS ? to_ns - WINDOW_NS : 0, to_ns, e);

	if (!rc && to_ns - from_ns < 2 * WINDOW_NS && from_ns < to_ns &&
	    recorded_ns(w->out[DIFF_BEFORE]) < WINDOW_NS / 2)
		rc = windows_set(w, from_ns + (to_ns - from_ns) / 2, to_ns, e);
	return rc;
}

static int windows_narrow(struct windows *w, struct explain_asked *asked, struct err *e)
{
	const struct selection *sel = w->out[DIFF_AFTER];
	int rc = felt_span_find(w->out, &asked->felt, &asked->requests, e);

	asked->read = !rc && !asked->felt.what;
	if (asked->read)
		return 0;
	chain_requests_release(&asked->requests);
	if (rc)
		return rc;
	asked->from_ns = sel->from_ns;
	asked->to_ns = sel->to_ns;
	memcpy(asked->range, sel->range, sizeof(asked->range));
	return windows_set(w, asked->felt.from_ns, asked->felt.to_ns, e);
}

static int explain_windows(const char *store, const struct select_args *select, char *const *words,
			   size_t n_words, int64_t before_ns, struct selection *out[2],
			   struct explain_asked *asked, struct err *e)
{
	struct windows w = {store, *select, words, n_words, before_ns, out};
	int rc;

	*asked = (struct explain_asked){0};
	out[DIFF_BEFORE] = out[DIFF_AFTER] = NULL;
	rc = select_new(select, store, words, n_words, true, &out[DIFF_AFTER], e);
	if (!rc && out[DIFF_AFTER]->range_given)
		rc = before_set(&w, e);
	else if (!rc)
		rc = windows_of_recording(&w, out[DIFF_AFTER]->from_ns, out[DIFF_AFTER]->to_ns, e);
	return rc ? rc : windows_narrow(&w, asked, e);
}

/* --- statements --- */

static bool is_group(const struct fold_frame *f)
{
	return f->origin == FOLD_GROUP &&
	       (!strcmp(f->module, FOLD_CONTAINER) || !strcmp(f->module, FOLD_COMMAND));
}

static double change_of(const double v[2])
{
	return v[1] - v[0];
}

static double most_of(const double v[2])
{
	return fmax(v[0], v[1]);
}

/* One diff. */
struct part {
	const struct diff *d;
	double whole; /* all there is of the kind */
	double scale; /* what a change is a share of, where changes of different kinds are put in
			 order */
	double work;  /* of waits: all that is not idle */
	double weight;
};

static bool is_reason(const struct fold_frame *f)
{
	return f->origin == FOLD_OFF && !strcmp(f->module, FOLD_WAITS);
}

static bool is_bytes(enum store_kind kind)
{
	return kind == STORE_KIND_INUSE || kind == STORE_KIND_ALLOC || kind == STORE_KIND_JAVAALLOC;
}

static void part_init(struct part *p, const struct diff *d)
{
	*p = (struct part){.d = d, .whole = most_of(d->functions[0].total.v), .weight = 1};
	if (d->side[DIFF_AFTER].f->kind->kind == STORE_KIND_OFFCPU)
		p->weight = WAITING;
	p->scale =
		is_bytes(d->side[DIFF_AFTER].f->kind->kind) ? fmax(p->whole, HEAP_LEAST) : p->whole;
	for (uint32_t i = 1; i < d->n_functions; i++)
		if (is_reason(d->functions[i].frame))
			p->work += most_of(d->functions[i].total.v);
}

/* Waits that last until there is something to do, as a rule. */
static bool is_idle_by_nature(const char *reason)
{
	static const uint32_t reasons[] = {STORE_WAIT_PIPE, STORE_WAIT_SLEEP, STORE_WAIT_CHILD,
					   STORE_WAIT_STOP};

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (!strcmp(reason, store_wait_reason(reasons[i])))
			return true;
	return false;
}

static bool is_work(const struct fold_frame *f)
{
	return is_reason(f) && !is_idle_by_nature(f->name);
}

/* Of blocked time of a group, of a function or of all: the part that shows work, as amounts per
 * second. Each wait is below a reason, which is below a group. */
static void work_of(const struct part *p, const struct explain_statement *s,
		    const struct diff_function *f, double v[2])
{
	const struct diff *d = p->d;
	const uint32_t self = (uint32_t)(f - d->functions);
	cleanup_free uint32_t *reason = mem_array(d->n_nodes + 1, sizeof(*reason));
	uint64_t sums[2] = {0, 0};

	for (uint32_t i = 1; i < d->n_nodes; i++) {
		const struct diff_node *n = &d->nodes[i];
		const struct fold_frame *frame = d->functions[n->function].frame;
		const bool begins = n->parent && frame->origin == FOLD_OFF;
		bool whole = s->about != EXPLAIN_FUNCTION;

		reason[i] = begins ? n->function : n->parent ? reason[n->parent] : 0;
		if (!reason[i] || !is_work(d->functions[reason[i]].frame))
			continue;
		if (whole ? !begins || (self && d->nodes[n->parent].function != self) :
			    n->function != self)
			continue;
		for (int side = 0; side < 2; side++)
			sums[side] += whole ? n->total_ns[side] : n->self_ns[side];
	}
	for (int side = 0; side < 2; side++)
		v[side] = (double)sums[side] / d->side[side].whole;
}

/* Rule 7. */
static bool is_idle(const struct part *p, const struct explain_statement *s,
		    const struct diff_function *f)
{
	double work[2], way;

	if (s->about == EXPLAIN_REASON)
		return is_idle_by_nature(s->name);
	if (p->d->side[DIFF_AFTER].f->kind->kind != STORE_KIND_OFFCPU)
		return false;
	work_of(p, s, f, work);
	way = change_of(s->v.v) > 0 ? change_of(work) : -change_of(work);
	return way < fabs(change_of(s->v.v)) / 2;
}

static struct explain_statement *add(struct explain *x, const struct part *p,
				     enum explain_about about, const struct diff_function *f,
				     const struct diff_value *v)
{
	struct explain_statement *s;

	x->rows = mem_realloc(x->rows, (x->n + 1) * sizeof(*x->rows));
	s = &x->rows[x->n++];
	*s = (struct explain_statement){.d = p->d,
					.about = about,
					.name = f->frame->name,
					.module = f->frame->module,
					.whole = x->sel[DIFF_AFTER]->what,
					.v = *v,
					.since_ns = f->since_ns};
	s->change = v->v[1] > v->v[0] ? EXPLAIN_MORE : EXPLAIN_LESS;
	if (v->v[0] <= NEW_SHARE * v->v[1])
		s->change = EXPLAIN_BEGAN;
	else if (v->v[1] <= NEW_SHARE * v->v[0])
		s->change = EXPLAIN_GONE;
	s->score = about == EXPLAIN_REASON ? fabs(change_of(v->v)) / p->work :
					     p->weight * fabs(change_of(v->v)) / p->scale;
	s->idle = is_idle(p, s, f);
	return s;
}

static bool counts(const struct part *p, const struct diff_value *v)
{
	return v->significant && fabs(change_of(v->v)) >= EXPLAIN_LEAST * p->whole;
}

/* The function below a group (or the group above a function or a reason) whose own part changed
 * most, the way the statement says. */
static void find_inner(const struct part *p, struct explain_statement *s,
		       const struct diff_function *f)
{
	const struct diff *d = p->d;
	const uint32_t self = (uint32_t)(f - d->functions);
	const bool of_group = s->about == EXPLAIN_CONTAINER || s->about == EXPLAIN_COMMAND;
	cleanup_free uint64_t *sums =
		explain_inner_sums(d, self, of_group, s->about == EXPLAIN_REASON);
	double best = 0;

	for (uint32_t i = 1; i < d->n_functions; i++) {
		double v[2] = {(double)sums[2 * i] / d->side[0].whole,
			       (double)sums[2 * i + 1] / d->side[1].whole};
		double way = change_of(s->v.v) > 0 ? change_of(v) : -change_of(v);

		if (way <= best)
			continue;
		best = way;
		s->in = d->functions[i].frame->name;
		s->in_module = d->functions[i].frame->module;
		memcpy(s->in_v, v, sizeof(v));
		memcpy(s->in_ns, &sums[2 * i], sizeof(s->in_ns));
	}
	s->mostly = best >= EXPLAIN_MOSTLY * fabs(change_of(s->v.v));
	if (best < EXPLAIN_PART * fabs(change_of(s->v.v)))
		s->in = s->in_module = NULL;
}

static int by_p(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The largest p of a group that is no chance, of the groups among themselves (Benjamini and
 * Hochberg's step-up procedure): they are some dozens, asked about first; among the thousands of
 * functions of a build their number would be lost. Half of the error rate is theirs.
 */
static double group_level(const struct part *p)
{
	cleanup_free double *all = mem_array(p->d->n_functions, sizeof(*all));
	double level = -1;
	size_t n = 0;

	for (size_t i = 1; i < p->d->n_functions; i++)
		if (is_group(p->d->functions[i].frame) && p->d->functions[i].total.tested)
			all[n++] = p->d->functions[i].total.p;
	if (n)
		qsort(all, n, sizeof(*all), by_p);
	for (size_t i = 0; i < n; i++)
		if (all[i] <= p->d->alpha / 2 * (double)(i + 1) / (double)n)
			level = all[i];
	return level;
}

/* It ran in one of the windows only. A window of a few slices cannot show that as more than noise:
 * the test knows in how many slices it ran, and not how much. */
static bool came_or_went(const struct part *p, const struct diff_value *v)
{
	return p->d->side[DIFF_AFTER].f->kind->kind == STORE_KIND_CPU &&
	       ((!v->samples[0] && v->samples[1] >= CAME) ||
		(!v->samples[1] && v->samples[0] >= CAME));
}

static bool group_counts(const struct part *p, const struct diff_value *v, double level)
{
	return counts(p, v) || (((v->tested && v->p <= level) || came_or_went(p, v)) &&
				fabs(change_of(v->v)) >= EXPLAIN_LEAST * p->whole);
}

static void add_groups(struct explain *x, const struct part *p)
{
	const double level = group_level(p);

	for (size_t i = 1; i < p->d->n_functions; i++) {
		const struct diff_function *f = &p->d->functions[i];

		if (is_group(f->frame) && group_counts(p, &f->total, level))
			find_inner(p,
				   add(x, p,
				       strcmp(f->frame->module, FOLD_CONTAINER) ? EXPLAIN_COMMAND :
										  EXPLAIN_CONTAINER,
				       f, &f->total),
				   f);
	}
}

/* Does a statement of a group say it already? */
static bool is_said(const struct explain *x, size_t first, const struct explain_statement *s)
{
	for (size_t i = first; i + 1 < x->n; i++) {
		const struct explain_statement *g = &x->rows[i];
		bool here = s->in && !strcmp(g->name, s->in) && !strcmp(g->module, s->in_module) &&
			    fabs(change_of(s->in_v)) >= STANDS_FOR * fabs(change_of(s->v.v));
		bool whole = g->change == EXPLAIN_BEGAN || g->change == EXPLAIN_GONE;

		if (here && (whole || (g->in && !strcmp(g->in, s->name) &&
				       !strcmp(g->in_module, s->module))))
			return true;
	}
	return false;
}

/* Where every wait ends in the kernel, and what is idle: says nothing that a reason does not say.
 */
static bool is_way_of_waiting(const struct part *p, const struct fold_frame *f)
{
	const enum store_kind kind = p->d->side[DIFF_AFTER].f->kind->kind;

	return (kind == STORE_KIND_OFFCPU || kind == STORE_KIND_RUNQUEUE) &&
	       (f->origin == FOLD_KERNEL || f->origin == FOLD_OFF);
}

static void add_functions(struct explain *x, const struct part *p, size_t first)
{
	for (size_t i = 1; i < p->d->n_functions; i++) {
		const struct diff_function *f = &p->d->functions[i];
		struct explain_statement *s;

		if (is_group(f->frame) || is_way_of_waiting(p, f->frame) || !counts(p, &f->self))
			continue;
		s = add(x, p, EXPLAIN_FUNCTION, f, &f->self);
		find_inner(p, s, f);
		if (is_said(x, first, s))
			x->n--;
	}
}

/* "other" would say nothing. */
static void add_reasons(struct explain *x, const struct part *p)
{
	for (size_t i = 1; i < p->d->n_functions; i++) {
		const struct diff_function *f = &p->d->functions[i];

		if (is_reason(f->frame) &&
		    strcmp(f->frame->name, store_wait_reason(STORE_WAIT_OTHER)) &&
		    f->total.significant && fabs(change_of(f->total.v)) >= EXPLAIN_LEAST * p->work)
			find_inner(p, add(x, p, EXPLAIN_REASON, f, &f->total), f);
	}
}

static void add_all(struct explain *x, const struct part *p, size_t first)
{
	const struct diff_function *f = &p->d->functions[0];

	if (!counts(p, &f->total))
		return;
	for (size_t i = first; i < x->n; i++)
		if (fabs(change_of(x->rows[i].v.v)) >= fabs(change_of(f->total.v)) / 2)
			return;
	add(x, p, EXPLAIN_ALL, f, &f->total);
}

static void state(struct explain *x, const struct diff *d)
{
	const size_t first = x->n;
	struct part p;

	part_init(&p, d);
	if (p.whole > 0) {
		add_groups(x, &p);
		add_functions(x, &p, first);
		add_all(x, &p, first);
		add_reasons(x, &p);
	}
	explain_unread_drop(x, first, d);
}

/* What became less is seldom why something was slow: it counts half. */
static double rank_of(const struct explain_statement *s)
{
	return s->v.v[1] < s->v.v[0] ? s->score / 2 : s->score;
}

static int by_score(const void *a, const void *b)
{
	const struct explain_statement *s = a, *t = b;

	if (s->idle != t->idle)
		return s->idle - t->idle;
	if (rank_of(s) != rank_of(t))
		return rank_of(s) > rank_of(t) ? -1 : 1;
	return s->about != t->about ? (s->about > t->about) - (s->about < t->about) :
				      strcmp(s->name, t->name);
}

/* --- all of it --- */

static double recorded_s(const struct fold *f)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < f->n_slices; i++)
		ns += f->slices[i].covered_ns;
	return (double)ns / NSEC_PER_SEC;
}

/* Kinds that were recorded equally long are said together. */
static void uncompared_add(struct explain *x, const char *kind, double before, double after)
{
	struct strbuf *out = &x->uncompared;
	char a[32], b[32], length[96];
	size_t len;

	units_ns((int64_t)(before * NSEC_PER_SEC), a, sizeof(a));
	units_ns((int64_t)(after * NSEC_PER_SEC), b, sizeof(b));
	snprintf(length, sizeof(length), " (%s before, %s in the window)", a, b);
	len = strlen(length);
	if (out->len >= len && !strcmp(out->buf + out->len - len, length))
		out->buf[out->len -= len] = '\0';
	strbuf_addf(out, "%s%s%s", out->len ? ", " : "", kind, length);
}

/* Rule 6. */
static bool is_comparable(struct explain *x, enum store_kind kind, struct fold *const f[2])
{
	const double before = recorded_s(f[DIFF_BEFORE]), after = recorded_s(f[DIFF_AFTER]);
	int64_t bucket_s = 1;
	struct err ignored = {0};
	double least;

	for (int side = 0; side < 2; side++)
		(void)fold_slices_bucket(x->sel[side], kind, &bucket_s, &ignored);
	least = fmax(EXPLAIN_LEAST_S, 2 * (double)bucket_s - 1); /* the first one is cut */
	if (before >= least && after >= least && before >= after / 2)
		return true;
	uncompared_add(x, store_kind_info(kind)->name, before, after);
	return false;
}

/* -ENODATA: nothing of what filters want, or not to be compared. */
static int compare(struct explain *x, enum store_kind kind, double alpha, struct err *e)
{
	const struct fold_opts opts = {.kind = kind,
				       .group = FOLD_BY_WHO,
				       .reasons = true,
				       .slices = DIFF_SLICES,
				       .cells = true,
				       .innermost = true,  /* of callers nothing is said */
				       .functions = true}; /* which is what a diff compares */
	struct fold **f = &x->fold[2 * x->n_diffs];
	int rc = 0;

	for (int side = 0; side < 2 && !rc; side++)
		rc = fold_make(x->sel[side], &opts, &f[side], e);
	if (!rc && !is_comparable(x, kind, f))
		rc = -ENODATA;
	if (!rc)
		rc = diff_make(f[DIFF_BEFORE], f[DIFF_AFTER], DIFF_PER_SECOND, alpha,
			       &x->diff[x->n_diffs], e);
	if (!rc) {
		state(x, x->diff[x->n_diffs]);
		for (int side = 0; side < 2; side++)
			fold_shed(f[side], true);
		if (kind != STORE_KIND_CPU) /* of which the chain asks more */
			diff_shed(x->diff[x->n_diffs]);
		x->n_diffs++;
	}
	for (int side = 0; side < 2 && rc; side++) {
		fold_free(f[side]);
		f[side] = NULL;
	}
	return rc;
}

/* What the filters name is in one of the two at most. */
static int say_alone(const struct explain *x, struct err *e)
{
	const struct selection *after = x->sel[DIFF_AFTER];
	struct fold *f = NULL;
	char from[40], to[40];
	int rc = fold_make(after, &(struct fold_opts){.kind = STORE_KIND_CPU}, &f, e);

	if (rc)
		return rc;
	fold_free(f);
	err_set(e, -ENODATA, EXIT_NOTHING,
		"%s ran in %s but not in %s before: there is nothing to compare it with",
		*after->what ? after->what : "what the filters name", after->range,
		x->sel[DIFF_BEFORE]->range);
	err_fix(e, "sonde stacks %s --from %s --to %s (all of it is new)",
		after->filter_text ? after->filter_text : "",
		when_zoned(after->from_ns, from, sizeof(from)),
		when_zoned(after->to_ns, to, sizeof(to)));
	return -ENODATA;
}

static int say_uncomparable(const struct explain *x, struct err *e)
{
	const struct selection *after = x->sel[DIFF_AFTER];
	char from[40], to[40];

	err_set(e, -ENODATA, EXIT_NOTHING,
		"%s cannot be compared with %s: too little was recorded: %s", after->range,
		x->sel[DIFF_BEFORE]->range, strbuf_str(&x->uncompared));
	err_fix(e,
		"sonde stacks --from %s --to %s (what there is)    sonde status (what was recorded when)",
		when_zoned(after->from_ns, from, sizeof(from)),
		when_zoned(after->to_ns, to, sizeof(to)));
	return -ENODATA;
}

/* The store begins with the range, as it does after one short recording. */
static int say_no_before(const struct explain *x, struct err *e)
{
	const struct selection *after = x->sel[DIFF_AFTER];
	char from[40], to[40];

	err_set(e, -ENODATA, EXIT_NOTHING,
		"there is nothing to compare %s with: no samples were recorded in the time before it, %s",
		after->range, x->sel[DIFF_BEFORE]->range);
	err_fix(e,
		"sonde stacks --from %s --to %s (what there is)    sonde status (what was recorded when)",
		when_zoned(after->from_ns, from, sizeof(from)),
		when_zoned(after->to_ns, to, sizeof(to)));
	return -ENODATA;
}

/* Kinds that both have; what only one of them recorded cannot be compared. */
static int compare_kinds(struct explain *x, struct err *e)
{
	uint32_t kinds[2] = {0, 0};
	size_t n = 0;
	int rc = 0;

	for (int side = 0; side < 2 && !rc; side++)
		rc = fold_kinds_there(x->sel[side], &kinds[side], e);
	for (size_t i = 0; i < EXPLAIN_KINDS; i++)
		n += (kinds[0] & kinds[1]) >> KINDS[i] & 1;
	if (!rc && !n && kinds[DIFF_AFTER] && !kinds[DIFF_BEFORE] &&
	    !select_is_narrow(x->sel[DIFF_BEFORE]))
		return say_no_before(x, e);
	if (!rc && !n)
		return fold_nothing(x->sel[kinds[DIFF_AFTER] ? DIFF_BEFORE : DIFF_AFTER],
				    STORE_KIND_CPU, e);
	for (size_t i = 0; i < EXPLAIN_KINDS && !rc; i++) {
		if (!(kinds[0] & kinds[1] & 1u << KINDS[i]))
			continue;
		rc = compare(x, KINDS[i], EXPLAIN_ALPHA / (double)n, e);
		if (rc == -ENODATA) /* of the kind, but nothing of what filters want */
			rc = 0;
	}
	return rc;
}

int explain_open(const char *store, const struct select_args *select, char *const *words,
		 size_t n_words, int64_t before_ns, struct explain *out, struct err *e)
{
	int rc;

	*out = (struct explain){0};
	rc = explain_windows(store, select, words, n_words, before_ns, out->sel, &out->asked, e);
	if (rc)
		explain_release(out);
	return rc;
}

static int logs_compare(struct explain *x, struct err *e)
{
	int rc = 0;

	for (int side = 0; side < 2 && !rc; side++)
		rc = logread(x->sel[side], &(struct logread_ask){.least = LOGREAD_WARNING},
			     &x->logs[side], e);
	if (!rc)
		x->n_rises = logrise_find(&x->logs[DIFF_BEFORE], &x->logs[DIFF_AFTER], x->rises);
	for (size_t i = 0; i < x->n_rises && !rc; i++)
		rc = logfailed_read(x->sel[DIFF_AFTER], x->rises[i].pattern, &x->failed[i], e);
	return rc;
}

static void take_recorded(void *ctx, sqlite3_stmt *st)
{
	struct explain *x = ctx;

	x->host_before = x->host_before || !strcmp(askrows_text(st, 0), "host");
	x->l7_before = x->l7_before || !strcmp(askrows_text(st, 0), "l7");
}

static int before_read(struct explain *x, struct err *e)
{
	const struct askrows_part part = {
		.sql = "SELECT DISTINCT family FROM run WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2",
		.row = take_recorded,
		.ctx = x};

	return askrows_each(x->sel[DIFF_BEFORE], NULL, &part, 1, e);
}

int explain_compare(struct explain *out, struct err *e)
{
	int rc = compare_kinds(out, e);

	if (!rc && !out->n_diffs)
		rc = out->uncompared.len ? say_uncomparable(out, e) : say_alone(out, e);
	for (int side = 0; side < 2 && !rc; side++)
		rc = incidents_read(out->sel[side], &out->incidents[side], e);
	if (!rc)
		rc = event_list_read(out->sel[DIFF_AFTER], false, &out->happenings, e);
	if (!rc)
		rc = logs_compare(out, e);
	if (!rc)
		rc = netnew_read(out->sel[DIFF_BEFORE], out->sel[DIFF_AFTER], &out->talk, e);
	for (int side = 0; side < 2 && !rc; side++)
		rc = reqrunning_hung(out->sel[side], EXPLAIN_HUNG_NS, &out->hung[side], e);
	if (!rc)
		rc = before_read(out, e);
	if (!rc)
		rc = explain_causes(out, e);
	if (!rc && out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_score);
	return rc;
}

int explain_cpu(struct selection *const sel[2], struct explain *out, struct err *e)
{
	uint32_t kinds[2] = {0, 0};
	int rc = 0;

	*out = (struct explain){.sel = {sel[DIFF_BEFORE], sel[DIFF_AFTER]}, .borrowed = true};
	for (int side = 0; side < 2 && !rc; side++)
		rc = fold_kinds_there(sel[side], &kinds[side], e);
	if (!rc && kinds[0] & kinds[1] & 1u << STORE_KIND_CPU)
		rc = compare(out, STORE_KIND_CPU, EXPLAIN_ALPHA, e);
	rc = rc == -ENODATA ? 0 : rc;
	for (int side = 0; side < 2 && !rc; side++)
		rc = incidents_read(sel[side], &out->incidents[side], e);
	if (rc)
		explain_release(out);
	return rc;
}

void explain_release(struct explain *x)
{
	for (size_t i = 0; i < EXPLAIN_KINDS; i++)
		diff_free(x->diff[i]);
	for (size_t i = 0; i < 2 * EXPLAIN_KINDS; i++)
		fold_free(x->fold[i]);
	for (int side = 0; side < 2 && !x->borrowed; side++)
		select_free(x->sel[side]);
	for (size_t i = 0; i < x->n; i++)
		for (size_t k = 0; k < x->rows[i].n_causes; k++) {
			free(x->rows[i].causes[k].name);
			free(x->rows[i].causes[k].of);
		}
	free(x->rows);
	strbuf_release(&x->uncompared);
	felt_span_release(&x->asked.felt);
	chain_requests_release(&x->asked.requests);
	for (int side = 0; side < 2; side++) {
		incidents_release(&x->incidents[side]);
		reqrunning_release(&x->hung[side]);
	}
	event_list_release(&x->happenings);
	logread_release(&x->logs[DIFF_BEFORE]);
	logread_release(&x->logs[DIFF_AFTER]);
	netnew_release(&x->talk);
	*x = (struct explain){0};
}
