/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitrows.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* Most threads of a busy host live shortly, and of their waits no spread is known: NULL. */
static struct hist *hist_take(struct waitamount *a)
{
	struct hist *hist = a->hist.n ? mem_alloc(sizeof(*hist)) : NULL;

	if (hist)
		*hist = a->hist;
	a->hist = (struct hist){0};
	return hist;
}

static uint32_t one_pid(const struct waitgroup *c)
{
	if (c->pid)
		return c->pid;
	for (size_t i = 0; c->processes.n == 1 && i < c->processes.cap; i++)
		if (c->processes.slots[i].used)
			return (uint32_t)c->processes.slots[i].value;
	return 0;
}

static struct waitsum_row *row_add(struct waitsum *w, const struct waitgroup *c)
{
	struct waitsum_row *r;

	mem_grow(w->rows, w->n, w->cap);
	r = &w->rows[w->n++];
	*r = (struct waitsum_row){.container = mem_strdup(c->container),
				  .comm = mem_strdup(c->comm),
				  .pid = c->pid,
				  .thread = c->thread ? mem_strdup(c->thread) : NULL,
				  .partial = c->partial,
				  .class = mem_strdup(c->class),
				  .n_processes = c->pid ? 1 : c->processes.n,
				  .one_pid = one_pid(c)};
	return r;
}

/* A wait that is not over is a problem only if other waits are known to hold up work. */
static bool in_background(const struct waitsum_row *r)
{
	static const char *const in_the_way[] = {"lock", "disk", "page fault", "memory",
						 WAITGROUP_READY};
	bool way = false;

	for (size_t i = 0; i < ARRAY_SIZE(in_the_way); i++)
		way = way || !strcmp(r->reason, in_the_way[i]);
	return r->idle || (r->partial && !way);
}

static char *function_of(const struct waitgroups *g, const struct waitpart *p)
{
	const struct pairsums_sum *top = NULL;
	size_t n = 0;
	const struct pairsums_sum *x =
		p->functions ? pairsums_row(&g->functions, p->functions - 1, &n) : NULL;

	for (size_t i = 0; i < n; i++)
		if (!top || x[i].sum > top->sum ||
		    (x[i].sum == top->sum &&
		     strcmp(g->names[x[i].column], g->names[top->column]) < 0))
			top = &x[i];
	return top ? mem_strdup(g->names[top->column]) : NULL;
}

static void row_object(struct waitsum_row *r, const struct waitpart *p)
{
	struct waitobject_top top = waitobjects_top(p->objects);

	r->object = top.object ? mem_strdup(top.object) : NULL;
	r->peer = top.peer ? mem_strdup(top.peer) : NULL;
	r->by = top.by ? mem_strdup(top.by) : NULL;
	r->by_tid = top.by_tid;
}

static uint64_t share(uint64_t whole, uint64_t part, uint64_t of)
{
	if (part >= of) /* all; or more, of what overhang_drop made less */
		return of ? whole : 0;
	return (uint64_t)((double)whole * ((double)part / (double)of) + 0.5);
}

static void row_purpose(struct waitsum_row *r, const struct waitpart *p)
{
	r->ruled_ns = share(r->total_ns, p->ruled_ns, p->stacks.value);
	r->purpose = p->purpose;
	r->purpose_ns = share(r->total_ns, p->purpose_ns, p->stacks.value);
}

static void row_whole(const struct waitgroups *g, struct waitsum *w, struct waitgroup *c,
		      const struct waitpart *part)
{
	struct waitsum_row *r = row_add(w, c);

	r->reason = mem_strdup(part ? part->reason : c->class);
	r->idle = part ? part->idle : waitgroup_idle_by_class(c);
	r->function = part ? function_of(g, part) : NULL;
	if (part && !c->partial)
		row_object(r, part);
	r->exact = true;
	r->n = c->exact.n;
	r->total_ns = c->exact.value;
	r->max_ns = c->exact.max;
	r->background = in_background(r);
	r->timer_ns = c->timer_ns < r->total_ns ? c->timer_ns : r->total_ns;
	if (part && !c->partial)
		row_purpose(r, part);
	r->hist = hist_take(&c->exact);
}

/*
 * A stack has all of a wait where it ended, and what is exact is of the window alone: what a
 * thread's stacks have more than that is of the one wait that began before it. A tenth is the
 * sample's. Of a thread without an exact time nothing is known.
 */
