/* SPDX-License-Identifier: Apache-2.0 */
/* Groups are distinguished by their text, since ids differ from segment to segment. */
#include "tools/waits/waitsum.h"
#include "schema/base/array.h"
#include "tools/print/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/tables/pairsums.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/stored.h"
#include "schema/store/read/waits.h"
#include "tools/net/netpeers.h"
#include "tools/select/select.h"
#include "tools/waits/waitrules.h"
#include "tools/waits/waitstack.h"

#define RUN_QUEUE "run queue"

/* --- time by what was waited on (or where), and by which thread ended the waits --- */

struct waitobject_top {
	const char *object; /* borrowed; NULL: none */
	const char *peer;   /* who has the other end of it; NULL: not known */
	uint64_t total_ns;  /* weighted */
	const char *by;     /* name of the thread that ended most of that, NULL: not known */
	uint32_t by_tid;
};

struct by {
	char *name;
	uint32_t tid;
	uint64_t ns;
};

struct waitobject {
	char *key; /* object and peer, a line each */
	char *object;
	char *peer; /* NULL: not known */
	uint64_t ns;
	struct by *by;
	size_t n_by, cap_by;
	UT_hash_handle hh;
};

static struct by *by_of(struct waitobject *o, const char *name, uint32_t tid)
{
	for (size_t i = 0; i < o->n_by; i++)
		if (o->by[i].tid == tid && !strcmp(o->by[i].name, name))
			return &o->by[i];
	mem_grow(o->by, o->n_by, o->cap_by);
	o->by[o->n_by] = (struct by){.name = mem_strdup(name), .tid = tid};
	return &o->by[o->n_by++];
}

/* *all: NULL at first. `peer` NULL: not known; objects with different peers are summed apart. `tid`
 * 0: the thread that ended the wait is not known. */
static struct waitobject *waitobjects_add(struct waitobject **all, const char *object,
					  const char *peer, const char *by, uint32_t tid,
					  uint64_t ns)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;
	struct waitobject *o;

	strbuf_addf(&key, "%s\n%s", object, peer ? peer : "");
	HASH_FIND_STR(*all, strbuf_str(&key), o);
	if (!o) {
		o = mem_alloc(sizeof(*o));
		o->key = strbuf_take(&key);
		o->object = mem_strdup(object);
		o->peer = peer ? mem_strdup(peer) : NULL;
		HASH_ADD_KEYPTR(hh, *all, o->key, strlen(o->key), o);
	}
	o->ns += ns;
	if (tid)
		by_of(o, by, tid)->ns += ns;
	return o;
}

static struct waitobject_top waitobjects_top(struct waitobject *all)
{
	const struct waitobject *top = NULL;
	const struct by *by = NULL;

	for (const struct waitobject *o = all; o; o = o->hh.next)
		if (!top || o->ns > top->ns || (o->ns == top->ns && strcmp(o->key, top->key) < 0))
			top = o;
	for (size_t i = 0; top && i < top->n_by; i++)
		if (!by || top->by[i].ns > by->ns ||
		    (top->by[i].ns == by->ns && top->by[i].tid < by->tid))
			by = &top->by[i];
	return (struct waitobject_top){.object = top ? top->object : NULL,
				       .peer = top ? top->peer : NULL,
				       .total_ns = top ? top->ns : 0,
				       .by = by ? by->name : NULL,
				       .by_tid = by ? by->tid : 0};
}

static void waitobjects_free(struct waitobject *all)
{
	struct waitobject *o, *tmp;

	HASH_ITER (hh, all, o, tmp) {
		HASH_DEL(all, o);
		for (size_t i = 0; i < o->n_by; i++)
			free(o->by[i].name);
		free(o->by);
		free(o->key);
		free(o->object);
		free(o->peer);
		free(o);
	}
}

struct amount {
	uint64_t n, value, max;
	double n_variance, value_variance;
	struct hist hist;
};

struct part { /* of one class in one group: what its stacks say */
	const char *reason;
	bool idle;
	struct amount stacks;
	uint32_t
		functions; /* its row in `functions` + 1: where they wait, waitstack_own; 0: none */
	struct waitobject *objects;
	const char *purpose;
	uint64_t purpose_ns, ruled_ns; /* of stacks */
};

