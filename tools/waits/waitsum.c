/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitsum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/model/stored.h"
#include "schema/store/read/days.h"
#include "schema/store/read/waits.h"
#include "tools/net/netpeers.h"
#include "tools/print/reading.h"
#include "tools/select/select.h"
#include "tools/waits/waitgroups.h"
#include "tools/waits/waitrows.h"
#include "tools/waits/waitrules.h"
#include "tools/waits/waitstack.h"

struct stack_says { /* what the rules make of a stack of waits of one class */
	const struct waitrule *rule;
	const char *purpose;
	uint32_t function; /* its place in groups.names + 1; 0: none */
};

struct summing {
	const struct selection *sel;
	struct waitgroups groups; /* of all segments */
	struct waitheld held;
	struct netpeers peers;
	struct store_segment *seg;
	const struct store_dict *dict;
	uint32_t *named; /* waitstack_named of it */
	const struct idmap *tags;
	/* of the segment, whose series are many and of few threads, classes and stacks: */
	struct idmap memo_of; /* thread, class, partial -> its place in `memos` */
	struct memo {
		struct waitgroup *group;
		size_t thread; /* its place in it */
	} * memos;
	size_t n_memos, cap_memos;
	struct idmap says_of;  /* stack, class -> its place in `says` */
	uint32_t *function_of; /* by stack: as stack_says.function, + 1; 0: not met yet */
	struct idmap name_of;  /* a function's name there -> its place in groups.names */
	struct stack_says *says;
	size_t n_says, cap_says;
	struct idmap places; /* with tags, of the segment: (thread's process, stack) -> hash of the
				one object there; 0: none so far; 1: several */
};

/* --- what is exact --- */

static int add_total(void *ctx, const struct store_wait_total *t)
{
	struct summing *s = ctx;
	const char *class = t->state == STORE_STATE_READY ? WAITGROUP_READY : t->reason;
	const struct store_process_row *p = &s->dict->processes[t->who.process];
	struct waitgroup *c;
	size_t at;

	if (t->state == STORE_STATE_RUNNING)
		return 0;
	c = waitgroups_of(&s->groups, p, t->who.name, class,
			  t->flags & (STORE_WAIT_BEFORE | STORE_WAIT_UNFINISHED));
	at = waitgroup_thread_of(c, p, t->who.tid);
	c->threads[at].exact += t->total_ns;
	waitamount_add(&c->exact, t->n, t->total_ns, t->max_ns);
	if (t->hist)
		hist_read(&c->exact.hist, t->hist, strlen(t->hist), 0);
	return 0;
}

/* --- what stacks say --- */

/* waitgroups_of for one of many series of a thread. */
static struct memo memo_of_series(struct summing *s, const struct store_total *t, const char *class,
				  bool partial)
{
	const struct store_process_row *p = &s->dict->processes[t->process];
	bool fresh;
	uint64_t *at = idmap_ref(
		&s->memo_of, (uint64_t)t->task << 16 | (t->label & 0x7fff) << 1 | partial, &fresh);

	if (fresh) {
		struct waitgroup *c = waitgroups_of(&s->groups, p, t->thread, class, partial);

		*at = s->n_memos;
		mem_grow(s->memos, s->n_memos, s->cap_memos);
		s->memos[s->n_memos++] = (struct memo){c, waitgroup_thread_of(c, p, t->tid)};
	}
	return s->memos[*at];
}

/* A name of the segment as one of all segments: its place + 1; 0: none. */
static uint32_t name_of(struct summing *s, const char *name)
{
	uint64_t *known;
	bool fresh;

	if (!name)
		return 0;
	known = idmap_ref(&s->name_of, (uint64_t)(uintptr_t)name, &fresh);
	if (fresh)
		*known = waitgroups_name(&s->groups, name);
	return (uint32_t)*known + 1;
}

/* stack_says.function: of any class the same. */
static uint32_t function_of(struct summing *s, uint32_t stack)
{
	if (!s->function_of)
		s->function_of = mem_array(s->dict->n_stacks + 1, sizeof(*s->function_of));
	if (!s->function_of[stack])
		s->function_of[stack] = name_of(s, waitstack_own(s->dict, stack)) + 1;
	return s->function_of[stack] - 1;
}

static const struct stack_says *stack_says(struct summing *s, const struct store_total *t,
					   const char *class)
{
	bool fresh;
	uint64_t *at = idmap_ref(&s->says_of, (uint64_t)t->stack << 32 | t->label, &fresh);

	if (fresh) {
		*at = s->n_says;
		mem_grow(s->says, s->n_says, s->cap_says);
		s->says[s->n_says++] = (struct stack_says){
			waitstack_rule(s->dict, s->named, t->stack, class),
			waitstack_purpose(s->dict, s->named, t->stack), function_of(s, t->stack)};
	}
	return &s->says[*at];
}

static void memos_clear(struct summing *s)
{
	idmap_clear(&s->memo_of);
	idmap_clear(&s->says_of);
	idmap_clear(&s->name_of);
	pairsums_settle(&s->groups.functions);
	s->n_memos = 0;
	free(s->named);
	free(s->function_of);
	s->named = s->function_of = NULL;
	s->n_says = 0;
}

/* Of two with equal waits, so that the answer does not depend on the order of rows. */
static bool is_before(const struct waitpart *a, const struct waitpart *b)
{
	const int c = strcmp(a->reason, b->reason);

	return c ? c < 0 : a->idle < b->idle;
}

/* From the stacks of waits that ended, or of those that were open at the end: the latter say what
 * the waits are that are not over. */
