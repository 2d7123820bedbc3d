/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/serving.h"

#include <stdlib.h>

#include "probes/l7.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"

#define THREADS_MOST 16384 /* above that, those are forgotten that have nothing open */

struct thread {
	uint32_t n;
	uint64_t tags;      /* sum of those that are counted: with one, that one */
	int64_t several_ns; /* until when it had more than one; 0: never */
};

struct serving {
	struct idmap threads; /* tid -> struct thread * */
	struct idmap apart;   /* tgid -> when a request was last answered by another thread */
	struct idmap own;     /* tid -> when it last asked something with nothing open */
};

struct serving *serving_new(void)
{
	return mem_alloc(sizeof(struct serving));
}

static struct thread *thread_of(const struct serving *s, uint32_t tid)
{
	uint64_t at;

	return idmap_get(&s->threads, tid, &at) ? (struct thread *)(uintptr_t)at : NULL;
}

void serving_free(struct serving *s)
{
	for (size_t i = 0; i < s->threads.cap; i++)
		if (s->threads.slots[i].used)
			free((void *)(uintptr_t)s->threads.slots[i].value);
	idmap_release(&s->threads);
	idmap_release(&s->apart);
	idmap_release(&s->own);
	free(s);
}

static void idle_forget(struct serving *s)
{
	for (size_t i = 0; i < s->threads.cap;) {
		struct idmap_slot *x = &s->threads.slots[i];
		struct thread *t = x->used ? (struct thread *)(uintptr_t)x->value : NULL;

		if (t && !t->n) {
			idmap_del(&s->threads, x->key); /* the next one may have moved here */
			free(t);
		} else {
			i++;
		}
	}
}

static struct thread *thread_make(struct serving *s, uint32_t tid)
{
	struct thread *t = thread_of(s, tid);

	if (t)
		return t;
	if (s->threads.n >= THREADS_MOST)
		idle_forget(s);
	t = mem_alloc(sizeof(*t));
	idmap_set(&s->threads, tid, (uint64_t)(uintptr_t)t);
	return t;
}

static void count(struct serving *s, struct serving_end *x)
{
	struct thread *t = thread_make(s, x->reader);

	t->n++;
	t->tags += x->tag;
	x->counted = true;
	x->counted_tid = x->reader;
	x->counted_tag = x->tag;
}

static void uncount(struct serving *s, struct serving_end *x, int64_t at_ns)
{
	struct thread *t = thread_of(s, x->counted_tid);

	x->counted = false;
	if (!t || !t->n)
		return;
	if (t->n > 1)
		t->several_ns = at_ns;
	t->n--;
	t->tags -= x->counted_tag;
}

void serving_reads(struct serving *s, struct serving_end *x, uint32_t tgid, uint32_t tid,
		   int64_t at_ns)
{
	(void)s;
	if (!x->tag)
		x->tag = TABLES_TAG_OF(at_ns);
	x->tgid = tgid;
	x->reader = tid;
}

static void note(struct idmap *m, uint64_t who, int64_t at_ns)
{
	if (m->n >= THREADS_MOST)
		idmap_clear(m);
	idmap_set(m, who, (uint64_t)at_ns);
}

void serving_writes(struct serving *s, struct serving_end *x, uint32_t tid, int64_t at_ns)
{
	if (x->tag && !(x->tag & TABLES_TAG_GOROUTINE) && x->reader != tid)
		note(&s->apart, x->tgid, at_ns);
	x->tag = 0;
}

void serving_asks(struct serving *s, uint32_t tid, int64_t at_ns)
{
	const struct thread *t = thread_of(s, tid);

	if (!t || !t->n)
		note(&s->own, tid, at_ns);
}

bool serving_own(const struct serving *s, uint32_t tid, int64_t now_ns)
{
	uint64_t at;

	return idmap_get(&s->own, tid, &at) && now_ns < (int64_t)at + SERVING_OWN_NS;
}

void serving_counts(struct serving *s, struct serving_end *x, bool open, int64_t at_ns)
{
	bool same =
		x->counted && x->counted_tid == x->reader && (!x->tag || x->tag == x->counted_tag);

	if (x->counted && (!open || !same))
		uncount(s, x, at_ns);
	if (open && !x->counted && x->reader)
		count(s, x);
}

bool serving_apart(const struct serving *s, uint32_t tgid, int64_t now_ns)
{
	uint64_t at;

	return idmap_get(&s->apart, tgid, &at) && now_ns < (int64_t)at + SERVING_APART_NS;
}

uint64_t serving_only(const struct serving *s, uint32_t tid)
{
	const struct thread *t = thread_of(s, tid);

	return t && t->n == 1 && t->several_ns <= (int64_t)(t->tags & ~TABLES_TAG_GOROUTINE) ?
		       t->tags :
		       0;
}

bool serving_alone(const struct serving *s, uint32_t tid, uint64_t tag)
{
	const struct thread *t = thread_of(s, tid);

	/* its own question may not be complete yet */
	return !t || (!t->n && t->several_ns <= (int64_t)tag) || serving_only(s, tid) == tag;
}
