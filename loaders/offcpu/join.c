/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/inflight.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/offcpu/thread.h"
#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/waits.h"
#include "schema/store/write/writer.h"

#define LEADING_MAX 8 /* kernel frames of the tracepoint before the scheduler's */

struct join_wait {
	uint64_t key;
	struct naming_result named; /* its `exe` is not kept */
	uint32_t epoch;             /* of the ids in `named` */
	bool told;
	uint32_t over; /* the turn in which a younger stack of its thread was there; 0: none is */
	union {        /* the message with its length, by ev.end */
		struct stack_event ev;
		struct offcpu_end end;
		struct offcpu_wake wake;
	} of;
	size_t size; /* of the stack; 0: it has not come */
	struct stack_event stack[];
};

void join_init(struct join *j, const char *store_dir)
{
	*j = (struct join){.turn = 1};
	if (store_dir && !kallsyms_kept(store_dir, &j->symbols))
		return;
	if (kallsyms_load(NULL, &j->symbols))
		j->symbols = NULL;
	else if (kallsyms_hidden(j->symbols)) {
		kallsyms_free(j->symbols);
		j->symbols = NULL;
	}
}

void join_release(struct join *j)
{
	for (size_t i = 0; i < j->waiting.cap; i++)
		if (j->waiting.slots[i].used)
			free((void *)(uintptr_t)j->waiting.slots[i].value);
	idmap_release(&j->waiting);
	idmap_release(&j->last);
	objects_release(&j->objects);
	kallsyms_free(j->symbols);
}

static uint64_t key_of(uint32_t tid, uint64_t out_ns)
{
	return hash_u64(hash_u64(HASH_SEED, out_ns), tid);
}

static struct join_wait *wait_find(const struct join *j, uint64_t key)
{
	uint64_t at;

	return idmap_get(&j->waiting, key, &at) ? (struct join_wait *)(uintptr_t)at : NULL;
}

static void wait_forget(struct join *j, struct join_wait *w)
{
	idmap_del(&j->waiting, w->key);
	free(w);
}

/* ---- naming ---- */

/* What a kernel function is to a stack. */
enum place { PLACE_UNKNOWN, PLACE_OTHER, PLACE_SCHEDULER, PLACE_SCHEDULE, PLACE_WAKE, PLACE_ENTRY };

static enum place place_find(struct kallsyms *k, uint64_t addr)
{
	static const char entry[] = "asm_sysvec_";
	static const struct {
		const char *name;
		enum place place;
	} named[] = {
		{"__schedule", PLACE_SCHEDULER},
		{"schedule", PLACE_SCHEDULE},
		{"try_to_wake_up", PLACE_WAKE},
		{"asm_common_interrupt", PLACE_ENTRY},
	};
	struct kallsyms_symbol s;

	if (!kallsyms_find(k, addr - 1, &s))
		return PLACE_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if (!strcmp(s.name, named[i].name))
			return named[i].place;
	return strncmp(s.name, entry, sizeof(entry) - 1) ? PLACE_OTHER : PLACE_ENTRY;
}

/* Kept by address: the symbols are read once, and nearly all stacks have the same leading frames.
 */
static enum place place_of(struct join *j, uint64_t addr)
{
	struct join_place *p = &j->places[hash_u64(HASH_SEED, addr) % JOIN_PLACES];

	if (p->addr != addr || p->place == PLACE_UNKNOWN)
		*p = (struct join_place){.addr = addr, .place = place_find(j->symbols, addr)};
	return (enum place)p->place;
}

/* The leading kernel frames that every stack has: this program's tracepoint, and the scheduler's
 * own: of a wait as far as schedule, of a wake-up try_to_wake_up. */
static uint32_t frames_leading(struct join *j, const struct stack_event *ev, bool *wake)
{
	const uint64_t *frames = (const uint64_t *)(ev + 1);

	for (uint32_t i = 0; j->symbols && i < ev->n_kernel && i < LEADING_MAX; i++) {
		enum place place = place_of(j, frames[i]);

		*wake = place == PLACE_WAKE;
		if (*wake)
			return i + 1;
		if (place == PLACE_SCHEDULER)
			return i + 1 < ev->n_kernel &&
					       place_of(j, frames[i + 1]) == PLACE_SCHEDULE ?
				       i + 2 :
				       i + 1;
	}
	return 0;
}

/* The frames of a wake-up by an interrupt of the hardware: what lies behind is whom it came upon,
 * and has no part in it. */
static uint32_t frames_of_interrupt(struct join *j, const struct stack_event *ev, uint32_t from)
{
	const uint64_t *frames = (const uint64_t *)(ev + 1);

	for (uint32_t i = from; i < ev->n_kernel; i++)
		if (place_of(j, frames[i]) == PLACE_ENTRY)
			return i + 1;
	return 0;
}

static void stack_name(struct join *j, struct family_host *h, const struct stack_event *ev,
		       struct naming_result *out)
{
	bool wake = false;
	uint32_t leading = frames_leading(j, ev, &wake),
		 end = wake ? frames_of_interrupt(j, ev, leading) : 0;
	struct stack_event trimmed = *ev;

