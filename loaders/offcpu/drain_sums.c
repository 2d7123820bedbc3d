// SPDX-License-Identifier: Apache-2.0
/* drain_sums: how long threads ran and waited, since the reading before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/offcpu/drain_parts.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/writer.h"

void drain_sum_free(struct drain_sum *x)
{
	free(x->coarse);
	free(x);
}

/* The program adds to it no more: the next sum may stand there. Nobody else takes totals out of
 * their map. */
static void sum_remove(struct reading *r, const struct offcpu_key *key, uint32_t slot)
{
	const struct offcpu_sum *sum = r->d->maps.sums + slot;

	drain_removal_add(&r->totals, key, sizeof(*key));
	if (slot >= r->d->maps.n_sums)
		return;
	drain_removal_add(&r->slots, &slot, sizeof(slot));
	for (int p = 0; p < OFFCPU_POWERS; p++) {
		uint32_t at = sum->power[p] - 1;

		if (at < r->d->maps.n_steps)
			drain_removal_add(&r->steps, &at, sizeof(at));
	}
}

/* NULL: it is not known whose it is. */
static struct drain_sum *sum_before(struct drain *d, const struct offcpu_key *key, uint32_t slot)
{
	uint64_t hash = hash_bytes(HASH_SEED, key, sizeof(*key)), at;
	struct drain_who *who;
	struct drain_sum *s;

	if (idmap_get(&d->sums, hash, &at))
		return (struct drain_sum *)(uintptr_t)at;
	who = drain_who_find(d, key->id);
	if (!who)
		return NULL;
	s = mem_alloc(sizeof(*s));
	*s = (struct drain_sum){.key = *key, .who = who, .slot = slot};
	idmap_set(&d->sums, hash, (uintptr_t)s);
	return s;
}

int drain_wait_put(struct reading *r, struct drain_who *who, const struct store_wait *x)
{
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++)
		err = store_wait(r->h->store, drain_who_task(r, who), r->utc_ns, x);
	if (err)
		r->h->refused += x->n;
	else
		r->h->added += x->n;
	return err;
}

/* While no stacks are taken what is known by stack is that there is none: so sums by stack are
 * whole at any time. */
static void stackless_put(struct reading *r, struct drain_who *w, const struct store_wait *x)
{
	bool blocked = x->class < STORE_READY_WOKEN;
	struct store_amount a = {.n = x->n,
				 .value = x->total_ns,
				 .max = x->max_ns,
				 .hist = x->hist,
				 .n_hist = x->n_hist,
				 .first_slot = x->first_slot};
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid, process, series;
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		process = drain_who_process(r, w, thread, &tid);
		series = store_series_labelled(r->h->store, r->h->run, process, thread, tid, 0,
					       blocked ? STORE_KIND_OFFCPU : STORE_KIND_RUNQUEUE,
					       x->class);
		err = store_amount(r->h->store, series, r->utc_ns, &a);
	}
	if (err)
		r->h->refused += x->n;
	else
		r->h->added += x->n;
}

/* As they were when they were read last. */
static struct offcpu_steps *steps_seen(struct drain *d, uint32_t at)
{
	uint32_t n = d->n_seen ? d->n_seen : 256;

	while (n <= at)
		n *= 2;
	if (n > d->n_seen) {
		d->seen = mem_realloc(d->seen, n * sizeof(*d->seen));
		memset(d->seen + d->n_seen, 0, (n - d->n_seen) * sizeof(*d->seen));
		d->n_seen = n;
	}
	return &d->seen[at];
}

/* Stretches whose steps had no room: by powers of two (model/hist.h, rule 2). */
static void coarse_read(struct drain_sum *before, uint32_t p, uint32_t power,
			uint32_t hist[HIST_SLOTS])
{
	if (!before->coarse)
		before->coarse = mem_array(OFFCPU_POWERS, sizeof(*before->coarse));
	power &= ~OFFCPU_COARSE;
	hist[(p + 2) % HIST_FINE] = power - before->coarse[p];
	before->coarse[p] = power;
}

/* What has been added to its steps since. */
static void hist_since(struct drain *d, struct drain_sum *before, const struct offcpu_sum *now,
		       uint32_t hist[HIST_SLOTS])
{
	for (uint32_t p = 0; p < OFFCPU_POWERS; p++) {
		uint32_t at = now->power[p] - 1;

		if (now->power[p] & OFFCPU_COARSE)
			coarse_read(before, p, now->power[p], hist);
		if (!now->power[p] || at >= d->maps.n_steps)
			continue;
		for (int i = 0; i < OFFCPU_STEPS; i++) {
			uint32_t n = d->maps.steps[at].n[i], *seen = &steps_seen(d, at)->n[i];

			hist[HIST_FINE + p * OFFCPU_STEPS + i] = n - *seen;
			*seen = n;
		}
	}
}

/* The slots that it has something in. */
static void wait_hist(struct store_wait *x, const uint32_t hist[HIST_SLOTS])
{
	unsigned last = HIST_SLOTS;

	while (x->first_slot < HIST_SLOTS && !hist[x->first_slot])
		x->first_slot++;
	while (last > x->first_slot && !hist[last - 1])
		last--;
	x->n_hist = last - x->first_slot;
	x->hist = hist + (x->n_hist ? x->first_slot : 0);
}

void drain_sum_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_key key;
	struct offcpu_sum now;
	struct drain_sum *before;
	struct store_wait x;
	uint32_t hist[HIST_SLOTS] = {0}, half = r->number & 1, slot;

	memcpy(&key, key_, sizeof(key));
	memcpy(&slot, value, sizeof(slot));
	if (slot >= r->d->maps.n_sums)
		return;
	before = sum_before(r->d, &key, slot);
	if (!before) { /* made since `who` was read: next time */
		if (drain_who_forgotten(r->d, key.id))
			sum_remove(r, &key, slot);
		return;
	}
	now = r->d->maps.sums[slot];
	if (now.n == before->n)
		return;
	hist_since(r->d, before, &now, hist);
	x = (struct store_wait){.class = (enum store_wait_class)key.class,
				.flags = key.flags & ~(uint32_t)OFFCPU_F_STACKLESS,
				.n = now.n - before->n,
				.total_ns = now.total_ns - before->total_ns,
				.max_ns = now.reading[half] == r->number ? now.max_ns[half] : 0};
	wait_hist(&x, hist);
	if (key.flags & OFFCPU_F_STACKLESS && !(key.flags & OFFCPU_F_BEFORE))
		stackless_put(r, before->who, &x);
	drain_wait_put(r, before->who, &x);
	before->n = now.n;
	before->total_ns = now.total_ns;
}

void drain_sums_forget(struct reading *r)
{
	struct drain *d = r->d;

	for (size_t i = 0; i < d->sums.cap;) {
		struct idmap_slot *s = &d->sums.slots[i];
		struct drain_sum *x = s->used ? (struct drain_sum *)(uintptr_t)s->value : NULL;

		if (!x || !drain_who_gone(d, x->who)) {
			i++;
			continue;
		}
		sum_remove(r, &x->key, x->slot);
		idmap_del(&d->sums, s->key);
		drain_sum_free(x);
	}
}