static int add_stack_to(struct summing *s, const struct store_total *t, bool partial)
{
	const char *class = store_wait_reason(t->label);
	const struct memo memo = memo_of_series(s, t, class, partial);
	struct waitgroup *c = memo.group;
	const struct stack_says *says = stack_says(s, t, class);
	struct waitpart *part = waitgroup_part(c, says->rule);
	struct waitgroup_thread *w = &c->threads[memo.thread];

	w->stacks += t->value;
	if (t->max > w->longest || (t->max == w->longest && is_before(part, &c->parts[w->part]))) {
		w->longest = t->max;
		w->part = (size_t)(part - c->parts);
	}
	part->ruled_ns += says->rule ? t->value : 0;
	waitamount_add(&part->stacks, t->n, t->value, t->max);
	part->stacks.n_variance += t->n_variance;
	part->stacks.value_variance += t->value_variance;
	if (t->hist)
		hist_merge(&part->stacks.hist, t->hist);
	if (says->function)
		waitgroups_add_function(&s->groups, part, says->function - 1, t->value);
	if (says->purpose) {
		if (!part->purpose || strcmp(says->purpose, part->purpose) < 0)
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
	struct waitgroup *c = waitgroups_of(&s->groups, p, o->who.name, o->reason, false);

	waitobjects_add(
		&waitgroup_part(c, waitstack_rule(s->dict, s->named, o->stack, o->reason))->objects,
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
		waitgroups_of(&s->groups, &s->dict->processes[b->who.process], b->who.name,
			      b->reason, false)
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
	struct waitgroup *c = waitgroups_of(&s->groups, &s->dict->processes[t->process], t->thread,
					    store_wait_reason(t->label), false);
	bool fresh;

	waitamount_add(&c->exact, t->n, t->value, 0);
	idmap_ref(&s->places, place_key(t->process, t->stack), &fresh);
	return add_stack_to(s, t, false);
}

static int add_tagged_ready(void *ctx, const struct store_total *t)
{
	struct summing *s = ctx;
	struct waitgroup *c = waitgroups_of(&s->groups, &s->dict->processes[t->process], t->thread,
					    WAITGROUP_READY, false);

	waitamount_add(&c->exact, t->n, t->value, 0);
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

/* `day`: it is the file of a day, which has sums of its waits. */
static int sum_segment(struct summing *s, const char *path, bool day, struct err *e)
{
	int64_t run = select_run_in(s->sel, path, 0);
	int rc = run < 0 ? 0 : select_segment(s->sel, path, &s->seg, e);

	if (run < 0 || rc)
		return rc;
	rc = (day ? store_segment_stacks : store_segment_dict)(s->seg, &s->dict, e);
	if (!rc)
		s->named = waitstack_named(s->dict);
	for (size_t i = 1; !rc && run >= 0; i++) {
		struct store_query q = {.from_ns = s->sel->from_ns,
					.to_ns = s->sel->to_ns,
					.run = run,
					.want = wanted,
					.ctx = s,
					.by = STORE_BY_LABEL,
					.kind = STORE_KIND_OFFCPU};

		rc = s->tags ? sum_tagged(s, &q, e) : sum_run(s, &q, e);
		run = select_run_in(s->sel, path, i);
	}
	memos_clear(s);
	return rc;
}

/* --- all of it --- */

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

/* What was waited on may be an address: who has its other end. */
static int read_peers(struct summing *s, struct err *e)
{
	const struct store_part *parts;
	const size_t n = select_parts(s->sel, &parts);
	struct store_segment *seg;
	bool any = false;
	int rc = 0;

	for (size_t i = 0; i < n && !any && !rc; i++) {
		rc = select_segment(s->sel, parts[i].path, &seg, e);
		any = !rc && store_segment_has(seg, "wait_on_row");
	}
	return rc || !any ? rc : netpeers_read(s->sel, &s->peers, e);
}

/* A day's file, if it has sums of waits, else its archives. */
static int sum_part(struct summing *s, const struct store_part *part, struct err *e)
{
	struct store_segment *seg;
	int rc = part->day ? select_segment(s->sel, part->path, &seg, e) : 0;

	if (rc)
		return rc;
	if (!part->day || store_waits_summed(seg))
		return sum_segment(s, part->path, part->day, e);
	for (size_t i = part->first; !rc && i < part->first + part->n; i++)
		rc = sum_segment(s, s->sel->segments[i].path, false, e);
	return rc;
}

/* Waits of some requests are in no sums. */
static int sum_all(struct summing *s, struct err *e)
{
	const struct store_part *parts = NULL;
	const size_t n = s->tags ? s->sel->n_segments : select_parts(s->sel, &parts);
	int rc = 0;

	reading_begin(n);
	for (size_t i = 0; i < n && !rc; i++) {
		reading_file(i);
		rc = parts ? sum_part(s, &parts[i], e) :
			     sum_segment(s, s->sel->segments[i].path, false, e);
	}
	reading_end();
	return rc;
}

int waitsum_make(const struct selection *sel, enum waitsum_by by, struct waitsum **out,
		 struct err *e)
{
	return waitsum_make_tagged(sel, by, NULL, out, e);
}

int waitsum_make_tagged(const struct selection *sel, enum waitsum_by by, const struct idmap *tags,
			struct waitsum **out, struct err *e)
{
	struct summing s = {.sel = sel, .groups.by = by, .tags = tags};
	struct waitsum *w;
	int rc = read_peers(&s, e);

	if (!rc)
		rc = sum_all(&s, e);
	w = waitrows_make(&s.groups);
	waitheld_sort(&s.held);
	w->held = s.held;
	waitgroups_release(&s.groups);
	netpeers_release(&s.peers);
	idmap_release(&s.places);
	idmap_release(&s.memo_of);
	idmap_release(&s.says_of);
	idmap_release(&s.name_of);
	free(s.memos);
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