struct waiter {                 /* one thread of a cell */
	uint64_t exact, stacks; /* ns */
	uint64_t longest;       /* of its stacks' waits, in: */
	size_t part;
};

struct cell { /* one class in one group, partial or not */
	char *key;
	char *container, *comm, *thread, *class;
	uint32_t pid;
	bool partial;
	bool kernel, go;        /* of threads of the kernel; of Go programs */
	struct idmap processes; /* hash of pid and start; where it is of one process: empty */
	struct amount exact;
	uint64_t timer_ns; /* as a row's */
	struct part *parts;
	size_t n_parts, cap_parts;
	struct idmap waiter_of; /* hash of a thread -> its place in `waiters` + 1 */
	struct waiter *waiters;
	size_t n_waiters, cap_waiters;
	UT_hash_handle hh;
};

struct stack_says { /* what the rules make of a stack of waits of one class */
	const struct waitrule *rule;
	const char *purpose;
	uint32_t function; /* its place in `names` + 1; 0: none */
};

struct summing {
	const struct selection *sel;
	enum waitsum_by by;
	struct waitheld held;
	struct netpeers peers;
	struct cell *cells;
	struct store_segment *seg;
	const struct store_dict *dict;
	uint32_t *named; /* waitstack_named of it */
	const struct idmap *tags;
	/* of the segment, whose series are many and of few threads, classes and stacks: */
	struct idmap cell_memo; /* thread, class, partial -> its place in `memos` */
	struct memo {
		struct cell *cell;
		size_t waiter; /* of it */
	} * memos;
	size_t n_memos, cap_memos;
	struct idmap says_of; /* stack, class -> its place in `says` */
	struct idmap name_of; /* a function's name there -> its place in `names` */
	struct stack_says *says;
	size_t n_says, cap_says;
	/* of all segments: */
	char **names; /* of functions, each once */
	size_t n_names, cap_names;
	struct idmap names_at;     /* hash of a name -> its place */
	struct pairsums functions; /* ns by part and place in `names` */
	uint32_t n_parts;          /* that have some */
	struct idmap places; /* with tags, of the segment: (thread's process, stack) -> hash of the
				one object there; 0: none so far; 1: several */
};

static void amount_add(struct amount *a, uint64_t n, uint64_t value, uint64_t max)
{
	a->n += n;
	a->value += value;
	if (max > a->max)
		a->max = max;
}

/* Most threads of a busy host live shortly, and of their waits no spread is known: NULL. */
static struct hist *hist_take(struct amount *a)
{
	struct hist *hist = a->hist.n ? mem_alloc(sizeof(*hist)) : NULL;

	if (hist)
		*hist = a->hist;
	a->hist = (struct hist){0};
	return hist;
}

/* --- cells --- */

static const char *container_of(const struct store_process_row *p)
{
	return *p->container ? p->container : p->container_id;
}

static bool is_go(const struct store_process_row *p)
{
	return !strcmp(p->lang, "go");
}

static void cell_count(struct cell *c, const struct store_process_row *p)
{
	idmap_set(&c->processes, hash_u64(hash_u64(HASH_SEED, p->pid), (uint64_t)p->start_ns),
		  p->pid);
}

