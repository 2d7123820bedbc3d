/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_cause: what made the waits of a statement longer, by other counters of the same time:
 * what had the CPU, the time lost to a CPU quota, which threads ended the waits, which had the
 * monitors of a Java program. Of each the one
 * that changed most, if that is CAUSE_LEAST of the change.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/model/stored.h"
#include "schema/store/read/waits.h"
#include "tools/explain/explain.h"
#include "tools/fold/fold_kind.h"
#include "tools/waits/javawaits.h"
#include "tools/waits/waitpairs.h"
#include "tools/waits/waitrules.h"

#define CAUSE_LEAST 0.25

/* Both windows' pairs, read when the first statement asks. */
struct causes {
	struct explain *x;
	struct waitpairs
		*pairs[2][2]; /* of enum waitpairs_what, and side; NULL: not read, or none */
	bool read[2];
};

static int pairs_read(struct causes *c, enum waitpairs_what what, struct err *e)
{
	struct err why = {0};
	int rc = 0;

	for (int side = 0; side < 2 && !rc && !c->read[what]; side++) {
		rc = waitpairs_make(c->x->sel[side], what, &c->pairs[what][side], &why);
		if (rc == -ENOENT) /* nothing waited then */
			rc = 0;
	}
	if (rc && e)
		*e = why;
	c->read[what] = true;
	return rc;
}

/* --- whose waits --- */

static bool is_of(const struct waitpairs_end *w, enum explain_about about, const char *name)
{
	if (about == EXPLAIN_CONTAINER)
		return !strcmp(w->container, name);
	return about == EXPLAIN_ALL || (!*w->container && !strcmp(w->comm, name));
}

/* Who waited in this statement: of a reason or a function its `in`, if that has most of it. */
static void whose(const struct explain_statement *s, enum explain_about *about, const char **name)
{
	*about = s->about;
	*name = s->name;
	if (s->about != EXPLAIN_REASON && s->about != EXPLAIN_FUNCTION)
		return;
	*about = !s->in || !s->mostly                 ? EXPLAIN_ALL :
		 strcmp(s->in_module, FOLD_CONTAINER) ? EXPLAIN_COMMAND :
							EXPLAIN_CONTAINER;
	*name = s->in;
}

/* --- candidates --- */

struct candidates {
	struct explain_cause *all;
	size_t n, cap;
};

static struct explain_cause *candidate(struct candidates *l, enum explain_cause_what what,
				       const char *name, uint32_t pid, bool container)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->all[i].name, name) && l->all[i].pid == pid &&
		    l->all[i].container == container)
			return &l->all[i];
	mem_grow(l->all, l->n, l->cap);
	l->all[l->n] = (struct explain_cause){
		.what = what, .name = mem_strdup(name), .pid = pid, .container = container};
	return &l->all[l->n++];
}

static void add_pairs(struct candidates *l, const struct causes *c, enum waitpairs_what what,
		      const struct explain_statement *s)
{
	enum explain_about about;
	const char *name;

	whose(s, &about, &name);
	for (int side = 0; side < 2; side++) {
		const struct waitpairs *w = c->pairs[what][side];

		for (size_t i = 0; w && i < w->n; i++) {
			const struct waitpairs_row *r = &w->rows[i];
			const bool held = *r->by.container && what == WAITPAIRS_NEIGHBOURS;

			if (!is_of(&r->who, about, name) || !*r->by.comm)
				continue;
			if (what == WAITPAIRS_NEIGHBOURS ?
				    r->kind != STORE_CULPRIT_THREAD :
				    r->kind != STORE_WAKE_THREAD ||
					    !waitrule_may(r->reason, s->name))
				continue;
			candidate(l,
				  what == WAITPAIRS_NEIGHBOURS ? EXPLAIN_NEIGHBOUR : EXPLAIN_WAKER,
				  held ? r->by.container : r->by.comm,
				  what == WAITPAIRS_NEIGHBOURS ? 0 : r->by.pid, held)
				->ns[side] += r->total_ns;
		}
	}
}

/* "/docker/ID", "/system.slice/docker-ID.scope/below", "/system.slice/cron.service" */
static bool is_named_in(const char *path, const char *mark)
{
	const size_t len = strlen(mark);

	for (const char *at = strstr(path, mark); len && at; at = strstr(at + 1, mark))
		if ((at == path || strchr("/-", at[-1])) && (!at[len] || strchr("/.", at[len])))
			return true;
	return false;
}

/* Does this cgroup hold processes of the statement? Containers and units are named by their
 * cgroups. */
static bool holds(const struct explain_statement *s, const char *cgroup)
{
	enum explain_about about;
	const char *name;

	whose(s, &about, &name);
	for (int side = 0; side < 2; side++) {
		const struct fold *f = s->d->side[side].f;

		for (size_t i = 0; i < f->n_processes; i++) {
			const struct fold_process *p = &f->processes[i];
			struct waitpairs_end who = {
				.container =
					(char *)(*p->container ? p->container : p->container_id),
				.comm = (char *)p->comm};
			const char *mark = *p->container_id ? p->container_id : p->unit;

			if (is_named_in(cgroup, mark) && is_of(&who, about, name))
				return true;
		}
	}
	return false;
}

