/* SPDX-License-Identifier: Apache-2.0 */
/* What made a service slower by itself, of what was measured there (chain.h, rule 4). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/explain/chain/chain_walk.h"

#define LEAST_MORE 0.01 /* added time below this is no cause, seconds each second */
#define DEMAND     2    /* times as much CPU time for a request */

static bool grew(const double s[2])
{
	return s[1] - s[0] >= LEAST_MORE && s[1] >= 1.3 * s[0];
}

static void cause_take(struct chain_cause *list, size_t *n, enum chain_what what,
		       const struct chain_measure *m)
{
	if (m->known && grew(m->s))
		list[(*n)++] = (struct chain_cause){what, m->s[1] - m->s[0], *m};
}

static int most_first(const void *a, const void *b)
{
	const struct chain_cause *x = a, *y = b;

	return (x->extra < y->extra) - (x->extra > y->extra);
}

bool chain_is_apart(const struct chain_at *at, const struct chain_cause *c)
{
	return (c->what == CHAIN_PIPE || c->what == CHAIN_CHILD || c->what == CHAIN_SLEEP) &&
	       c->extra > CHAIN_TOO_MUCH * at->extra;
}

/* Rule 5: of `n`, most first, those apart come last, the least of them first. */
static void apart_last(const struct chain_at *at, struct chain_cause *list, size_t n)
{
	struct chain_cause sorted[CHAIN_WHATS];
	size_t put = 0;

	for (size_t i = 0; i < n; i++)
		if (!chain_is_apart(at, &list[i]))
			sorted[put++] = list[i];
	for (size_t i = n; i > 0; i--)
		if (chain_is_apart(at, &list[i - 1]))
			sorted[put++] = list[i - 1];
	memcpy(list, sorted, n * sizeof(*list));
}

static struct chain_cause *cause_of(struct chain_cause *list, size_t n, enum chain_what what)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].what == what)
			return &list[i];
	return NULL;
}

static void cause_drop(struct chain_cause *list, size_t *n, enum chain_what what)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++)
		if (list[i].what != what)
			list[kept++] = list[i];
	*n = kept;
}

/* One cause that another one implies does not count (rule 4). */
static void implied_drop(struct chain_cause *list, size_t *n, bool asked)
{
	static const struct {
		enum chain_what cause, implied;
		double part; /* least part of the implied one */
	} RULES[] = {{CHAIN_QUOTA, CHAIN_READY, 0.3},
		     {CHAIN_GC, CHAIN_CPU, 0.5},
		     {CHAIN_RECLAIM, CHAIN_FAULT, 0.3},
		     {CHAIN_RECLAIM, CHAIN_DISK, 0.3},
		     {CHAIN_READY, CHAIN_QUOTA, 1.0 / 0.3}};
	static const enum chain_what waits[] = {CHAIN_NETWORK, CHAIN_PIPE, CHAIN_CHILD};

	for (size_t i = 0; i < ARRAY_SIZE(RULES); i++) {
		struct chain_cause *a = cause_of(list, *n, RULES[i].cause),
				   *b = cause_of(list, *n, RULES[i].implied);

		if (!a || !b || a->extra < RULES[i].part * b->extra)
			continue;
		if (RULES[i].cause == CHAIN_QUOTA) /* counted by CPU; each thread waits for it */
			a->extra = fmax(a->extra, b->extra);
		cause_drop(list, n, RULES[i].implied);
	}
	for (size_t i = 0; asked && i < ARRAY_SIZE(waits); i++)
		cause_drop(list, n, waits[i]);
}

/* How many times as much CPU time a request took as before. */
static double demand(const struct chain_walk *w, const struct chain_at *at, const double cpu[2])
{
	double n[2] = {0, 0};

	for (size_t i = 0; i < w->r->n; i++)
		for (int side = 0; side < 2; side++)
			if (w->r->ops[i].server && chain_is_at(&w->r->ops[i], at) &&
			    w->r->seconds[side] > 0)
				n[side] += (double)w->r->ops[i].w[side].n / w->r->seconds[side];
	if (cpu[0] < 0.002)
		return 1;
	return n[0] > 0 && n[1] > 0 ? cpu[1] / cpu[0] * n[0] / n[1] : cpu[1] / cpu[0];
}

/*
 * How much longer it waits for a CPU because it runs longer: in proportion; while its own threads
 * run; and all of it where a request takes DEMAND times as much CPU time while others wait no
 * longer for a CPU than before.
 */
static double waits_for_itself(const struct chain_walk *w, const struct chain_at *at,
			       const struct chain_measure *ready, const struct chain_measure *cpu)
{
	const double more = ready->s[1] - ready->s[0], scale = demand(w, at, cpu->s);
	double itself = ready->s[0] * (scale - 1), others[2];
	struct chain_other by;
	bool guessed;

	if (!grew(cpu->s) || !grew(ready->s) || scale <= 1)
		return 0;
	chain_ready_of_others(w->m, at->who, at->container, others);
	if (scale >= DEMAND && others[1] < 1.3 * others[0])
		return more;
	chain_neighbour(w->m, at->who, at->container, &by, &guessed);
	if (!guessed && by.name && by.container == at->container && !strcmp(by.name, at->who))
		itself = fmax(itself, by.v[1] - by.v[0]);
	return itself < more ? itself : more;
}

size_t chain_causes(const struct chain_walk *w, const struct chain_at *at, bool asked,
		    struct chain_cause list[CHAIN_WHATS])
{
	struct chain_measure m[CHAIN_WHATS];
	double itself;
	size_t n = 0;

	for (int what = 0; what < CHAIN_WHATS; what++)
		chain_measure(w->m, at->who, at->container, (enum chain_what)what, &m[what]);
	itself = waits_for_itself(w, at, &m[CHAIN_READY], &m[CHAIN_CPU]);
	for (int what = 0; what < CHAIN_WHATS; what++)
		cause_take(list, &n, (enum chain_what)what, &m[what]);
	for (size_t i = 0; i < n; i++) {
		list[i].extra -= list[i].what == CHAIN_READY ? itself : 0;
		list[i].extra += list[i].what == CHAIN_CPU ? itself : 0;
	}
	implied_drop(list, &n, asked);
	qsort(list, n, sizeof(*list), most_first);
	apart_last(at, list, n);
	return n;
}