static struct cell *cell_of(struct summing *s, const struct store_process_row *p,
			    const char *thread, const char *class, bool partial)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;
	bool one = s->by == WAITSUM_BY_PROCESS || s->by == WAITSUM_BY_THREAD;
	struct cell *c;

	strbuf_addf(&key, "%s\n%s\n%d\n", container_of(p), class, partial);
	if (s->by != WAITSUM_BY_CONTAINER)
		strbuf_addf(&key, "%s\n", p->comm);
	if (one)
		strbuf_addf(&key, "%u %lld %u\n", p->pid, (long long)p->start_ns, p->exec_id);
	if (s->by == WAITSUM_BY_THREAD)
		strbuf_addstr(&key, thread);
	HASH_FIND_STR(s->cells, strbuf_str(&key), c);
	if (c) {
		if (!one)
			cell_count(c, p);
		c->kernel = c->kernel && select_is_kernel(p);
		c->go = c->go || is_go(p); /* of the same name; the language of a short one may not
					      be known */
		return c;
	}
	c = mem_alloc(sizeof(*c));
	if (!one)
		cell_count(c, p);
	c->kernel = select_is_kernel(p);
	c->go = is_go(p);
	c->key = strbuf_take(&key);
	c->container = mem_strdup(container_of(p));
	c->comm = mem_strdup(s->by == WAITSUM_BY_CONTAINER ? "" : p->comm);
	c->thread = s->by == WAITSUM_BY_THREAD ? mem_strdup(thread) : NULL;
	c->class = mem_strdup(class);
	c->pid = one ? p->pid : 0;
	c->partial = partial;
	HASH_ADD_KEYPTR(hh, s->cells, c->key, strlen(c->key), c);
	return c;
}

static void cells_free(struct summing *s)
{
	struct cell *c, *tmp;

	HASH_ITER (hh, s->cells, c, tmp) {
		HASH_DEL(s->cells, c);
		for (size_t i = 0; i < c->n_parts; i++) {
			waitobjects_free(c->parts[i].objects);
			hist_release(&c->parts[i].stacks.hist);
		}
		free(c->parts);
		hist_release(&c->exact.hist);
		idmap_release(&c->processes);
		idmap_release(&c->waiter_of);
		free(c->waiters);
		free(c->key);
		free(c->container);
		free(c->comm);
		free(c->thread);
		free(c->class);
		free(c);
	}
}

/* Its place. */
static size_t waiter_of(struct cell *c, const struct store_process_row *p, uint32_t tid)
{
	uint64_t *at;
	bool fresh;

	at = idmap_ref(&c->waiter_of,
		       hash_u64(hash_u64(hash_u64(HASH_SEED, p->pid), (uint64_t)p->start_ns), tid),
		       &fresh);
	if (fresh) {
		mem_grow(c->waiters, c->n_waiters, c->cap_waiters);
		c->waiters[c->n_waiters] = (struct waiter){0};
		*at = ++c->n_waiters;
	}
	return *at - 1;
}

/* --- what is exact --- */

static int add_total(void *ctx, const struct store_wait_total *t)
{
	struct summing *s = ctx;
	const char *class = t->state == STORE_STATE_READY ? RUN_QUEUE : t->reason;
	const struct store_process_row *p = &s->dict->processes[t->who.process];
	struct cell *c;
	size_t at;

	if (t->state == STORE_STATE_RUNNING)
		return 0;
	c = cell_of(s, p, t->who.name, class,
		    t->flags & (STORE_WAIT_BEFORE | STORE_WAIT_UNFINISHED));
	at = waiter_of(c, p, t->who.tid);
	c->waiters[at].exact += t->total_ns;
	amount_add(&c->exact, t->n, t->total_ns, t->max_ns);
	if (t->hist)
		hist_read(&c->exact.hist, t->hist, strlen(t->hist), 0);
	return 0;
}

/* --- what stacks say --- */

static struct part *part_of(struct cell *c, const char *reason, bool idle)
{
	for (size_t i = 0; i < c->n_parts; i++)
		if (!strcmp(c->parts[i].reason, reason) && c->parts[i].idle == idle)
			return &c->parts[i];
	mem_grow(c->parts, c->n_parts, c->cap_parts);
	c->parts[c->n_parts] = (struct part){.reason = reason, .idle = idle};
	return &c->parts[c->n_parts++];
}

/*
 * A kernel thread that was not woken is idle: if a disk or a lock holds up its work, the wait has
 * that class. A thread of a Go program is at a futex because it has no goroutine to run: waits of
 * goroutines are not waits of threads.
 */
static bool idle_by_class(const struct cell *c)
{
	return waitrule_idle_by_class(c->class) ||
	       (c->kernel && !strcmp(c->class, store_wait_reason(STORE_WAIT_OTHER))) ||
	       (c->go && !strcmp(c->class, store_wait_reason(STORE_WAIT_LOCK)));
}

