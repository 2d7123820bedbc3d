/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/late/late.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/unwind/unwind.h"
#include "schema/base/mem.h"

#define BURST_BYTES (4u << 20)

struct late_item {
	struct late_item *next;
	size_t size;
	uint64_t time_ns;
	uint64_t pending;                       /* the image it waits for, 0: not tried yet */
	struct late_aside aside[STACK_ASIDE_N]; /* their bytes are behind the record's */
	uint64_t record[]; /* a struct stack_late, with as much stack as was filled */
};

void late_init(struct late *q, size_t max_bytes)
{
	*q = (struct late){.max_bytes = max_bytes};
	q->tail = &q->head;
}

void late_release(struct late *q)
{
	struct late_item *item;

	while ((item = q->head)) {
		q->head = item->next;
		free(item);
	}
	late_parts_release(&q->more);
	free(q->out);
	late_init(q, q->max_bytes);
}

static bool sound(const struct stack_late *l, size_t size)
{
	return size >= offsetof(struct stack_late, stack) && l->ev.n_kernel <= STACK_KERNEL_MAX &&
	       !l->ev.n_user && l->size <= STACK_LATE_BYTES &&
	       l->size <= size - offsetof(struct stack_late, stack);
}

static size_t used(const struct stack_late *l)
{
	return offsetof(struct stack_late, stack) + l->size;
}

static size_t aside_bytes(const struct stack_more *more)
{
	return more ? more->size - sizeof(uint64_t) : 0;
}

static void aside_take(struct late_item *item, const struct late_parts *parts,
		       const struct stack_late *l, uint8_t *to)
{
	for (uint32_t i = 0; i < STACK_ASIDE_N; i++) {
		const struct stack_more *more = late_parts_aside(parts, l, i);
		struct late_aside *a = &item->aside[i];

		a->size = aside_bytes(more);
		if (!a->size)
			continue;
		memcpy(&a->at, more->stack, sizeof(a->at));
		memcpy(to, more->stack + sizeof(a->at), a->size);
		a->bytes = to;
		to += a->size;
	}
}

int late_push(struct late *q, const void *record, size_t size)
{
	const struct stack_late *l = record;
	struct stack_late *copy;
	struct late_item *item;
	size_t more, aside = 0;

	if (late_parts_is(record, size))
		return late_parts_push(&q->more, record, size);
	if (!sound(l, size))
		return -EBADMSG;
	size = used(l);
	more = late_parts_bytes(&q->more, l);
	for (uint32_t i = 0; i < STACK_ASIDE_N; i++)
		aside += aside_bytes(late_parts_aside(&q->more, l, i));
	if (q->bytes + sizeof(*item) + size + more + aside > q->max_bytes)
		return -ENOBUFS;
	item = mem_alloc(sizeof(*item) + ((size + more + aside + 7) & ~(size_t)7));
	item->size = sizeof(*item) + size + more + aside;
	item->time_ns = l->ev.time_ns;
	memcpy(item->record, record, size);
	copy = (void *)item->record;
	aside_take(item, &q->more, l, (uint8_t *)item->record + size + more);
	late_parts_take(&q->more, l, copy->stack);
	copy->size += (__u32)more;
	*q->tail = item;
	q->tail = &item->next;
	q->bytes += item->size;
	q->most_bytes = q->bytes > q->most_bytes ? q->bytes : q->most_bytes;
	q->n++;
	return 0;
}

struct asked {
	const struct late *q;
	const struct stack_late *l;
	const struct late_aside *aside;
	struct hostmaps *hm;
	struct hostmaps_process *p;
	uint64_t time_ns, pending;
};

static bool where(void *ctx, uint64_t addr, struct unwind_where *out)
{
	struct asked *a = ctx;

	return a->p && hostmaps_where(a->hm, a->p, addr, a->time_ns, out, &a->pending);
}

static enum unwind_code_step code(void *ctx, struct unwind_code *c)
{
	struct asked *a = ctx;
	int step = a->p && a->q->code.step ?
			   a->q->code.step(a->q->code.ctx, a->hm, a->l, a->aside, c) :
			   UNWIND_CODE_UNKNOWN;