static void add_quotas(struct candidates *l, const struct causes *c,
		       const struct explain_statement *s)
{
	for (int side = 0; side < 2; side++) {
		const struct waitpairs *w = c->pairs[WAITPAIRS_NEIGHBOURS][side];

		for (size_t i = 0; w && i < w->held.n; i++) {
			const struct waitheld_row *h = &w->held.rows[i];
			struct explain_cause *x;

			if (!holds(s, h->cgroup))
				continue;
			x = candidate(l, EXPLAIN_QUOTA, h->cgroup, 0, false);
			if (!x->of && *h->container)
				x->of = mem_strdup(h->container);
			x->ns[side] += h->throttled_ns;
			x->periods[side] += h->periods;
			x->throttled[side] += h->throttled;
		}
	}
}

/* --- the one that represents it --- */

static double change_of(const struct explain_statement *s, struct explain_cause *x)
{
	for (int side = 0; side < 2; side++)
		x->v[side] = (double)x->ns[side] / s->d->side[side].whole;
	return s->v.v[1] > s->v.v[0] ? x->v[1] - x->v[0] : x->v[0] - x->v[1];
}

/* Rule 8: more than all that waited. */
static bool is_beyond(const struct explain_statement *s, const struct explain_cause *x)
{
	const int side = s->v.v[1] > s->v.v[0] ? DIFF_AFTER : DIFF_BEFORE;

	return (x->what == EXPLAIN_WAKER || x->what == EXPLAIN_HOLDER) &&
	       x->v[side] > EXPLAIN_BEYOND * s->v.v[side];
}

/* The largest change of them, or 0; the list is emptied. */
static double take_largest(struct explain_statement *s, struct candidates *l, double least)
{
	const double whole = fabs(s->v.v[1] - s->v.v[0]);
	struct explain_cause *best = NULL;
	double most = 0;

	for (size_t i = 0; i < l->n; i++) {
		double change = change_of(s, &l->all[i]);

		if (change > most && change >= least && !is_beyond(s, &l->all[i])) {
			most = change;
			best = &l->all[i];
		}
	}
	if (best) {
		best->mostly = most >= EXPLAIN_MOSTLY * whole;
		s->causes[s->n_causes++] = *best;
		best->name = best->of = NULL;
	}
	for (size_t i = 0; i < l->n; i++) {
		free(l->all[i].name);
		free(l->all[i].of);
	}
	free(l->all);
	*l = (struct candidates){0};
	return most;
}

/* Threads that had the monitors of a Java program. */
static int add_holders(struct candidates *l, const struct causes *c,
		       const struct explain_statement *s, struct err *e)
{
	enum explain_about about;
	const char *name;
	int rc = 0;

	whose(s, &about, &name);
	for (int side = 0; side < 2 && !rc; side++) {
		struct javawaits w;

		rc = javawaits_read(c->x->sel[side], &w, e);
		for (size_t i = 0; i < w.n && !rc; i++) {
			const struct javawait *r = &w.rows[i];
			const bool mine =
				about == EXPLAIN_ALL ||
				!strcmp(about == EXPLAIN_CONTAINER ? r->container : r->comm, name);

			if (mine && *r->owner && !strcmp(r->kind, "monitor"))
				candidate(l, EXPLAIN_HOLDER, r->owner, 0, false)->ns[side] += r->ns;
		}
		javawaits_release(&w);
	}
	return rc;
}

static int find_holder(struct causes *c, struct explain_statement *s, struct err *e)
{
	struct candidates l = {0};
	const int rc = add_holders(&l, c, s, e);

	take_largest(s, &l, CAUSE_LEAST * fabs(s->v.v[1] - s->v.v[0]));
	return rc;
}

static int find(struct causes *c, struct explain_statement *s, struct err *e)
{
	const double least = CAUSE_LEAST * fabs(s->v.v[1] - s->v.v[0]);
	struct candidates l = {0};
	double held;
	int rc;

	/* a timer ends it */
	if (s->about == EXPLAIN_REASON && !strcmp(s->name, store_wait_reason(STORE_WAIT_SLEEP)))
		return 0;
	if (s->about == EXPLAIN_REASON) {
		rc = pairs_read(c, WAITPAIRS_WAKERS, e);
		add_pairs(&l, c, WAITPAIRS_WAKERS, s);
		take_largest(s, &l, least);
		return rc;
	}
	rc = pairs_read(c, WAITPAIRS_NEIGHBOURS, e);
	add_quotas(&l, c, s);
	held = take_largest(s, &l, least);
	add_pairs(&l, c, WAITPAIRS_NEIGHBOURS, s);
	take_largest(s, &l, fmax(held, least)); /* others run while a quota holds it back: that
						   alone is no contention */
	return rc;
}

int explain_causes(struct explain *x, struct err *e)
{
	struct causes c = {.x = x};
	int rc = 0;

	for (size_t i = 0; i < x->n && !rc; i++) {
		struct explain_statement *s = &x->rows[i];
		const enum store_kind kind = s->d->side[DIFF_AFTER].f->kind->kind;

		if (s->about == EXPLAIN_REASON || kind == STORE_KIND_RUNQUEUE)
			rc = find(&c, s, e);
		else if (kind == STORE_KIND_JAVALOCK)
			rc = find_holder(&c, s, e);
	}
	for (int what = 0; what < 2; what++)
		for (int side = 0; side < 2; side++)
			if (c.pairs[what][side])
				waitpairs_free(c.pairs[what][side]);
	return rc;
}