static struct part *part_by_stack(struct cell *c, const struct waitrule *rule)
{
	return part_of(c, rule && rule->reason ? rule->reason : c->class,
		       rule ? rule->idle : idle_by_class(c));
}

/* cell_of for one of many series of a thread. */
static struct memo cell_of_series(struct summing *s, const struct store_total *t, const char *class,
				  bool partial)
{
	const struct store_process_row *p = &s->dict->processes[t->process];
	bool fresh;
	uint64_t *at =
		idmap_ref(&s->cell_memo,
			  (uint64_t)t->task << 16 | (t->label & 0x7fff) << 1 | partial, &fresh);

	if (fresh) {
		struct cell *c = cell_of(s, p, t->thread, class, partial);

		*at = s->n_memos;
		mem_grow(s->memos, s->n_memos, s->cap_memos);
		s->memos[s->n_memos++] = (struct memo){c, waiter_of(c, p, t->tid)};
	}
	return s->memos[*at];
}

static bool name_known(const struct summing *s, const char *name, uint64_t *h, uint64_t *at)
{
	for (*h = hash_str(HASH_SEED, name); idmap_get(&s->names_at, *h, at); *h = hash_u64(*h, 1))
		if (!strcmp(s->names[*at], name))
			return true;
	return false;
}

/* A name of the segment as one of all segments: its place + 1; 0: none. */
static uint32_t name_of(struct summing *s, const char *name)
{
	uint64_t *known, h, at;
	bool fresh;

	if (!name)
		return 0;
	known = idmap_ref(&s->name_of, (uint64_t)(uintptr_t)name, &fresh);
	if (fresh && name_known(s, name, &h, &at)) {
		*known = at;
	} else if (fresh) {
		*known = s->n_names;
		idmap_set(&s->names_at, h, s->n_names);
		mem_grow(s->names, s->n_names, s->cap_names);
		s->names[s->n_names++] = mem_strdup(name);
	}
	return (uint32_t)*known + 1;
}

static const struct stack_says *stack_says(struct summing *s, const struct store_total *t,
					   const char *class)
{
	bool fresh;
	uint64_t *at = idmap_ref(&s->says_of, (uint64_t)t->stack << 32 | t->label, &fresh);

	if (fresh) {
		*at = s->n_says;
		mem_grow(s->says, s->n_says, s->cap_says);
		s->says[s->n_says++] =
			(struct stack_says){waitstack_rule(s->dict, s->named, t->stack, class),
					    waitstack_purpose(s->dict, s->named, t->stack),
					    name_of(s, waitstack_own(s->dict, t->stack))};
	}
	return &s->says[*at];
}

static void function_add(struct summing *s, struct part *part, uint32_t function, uint64_t ns)
{
	if (!part->functions)
		part->functions = ++s->n_parts;
	pairsums_add(&s->functions, part->functions - 1, function, ns);
}

static void memos_clear(struct summing *s)
{
	idmap_clear(&s->cell_memo);
	idmap_clear(&s->says_of);
	idmap_clear(&s->name_of);
	pairsums_settle(&s->functions);
	s->n_memos = 0;
	free(s->named);
	s->named = NULL;
	s->n_says = 0;
}

/* From the stacks of waits that ended, or of those that were open at the end: the latter say what
 * the waits are that are not over. */
static int add_stack_to(struct summing *s, const struct store_total *t, bool partial)
{
	const char *class = store_wait_reason(t->label);
	const struct memo memo = cell_of_series(s, t, class, partial);
	struct cell *c = memo.cell;
	const struct stack_says *says = stack_says(s, t, class);
	struct part *part = part_by_stack(c, says->rule);
	struct waiter *w = &c->waiters[memo.waiter];

	w->stacks += t->value;
	if (t->max > w->longest) {
		w->longest = t->max;
		w->part = (size_t)(part - c->parts);
	}
	part->ruled_ns += says->rule ? t->value : 0;
	amount_add(&part->stacks, t->n, t->value, t->max);
	part->stacks.n_variance += t->n_variance;
	part->stacks.value_variance += t->value_variance;
	if (t->hist)
		hist_merge(&part->stacks.hist, t->hist);
	if (says->function)
		function_add(s, part, says->function - 1, t->value);
	if (says->purpose) {
		part->purpose = says->purpose;
		part->purpose_ns += t->value;
	}
	return 0;
}