	if (step == UNWIND_CODE_ENDS && c->end == STACK_END_PENDING)
		a->pending = c->pending;
	return (enum unwind_code_step)step;
}

/* false: rows are missing that may still come, and *pending says whose. `pending` NULL: unwind with
 * the rows there are. */
static bool unwind(struct late *q, struct hostmaps *hm, const struct late_item *item,
		   uint64_t *pending)
{
	const struct stack_late *l = (const void *)item->record;
	struct asked a = {.q = q,
			  .l = l,
			  .aside = item->aside,
			  .hm = hm,
			  .time_ns = l->ev.time_ns,
			  .p = hostmaps_process(hm, l->ev.tgid, l->ev.start_ns, l->ev.exec_id)};
	struct unwind_from from = {.ctx = &a, .where = where, .code = code};
	enum stack_end end = STACK_END_NONE;
	size_t n = 0;

	if (!q->out)
		q->out = mem_alloc(sizeof(*q->out));
	unwind_late(l, &from, q->out->frames + l->ev.n_kernel,
		    l->ev.end == STACK_END_UNSUPPORTED ? STACK_USER_MAX : STACK_NATIVE_MAX, &n,
		    &end);
	if (!a.p)
		end = STACK_END_NO_PROCESS;
	if (end == STACK_END_PENDING && pending) {
		*pending = a.pending;
		return false;
	}
	q->out->ev = l->ev;
	q->out->ev.flags &= (__u16) ~(STACK_F_LATE |
				      STACK_F_TABLES); /* its frames are addresses, of its time */
	q->out->ev.flags |= end == STACK_END_DEPTH ? STACK_F_TRUNCATED : 0;
	q->out->ev.n_user = (__u16)n;
	q->out->ev.end = (__u16)end;
	memcpy(q->out->frames, l->kernel, l->ev.n_kernel * sizeof(*l->kernel));
	return true;
}

static void hand_over(const struct late *q, late_fn fn, void *ctx)
{
	const struct stack_event *ev = &q->out->ev;

	fn(ctx, ev, sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(q->out->frames[0]));
}

/* Is it worth trying? Not before sonde-maps has reached its time, and not while what it needs is
 * pending. */
static bool due(const struct late_item *item, const struct hostmaps *hm, bool patient)
{
	if (!patient)
		return true;
	return hostmaps_seeded(hm) && item->time_ns <= hostmaps_watermark(hm) &&
	       !(item->pending && hostmaps_awaits(hm, item->pending));
}

/* Takes it out of the list and passes its event on. */
static void finish(struct late *q, struct late_item **at, late_fn fn, void *ctx)
{
	struct late_item *item = *at;

	*at = item->next;
	if (q->tail == &item->next)
		q->tail = at;
	q->bytes -= item->size;
	q->n--;
	free(item);
	if (!q->n) { /* after a burst, free the memory */
		if (q->most_bytes > BURST_BYTES)
			malloc_trim(0);
		q->most_bytes = 0;
	}
	hand_over(q, fn, ctx);
}

void late_drain(struct late *q, struct hostmaps *hm, uint64_t now_ns, uint64_t patience_ns,
		bool all, late_fn fn, void *ctx)
{
	struct late_item **at = &q->head, *item;

	while ((item = *at)) {
		bool patient = !all && item->time_ns + patience_ns > now_ns;

		if (due(item, hm, patient) && unwind(q, hm, item, patient ? &item->pending : NULL))
			finish(q, at, fn, ctx);
		else
			at = &item->next;
	}
}

void late_shed(struct late *q, struct hostmaps *hm, late_fn fn, void *ctx)
{
	while (q->n && q->bytes > q->max_bytes - q->max_bytes / 16) {
		unwind(q, hm, q->head, NULL);
		finish(q, &q->head, fn, ctx);
	}
}

uint64_t late_oldest(const struct late *q)
{
	uint64_t oldest = UINT64_MAX;

	for (const struct late_item *item = q->head; item; item = item->next)
		oldest = item->time_ns < oldest ? item->time_ns : oldest;
	return oldest;
}