static void overhang_drop(struct waitgroup *c)
{
	for (size_t i = 0; i < c->n_threads; i++) {
		const struct waitgroup_thread *x = &c->threads[i];
		uint64_t more = x->stacks > x->exact ? x->stacks - x->exact : 0;
		struct waitamount *of;

		if (!x->exact || more <= x->exact / 10 || more > x->longest)
			continue;
		of = &c->parts[x->part].stacks;
		of->value -= more < of->value ? more : of->value;
	}
}

/*
 * Of `whole`, which is exact, the part is whole x p / (p + q), p and q being estimates that do not
 * depend on each other: by the derivatives, its variance is whole^2 x (q^2 var(p) + p^2 var(q)) /
 * (p + q)^4.
 */
static double share_variance(uint64_t whole, uint64_t part, uint64_t of, double variance,
			     double variance_of)
{
	double p = (double)part, q = of > part ? (double)of - p : 0, all = p + q,
	       others = variance_of > variance ? variance_of - variance : 0, scale;

	if (all <= 0)
		return 0;
	scale = (double)whole / all;
	return scale * scale * (q * q * variance + p * p * others) / (all * all);
}

static void rows_shared(const struct waitgroups *g, struct waitsum *w, struct waitgroup *c)
{
	uint64_t n = 0, value = 0;
	double n_variance = 0, value_variance = 0;

	if (!c->partial)
		overhang_drop(c);
	for (size_t i = 0; i < c->n_parts; i++) {
		n += c->parts[i].stacks.n;
		value += c->parts[i].stacks.value;
		n_variance += c->parts[i].stacks.n_variance;
		value_variance += c->parts[i].stacks.value_variance;
	}
	for (size_t i = 0; i < c->n_parts; i++) {
		const struct waitpart *p = &c->parts[i];
		struct waitsum_row *r = row_add(w, c);

		r->reason = mem_strdup(p->reason);
		r->idle = p->idle;
		r->function = function_of(g, p);
		row_object(r, p);
		r->n = share(c->exact.n, p->stacks.n, n);
		r->total_ns = share(c->exact.value, p->stacks.value, value);
		r->n_variance = share_variance(c->exact.n, p->stacks.n, n, p->stacks.n_variance,
					       n_variance);
		r->total_variance = share_variance(c->exact.value, p->stacks.value, value,
						   p->stacks.value_variance, value_variance);
		r->background = in_background(r);
		if (c->partial)
			continue; /* it would cover the whole wait, which may be longer than the
				     recording */
		row_purpose(r, p);
		r->timer_ns = share(c->timer_ns < c->exact.value ? c->timer_ns : c->exact.value,
				    p->stacks.value, value);
		r->max_ns = p->stacks.max;
		r->hist = hist_take(&c->parts[i].stacks);
	}
}

static int most_time(const void *a, const void *b)
{
	const struct waitsum_row *x = a, *y = b;
	int c;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	c = strcmp(x->reason, y->reason);
	c = c ? c : strcmp(x->comm, y->comm);
	return c ? c : strcmp(x->container, y->container);
}

/* A wait that has not ended has no stack, unless a recording stored the stacks at its end: it is
 * classified like the ended ones of its group and class, if these agree. */
static const struct waitpart *part_like(struct waitgroups *g, const struct waitgroup *c)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;
	const char *flag = strstr(c->key, "\n1\n");
	struct waitgroup *ended = NULL;

	if (!flag)
		return NULL;
	strbuf_add(&key, c->key, (size_t)(flag - c->key));
	strbuf_addf(&key, "\n0\n%s", flag + 3);
	HASH_FIND_STR(g->all, strbuf_str(&key), ended);
	return ended && ended->n_parts == 1 ? ended->parts : NULL;
}

struct waitsum *waitrows_make(struct waitgroups *g)
{
	struct waitsum *w = mem_alloc(sizeof(*w));
	struct waitgroup *c, *tmp;

	HASH_ITER (hh, g->all, c, tmp) {
		if (!c->exact.n && !c->exact.value)
			continue;
		if (c->n_parts > 1)
			rows_shared(g, w, c);
		else
			row_whole(g, w, c,
				  c->n_parts ? c->parts :
				  c->partial ? part_like(g, c) :
					       NULL);
	}
	if (w->n)
		qsort(w->rows, w->n, sizeof(*w->rows), most_time);
	return w;
}
