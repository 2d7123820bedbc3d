// SPDX-License-Identifier: Apache-2.0
/* drain_counts: who woke whom, and who had the CPU while another was ready, since the reading
 * before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/offcpu/drain_parts.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

/* As read before; `other`: it tells of another thread too. NULL: it is not known whose it is. */
static struct drain_count *count_before(struct drain *d, const struct offcpu_wake_key *key,
					bool other)
{
	uint64_t hash = hash_bytes(HASH_SEED, key, sizeof(*key)), at;
	struct drain_who *who, *by;
	struct drain_count *c;

	if (idmap_get(&d->counts, hash, &at))
		return (struct drain_count *)(uintptr_t)at;
	who = drain_who_find(d, key->id);
	by = other ? drain_who_find(d, key->waker) : NULL;
	if (!who || (other && !by))
		return NULL;
	c = mem_alloc(sizeof(*c));
	*c = (struct drain_count){.key = *key, .who = who, .by = by};
	idmap_set(&d->counts, hash, (uintptr_t)c);
	return c;
}

static struct offcpu_count count_take(struct drain_count *c, const struct offcpu_count *now)
{
	struct offcpu_count more = {.n = now->n - c->count.n,
				    .total_ns = now->total_ns - c->count.total_ns};

	c->count = *now;
	return more;
}

void drain_wake_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_wake_key key;
	struct drain_count *before;
	struct offcpu_count now;
	struct store_wake x;
	int err = -ESTALE;

	memcpy(&key, key_, sizeof(key));
	memcpy(&now, value, sizeof(now));
	before = count_before(r->d, &key, key.waker);
	if (!before) {
		if (drain_who_forgotten(r->d, key.id) &&
		    (!key.waker || drain_who_forgotten(r->d, key.waker)))
			drain_removal_add(&r->wakes, &key, sizeof(key));
		return;
	}
	now = count_take(before, &now);
	if (!now.n)
		return;
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		x = (struct store_wake){.class = (enum store_wait_class)key.class,
					.n = now.n,
					.total_ns = now.total_ns,
					.context = (enum store_wake_context)key.context};
		x.waker = before->by ? drain_who_task(r, before->by) : 0;
		err = store_wake(r->h->store, drain_who_task(r, before->who), r->utc_ns, &x);
	}
}

/* What one took from another in a reading: less is told of nobody (30 to 60 % of rows, 0.5 % of the
 * time). */
#define SMALL_NS       100000
#define SMALL_BRIEF_NS 300000     /* where buckets are long, and readings rare */
#define COUNT_CULPRIT  UINT32_MAX /* in place of a class: the two share a table */

static void culprit_put(struct reading *r, struct drain_who *who, struct drain_who *by,
			enum store_culprit_kind kind, const struct offcpu_count *now)
{
	struct store_culprit x = {.kind = kind, .n = now->n, .total_ns = now->total_ns};
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		x.culprit = by ? drain_who_task(r, by) : 0;
		err = store_culprit(r->h->store, drain_who_task(r, who), r->utc_ns, &x);
	}
}

static void small_add(struct reading *r, struct drain_who *who, const struct offcpu_count *now)
{
	if (!who->small.n)
		drain_removal_add(&r->smalls, &who, sizeof(who));
	who->small.n += now->n;
	who->small.total_ns += now->total_ns;
}

void drain_culprit_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_culprit_key key;
	struct drain_count *before;
	struct offcpu_wake_key as;
	struct offcpu_count now;
	bool thread;

	memcpy(&key, key_, sizeof(key));
	memcpy(&now, value, sizeof(now));
	thread = key.by > OFFCPU_BY_UNKNOWN;
	as = (struct offcpu_wake_key){.id = key.id, .waker = key.by, .class = COUNT_CULPRIT};
	before = count_before(r->d, &as, thread);
	if (!before) {
		if (drain_who_forgotten(r->d, key.id) &&
		    (!thread || drain_who_forgotten(r->d, key.by)))
			drain_removal_add(&r->culprits, &key, sizeof(key));
		return;
	}
	now = count_take(before, &now);
	if (!now.n)
		return;
	if (thread && now.total_ns < (r->h->bucket_s < FAMILY_ALWAYS_S ? SMALL_NS : SMALL_BRIEF_NS))
		small_add(r, before->who, &now);
	else
		culprit_put(r, before->who, before->by,
			    thread ? STORE_CULPRIT_THREAD : (enum store_culprit_kind)key.by, &now);
}

void drain_smalls_put(struct reading *r)
{
	for (size_t i = 0; i < r->smalls.n; i++) {
		struct drain_who *w;

		memcpy(&w, r->smalls.keys + i * sizeof(w), sizeof(w));
		culprit_put(r, w, NULL, STORE_CULPRIT_UNKNOWN, &w->small);
		w->small = (struct offcpu_count){0};
	}
	free(r->smalls.keys);
}

void drain_counts_forget(struct reading *r)
{
	struct drain *d = r->d;

	for (size_t i = 0; i < d->counts.cap;) {
		struct idmap_slot *s = &d->counts.slots[i];
		struct drain_count *x = s->used ? (struct drain_count *)(uintptr_t)s->value : NULL;
		struct offcpu_culprit_key culprit;

		if (!x || (!drain_who_gone(d, x->who) && !drain_who_gone(d, x->by))) {
			i++;
			continue;
		}
		culprit = (struct offcpu_culprit_key){x->key.id, x->key.waker};
		if (x->key.class == COUNT_CULPRIT)
			drain_removal_add(&r->culprits, &culprit, sizeof(culprit));
		else
			drain_removal_add(&r->wakes, &x->key, sizeof(x->key));
		idmap_del(&d->counts, s->key);
		free(x);
	}
}