static int add_stack(void *ctx, const struct store_total *t)
{
	return add_stack_to(ctx, t, false);
}

static int add_standing(void *ctx, const struct store_total *t)
{
	return add_stack_to(ctx, t, true);
}

static int add_object(void *ctx, const struct store_wait_object *o)
{
	struct summing *s = ctx;
	const struct store_process_row *p = &s->dict->processes[o->who.process];
	struct cell *c = cell_of(s, p, o->who.name, o->reason, false);

	waitobjects_add(
		&part_by_stack(c, waitstack_rule(s->dict, s->named, o->stack, o->reason))->objects,
		o->object, netpeers_find(&s->peers, p, o->object), o->by.name, o->by.tid,
		o->total_ns);
	return 0;
}

/* An interrupt that wakes a thread which waits for a lock is a timer. */
static int add_waker(void *ctx, const struct store_wait_by *b)
{
	struct summing *s = ctx;

	if (b->kind == STORE_WAKE_INTERRUPT &&
	    !strcmp(b->reason, store_wait_reason(STORE_WAIT_LOCK)))
		cell_of(s, &s->dict->processes[b->who.process], b->who.name, b->reason, false)
			->timer_ns += b->total_ns;
	return 0;
}

/* --- with tags --- */

static uint64_t place_key(uint32_t process, uint32_t stack)
{
	return (uint64_t)process << 32 | stack;
}

/* No stack represents others: the stacks' numbers are exact. */
static int add_tagged(void *ctx, const struct store_total *t)
{
	struct summing *s = ctx;
	struct cell *c = cell_of(s, &s->dict->processes[t->process], t->thread,
				 store_wait_reason(t->label), false);
	bool fresh;

	amount_add(&c->exact, t->n, t->value, 0);
	idmap_ref(&s->places, place_key(t->process, t->stack), &fresh);
	return add_stack_to(s, t, false);
}

static int add_tagged_ready(void *ctx, const struct store_total *t)
{
	struct summing *s = ctx;
	struct cell *c = cell_of(s, &s->dict->processes[t->process], t->thread, RUN_QUEUE, false);

	amount_add(&c->exact, t->n, t->value, 0);
	return 0;
}

static int note_object(void *ctx, const struct store_wait_object *o)
{
	struct summing *s = ctx;
	uint64_t hash = hash_str(HASH_SEED, o->object) | 2,
		 key = place_key(o->who.process, o->stack), *at, is;
	bool fresh;

	if (!idmap_get(&s->places, key, &is))
		return 0;
	at = idmap_ref(&s->places, key, &fresh);
	*at = !is || is == hash ? hash : 1;
	return 0;
}

static int add_object_there(void *ctx, const struct store_wait_object *o)
{
	struct summing *s = ctx;
	uint64_t is;

	return idmap_get(&s->places, place_key(o->who.process, o->stack), &is) && is > 1 ?
		       add_object(s, o) :
		       0;
}

static int sum_tagged(struct summing *s, const struct store_query *whole, struct err *e)
{
	struct store_query q = *whole;
	int rc;

	q.tags = s->tags;
	rc = store_totals(s->seg, &q, add_tagged, s, e);
	q.tags = NULL;
	if (!rc)
		rc = store_wait_objects(s->seg, &q, note_object, s, e);
	if (!rc)
		rc = store_wait_objects(s->seg, &q, add_object_there, s, e);
	q.tags = s->tags;
	q.kind = STORE_KIND_RUNQUEUE;
	if (!rc)
		rc = store_totals(s->seg, &q, add_tagged_ready, s, e);
	idmap_clear(&s->places);
	return rc;
}

/* --- segments --- */