	if (end) {
		trimmed.n_user = 0;
		trimmed.end = STACK_END_NONE;
	}
	trimmed.n_kernel = (uint16_t)((end ? end : ev->n_kernel) - leading);
	naming_stack(h->naming, &trimmed, (const uint64_t *)(ev + 1) + leading, out);
}

/* ---- storing ---- */

struct amount_of {
	enum store_kind kind;
	uint32_t label;
	uint64_t ns;
};

static int amount_put(struct family_host *h, const struct naming_result *named,
		      const struct offcpu_end *e, const struct amount_of *x)
{
	char thread[STACK_COMM_LEN + 1];
	uint32_t series, tid = e->ev.tid;
	const double us = (double)x->ns / 1000,
		     others = (double)e->weight * (e->weight ? e->weight - 1 : 0);
	const struct store_amount a = {.n = e->weight,
				       .value = (uint64_t)e->weight * x->ns,
				       .n_variance = (uint64_t)others,
				       .value_variance = others * us * us < 0x1p62 ?
								 (uint64_t)(others * us * us) :
								 1ull << 62,
				       .max = x->ns,
				       .hist = &e->weight,
				       .n_hist = 1,
				       .first_slot = hist_slot(x->ns)};
	int err = 0;

	thread_told(h, named, e->ev.thread, e->ev.tgid, thread, &tid);
	series = store_series_labelled(h->store, h->run, named->process, thread, tid, named->stack,
				       x->kind, x->label);
	if (e->weight) /* else others represent it, and it counts for its request alone */
		err = store_amount(h->store, series, family_utc(h, (int64_t)e->ev.time_ns), &a);
	if (!err) /* this one alone, not the requests that it represents: those were others */
		inflight_store(h->store, h->run, family_utc(h, (int64_t)e->ev.time_ns), e->ev.tag,
			       series, 1, x->ns);
	return err;
}

/* The names that are valid now: made again if the store's ids have changed, or `again`. */
static const struct naming_result *named_now(struct join *j, struct family_host *h,
					     struct join_wait *w, bool again)
{
	if (again || w->epoch != store_epoch(h->store))
		stack_name(j, h, w->size ? w->stack : &w->of.ev, &w->named);
	w->epoch = store_epoch(h->store);
	return &w->named;
}

/* One of the two amounts of a wait. */
static void amount_store(struct join *j, struct family_host *h, struct join_wait *w,
			 const struct amount_of *x)
{
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++)
		err = amount_put(h, named_now(j, h, w, i > 0), &w->of.end, x);
	if (err)
		h->refused += w->of.end.weight;
	else
		h->added += w->of.end.weight;
}

static uint32_t task_of(struct family_host *h, const struct naming_result *named,
			const char name[STACK_COMM_LEN], uint32_t tgid, uint32_t tid)
{
	char thread[STACK_COMM_LEN + 1];

	thread_told(h, named, name, tgid, thread, &tid);
	return store_task(h->store, h->run, named->process, thread, tid);
}

/* What it waited on. Where the store does not take it, it has refused the wait's amounts, and is
 * counted there. */
static void object_store(struct join *j, struct family_host *h, struct join_wait *w)
{
	const struct offcpu_end *e = &w->of.end;
	char buf[OBJECT_LEN];
	struct store_wait_on x = {.class = (enum store_wait_class)e->class,
				  .object = object_name(&j->objects, e, buf),
				  .n = e->weight,
				  .total_ns = e->weight * e->blocked_ns};
	int err = -ESTALE;

	for (int i = 0; x.n && x.object && i < 3 && err == -ESTALE; i++) {
		const struct naming_result *named = named_now(j, h, w, i > 0);

		if (named->excluded)
			return;
		x.stack = w->size ? named->stack : 0;
		x.waker = e->waker && j->thread ? j->thread(j->ctx, h, e->waker) : 0;
		err = store_wait_on(h->store,
				    task_of(h, named, e->ev.thread, e->ev.tgid, e->ev.tid),
				    family_utc(h, (int64_t)e->ev.time_ns), &x);
	}
}

static void end_store(struct join *j, struct family_host *h, struct join_wait *w)
{
	const struct offcpu_end *e = &w->of.end;
	struct amount_of blocked = {STORE_KIND_OFFCPU, e->class, e->blocked_ns};
	struct amount_of ready = {STORE_KIND_RUNQUEUE, e->blocked ? OFFCPU_WOKEN : e->class,
				  e->ready_ns};

	if (e->blocked)
		amount_store(j, h, w, &blocked);
	amount_store(j, h, w, &ready);
	if (e->blocked)
		object_store(j, h, w);
}