static bool wanted(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	const struct summing *s = ctx;

	(void)thread;
	return select_wants(s->sel, p, tid) && (s->sel->self || !p->self);
}

static int sum_run(struct summing *s, const struct store_query *whole, struct err *e)
{
	struct store_query q = *whole;
	int rc = store_wait_totals(s->seg, &q, add_total, s, e);

	if (!rc)
		rc = store_totals(s->seg, &q, add_stack, s, e);
	if (!rc)
		rc = store_wait_objects(s->seg, &q, add_object, s, e);
	if (!rc)
		rc = store_wakers(s->seg, &q, add_waker, s, e);
	q.kind = STORE_KIND_STANDING;
	if (!rc)
		rc = store_totals(s->seg, &q, add_standing, s, e);
	return rc ? rc : waitheld_read(&s->held, s->sel, s->seg, s->dict, &q, e);
}

static int sum_segment(struct summing *s, const char *path, struct err *e)
{
	int64_t run = select_run_in(s->sel, path, 0);
	int rc = run < 0 ? 0 : select_segment(s->sel, path, &s->seg, e);

	if (run < 0 || rc)
		return rc;
	rc = store_segment_dict(s->seg, &s->dict, e);
	if (!rc)
		s->named = waitstack_named(s->dict);
	for (size_t i = 1; !rc && run >= 0; i++) {
		struct store_query q = {.from_ns = s->sel->from_ns,
					.to_ns = s->sel->to_ns,
					.run = run,
					.want = wanted,
					.ctx = s,
					.kind = STORE_KIND_OFFCPU};

		rc = s->tags ? sum_tagged(s, &q, e) : sum_run(s, &q, e);
		run = select_run_in(s->sel, path, i);
	}
	memos_clear(s);
	return rc;
}

/* --- rows --- */

static uint32_t one_pid(const struct cell *c)
{
	if (c->pid)
		return c->pid;
	for (size_t i = 0; c->processes.n == 1 && i < c->processes.cap; i++)
		if (c->processes.slots[i].used)
			return (uint32_t)c->processes.slots[i].value;
	return 0;
}

static struct waitsum_row *row_add(struct waitsum *w, const struct cell *c)
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
	static const char *const in_the_way[] = {"lock", "disk", "page fault", RUN_QUEUE};
	bool way = false;

	for (size_t i = 0; i < ARRAY_SIZE(in_the_way); i++)
		way = way || !strcmp(r->reason, in_the_way[i]);
	return r->idle || (r->partial && !way);
}

static char *function_of(const struct summing *s, const struct part *p)
{
	const struct pairsums_sum *top = NULL;
	size_t n = 0;
	const struct pairsums_sum *x =
		p->functions ? pairsums_row(&s->functions, p->functions - 1, &n) : NULL;

	for (size_t i = 0; i < n; i++)
		if (!top || x[i].sum > top->sum ||
		    (x[i].sum == top->sum &&
		     strcmp(s->names[x[i].column], s->names[top->column]) < 0))
			top = &x[i];
	return top ? mem_strdup(s->names[top->column]) : NULL;
}

static void row_object(struct waitsum_row *r, const struct part *p)
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

static void row_purpose(struct waitsum_row *r, const struct part *p)
{
	r->ruled_ns = share(r->total_ns, p->ruled_ns, p->stacks.value);
	r->purpose = p->purpose;
	r->purpose_ns = share(r->total_ns, p->purpose_ns, p->stacks.value);
}

static void row_whole(const struct summing *s, struct waitsum *w, struct cell *c,
		      const struct part *part)
{
	struct waitsum_row *r = row_add(w, c);

	r->reason = mem_strdup(part ? part->reason : c->class);
	r->idle = part ? part->idle : idle_by_class(c);
	r->function = part ? function_of(s, part) : NULL;
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
static void overhang_drop(struct cell *c)
{
	for (size_t i = 0; i < c->n_waiters; i++) {
		const struct waiter *x = &c->waiters[i];
		uint64_t more = x->stacks > x->exact ? x->stacks - x->exact : 0;
		struct amount *of;

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

static void rows_shared(const struct summing *s, struct waitsum *w, struct cell *c)
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
		const struct part *p = &c->parts[i];
		struct waitsum_row *r = row_add(w, c);

		r->reason = mem_strdup(p->reason);
		r->idle = p->idle;
		r->function = function_of(s, p);
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

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : strcmp(x->reason, y->reason);
}

/* A wait that has not ended has no stack, unless a recording stored the stacks at its end: it is
 * classified like the ended ones of its group and class, if these agree. */
static const struct part *part_like(struct summing *s, const struct cell *c)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;
	const char *flag = strstr(c->key, "\n1\n");
	struct cell *ended = NULL;

	if (!flag)
		return NULL;
	strbuf_add(&key, c->key, (size_t)(flag - c->key));
	strbuf_addf(&key, "\n0\n%s", flag + 3);
	HASH_FIND_STR(s->cells, strbuf_str(&key), ended);
	return ended && ended->n_parts == 1 ? ended->parts : NULL;
}

static struct waitsum *rows_of(struct summing *s)
{
	struct waitsum *w = mem_alloc(sizeof(*w));
	struct cell *c, *tmp;

	HASH_ITER (hh, s->cells, c, tmp) {
		if (!c->exact.n && !c->exact.value)
			continue;
		if (c->n_parts > 1)
			rows_shared(s, w, c);
		else
			row_whole(s, w, c,
				  c->n_parts ? c->parts :
				  c->partial ? part_like(s, c) :
					       NULL);
	}
	if (w->n)
		qsort(w->rows, w->n, sizeof(*w->rows), most_time);
	return w;
}

static int nothing(const struct selection *sel, bool tagged, struct err *e)
{
	if (tagged) {
		err_set(e, -ENOENT, EXIT_NOTHING,
			"no waits were recorded in %s while these requests were served",
			sel->range);
		err_fix(e, "sudo sonde record --families cpu,offcpu,l7 -d 10s");
		return -ENOENT;
	}
	err_set(e, -ENOENT, EXIT_NOTHING, "no waits in %s%s%s", sel->range,
		*sel->what ? " of " : "", sel->what);
	err_fix(e, "sudo sonde record --families cpu,offcpu -d 10s");
	return -ENOENT;
}

static void names_free(struct summing *s)
{
	for (size_t i = 0; i < s->n_names; i++)
		free(s->names[i]);
	free(s->names);
	idmap_release(&s->names_at);
}

int waitsum_make(const struct selection *sel, enum waitsum_by by, struct waitsum **out,
		 struct err *e)
{
	return waitsum_make_tagged(sel, by, NULL, out, e);
}

int waitsum_make_tagged(const struct selection *sel, enum waitsum_by by, const struct idmap *tags,
			struct waitsum **out, struct err *e)
{
	struct summing s = {.sel = sel, .by = by, .tags = tags};
	struct waitsum *w;
	int rc = netpeers_read(sel, &s.peers, e);

	reading_begin(sel->n_segments);
	for (size_t i = 0; i < sel->n_segments && !rc; i++) {
		reading_file(i);
		rc = sum_segment(&s, sel->segments[i].path, e);
	}
	reading_end();
	w = rows_of(&s);
	waitheld_sort(&s.held);
	w->held = s.held;
	cells_free(&s);
	netpeers_release(&s.peers);
	idmap_release(&s.places);
	idmap_release(&s.cell_memo);
	idmap_release(&s.says_of);
	idmap_release(&s.name_of);
	free(s.memos);
	pairsums_release(&s.functions);
	names_free(&s);
	free(s.says);
	if (!rc && !w->n)
		rc = nothing(sel, tags, e);
	if (rc) {
		waitsum_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void waitsum_free(struct waitsum *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->rows[i].container);
		free(w->rows[i].comm);
		free(w->rows[i].thread);
		free(w->rows[i].reason);
		free(w->rows[i].class);
		free(w->rows[i].function);
		free(w->rows[i].object);
		free(w->rows[i].peer);
		free(w->rows[i].by);
		hist_free(w->rows[i].hist);
	}
	free(w->rows);
	waitheld_release(&w->held);
	free(w);
}