/* Where the store takes it not, the wait itself was refused too, and is counted there. */
static void wake_store(struct join *j, struct family_host *h, struct join_wait *w)
{
	const struct offcpu_wake *e = &w->of.wake;
	const struct stack_event who = {.time_ns = e->ev.time_ns,
					.start_ns = e->start_ns,
					.tgid = e->tgid,
					.tid = e->tid,
					.exec_id = e->exec_id,
					.flags = e->flags};
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		const struct naming_result *by = named_now(j, h, w, i > 0);
		struct store_wake x = {.class = (enum store_wait_class)e->class,
				       .n = 1,
				       .total_ns = e->slept_ns,
				       .context = (enum store_wake_context)e->context,
				       .stack = w->size ? by->stack : 0};
		struct naming_result slept;

		x.waker = task_of(h, by, e->ev.thread, e->ev.tgid, e->ev.tid);
		naming_stack(h->naming, &who, NULL, &slept);
		err = store_wake(h->store, task_of(h, &slept, e->thread, e->tgid, e->tid),
				 family_utc(h, (int64_t)e->ev.time_ns), &x);
	}
}

static void wait_store(struct join *j, struct family_host *h, struct join_wait *w)
{
	if (w->of.ev.end == OFFCPU_RECORD_WAKE)
		wake_store(j, h, w);
	else
		end_store(j, h, w);
	wait_forget(j, w);
}

/* ---- what comes ---- */

static struct join_wait *wait_new(struct join *j, uint64_t key, const struct stack_event *ev,
				  size_t size)
{
	struct join_wait *w = mem_alloc(sizeof(*w) + size);

	w->key = key;
	w->size = size;
	if (size)
		memcpy(w->stack, ev, size);
	idmap_set(&j->waiting, key, (uintptr_t)w);
	return w;
}

/* A thread that left the CPU again has finished its previous wait. That one's end may still come:
 * the younger stack may have been unwound later, and so have overtaken it in the other ring. See
 * join_settle. */
static void last_set(struct join *j, struct join_wait *w)
{
	uint32_t tid = w->stack->tid;
	struct join_wait *before;
	uint64_t old;

	if (idmap_get(&j->last, tid, &old) && old != w->key) {
		before = wait_find(j, old);
		if (before && before->size && before->stack->time_ns > w->stack->time_ns) {
			w->over = j->turn;
			return;
		}
		if (before && !before->told)
			before->over = j->turn;
	}
	idmap_set(&j->last, tid, w->key);
}

void join_stack(struct join *j, struct family_host *h, const struct stack_event *ev, size_t size,
		struct naming_result *named)
{
	uint64_t key = key_of(ev->tid, ev->time_ns);
	struct join_wait *end = wait_find(j, key), *w;

	if (end && end->size)
		return; /* the same again */
	if (end)
		idmap_del(&j->waiting, key);
	w = wait_new(j, key, ev, size);
	stack_name(j, h, ev, &w->named);
	w->epoch = store_epoch(h->store);
	*named = w->named;
	w->named.exe = "";
	if (!end) {
		last_set(j, w);
		return;
	}
	w->told = true;
	w->of = end->of;
	free(end);
	wait_store(j, h, w);
}

/* `e`: `size` bytes, the message for the stack `key`. */
static void told(struct join *j, struct family_host *h, uint64_t key, const struct stack_event *e,
		 size_t size)
{
	struct join_wait *w = wait_find(j, key);
	uint64_t at;

	if (w && w->told) { /* another one of that moment */
		wait_store(j, h, w);
		w = NULL;
	}
	if (!w)
		w = wait_new(j, key, NULL, 0);
	memcpy(&w->of, e, size);
	w->told = true;
	if (!w->size)
		return;
	if (idmap_get(&j->last, e->tid, &at) && at == key)
		idmap_del(&j->last, e->tid);
	wait_store(j, h, w);
}

void join_end(struct join *j, struct family_host *h, const struct offcpu_end *e)
{
	told(j, h, key_of(e->ev.tid, e->out_ns), &e->ev, sizeof(*e));
}

void join_wake(struct join *j, struct family_host *h, const struct offcpu_wake *e)
{
	told(j, h, key_of(e->ev.tid, e->ev.time_ns), &e->ev, sizeof(*e));
}

void join_settle(struct join *j, struct family_host *h, int64_t now_ns)
{
	j->turn++;
	for (size_t i = 0; i < j->waiting.cap;) {
		struct idmap_slot *s = &j->waiting.slots[i];
		struct join_wait *w = s->used ? (struct join_wait *)(uintptr_t)s->value : NULL;

		if (w && w->told && (int64_t)w->of.ev.time_ns < now_ns - JOIN_PATIENCE_NS)
			wait_store(j, h, w); /* the entry after it may have moved here */
		else if (w && !w->told && w->over && w->over + JOIN_OVER_TURNS <= j->turn)
			wait_forget(j, w); /* here too */
		else
			i++;
	}
}

void join_finish(struct join *j, struct family_host *h)
{
	join_settle(j, h, INT64_MAX);
	for (size_t i = 0; i < j->waiting.cap;) {
		struct idmap_slot *s = &j->waiting.slots[i];

		if (s->used)
			wait_forget(j, (struct join_wait *)(uintptr_t)s->value);
		else
			i++;
	}
}
