// SPDX-License-Identifier: Apache-2.0
#include "loaders/offcpu/drain.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/offcpu/drain_parts.h"
#include "loaders/offcpu/mapread.h"
#include "schema/base/mem.h"

void drain_init(struct drain *d, const struct drain_maps *maps, int64_t begin_ns)
{
	*d = (struct drain){.maps = *maps, .read_ns = begin_ns};
}

static void table_release(struct idmap *m)
{
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			free((void *)(uintptr_t)m->slots[i].value);
	idmap_release(m);
}

void drain_release(struct drain *d)
{
	for (size_t i = 0; i < d->sums.cap; i++)
		if (d->sums.slots[i].used)
			drain_sum_free((struct drain_sum *)(uintptr_t)d->sums.slots[i].value);
	idmap_release(&d->sums);
	free(d->seen);
	table_release(&d->who);
	table_release(&d->counts);
}

/* ---- removals ---- */

void drain_removal_add(struct removal *x, const void *key, size_t size)
{
	x->size = size;
	if (x->n == x->cap) {
		x->cap = x->cap ? 2 * x->cap : 256;
		x->keys = mem_realloc(x->keys, x->cap * size);
	}
	memcpy(x->keys + x->n++ * size, key, size);
}

static void removal_do(struct removal *x, int map)
{
	mapread_remove(map, x->size, x->keys, x->n);
	free(x->keys);
}

static int slot_order(const void *a, const void *b)
{
	return *(const uint32_t *)a < *(const uint32_t *)b ?
		       -1 :
		       *(const uint32_t *)a > *(const uint32_t *)b;
}

/* Those beside one another are given back together. */
static void slots_free(struct removal *x, void *map, size_t size, int queue)
{
	uint32_t *slots = (uint32_t *)(void *)x->keys;

	if (x->n)
		qsort(slots, x->n, sizeof(*slots), slot_order);
	for (size_t i = 0, next; i < x->n; i = next) {
		struct offcpu_slots some = {.first = slots[i], .n = 1};

		for (next = i + 1; next < x->n && slots[next] == slots[i] + some.n; next++)
			some.n++;
		memset((uint8_t *)map + some.first * size, 0, some.n * size);
		bpf_map_update_elem(queue, NULL, &some, BPF_ANY);
	}
	free(x->keys);
}

static void steps_unseen(struct drain *d, const struct removal *x)
{
	const uint32_t *at = (const uint32_t *)(const void *)x->keys;

	for (size_t i = 0; i < x->n; i++)
		if (at[i] < d->n_seen)
			d->seen[at[i]] = (struct offcpu_steps){0};
}

/* Keys first: a slot that is given back is another's at once. */
static void remove_all(struct reading *r)
{
	removal_do(&r->totals, r->d->maps.totals);
	removal_do(&r->wakes, r->d->maps.wakes);
	removal_do(&r->culprits, r->d->maps.culprits);
	steps_unseen(r->d, &r->steps);
	slots_free(&r->slots, r->d->maps.sums, sizeof(*r->d->maps.sums), r->d->maps.free_slots);
	slots_free(&r->steps, r->d->maps.steps, sizeof(*r->d->maps.steps), r->d->maps.free_steps);
}

/* ---- readings ---- */

void drain_read(struct drain *d, struct family_host *h, uint32_t reading, int64_t now_ns)
{
	struct reading r = {.d = d,
			    .h = h,
			    .utc_ns = (d->read_ns + now_ns) / 2 + h->offset_ns,
			    .number = reading,
			    .from_ns = d->read_ns};

	d->turn++;
	d->read_ns = now_ns;
	mapread_each(d->maps.who, sizeof(uint64_t), sizeof(struct offcpu_who), drain_who_read, &r);
	mapread_each(d->maps.threads, sizeof(uint64_t), sizeof(struct offcpu_thread),
		     drain_thread_read, &r);
	if (h->bucket_s >= FAMILY_ALWAYS_S)
		drain_briefs_judge(&r);
	mapread_each(d->maps.totals, sizeof(struct offcpu_key), sizeof(uint32_t), drain_sum_read,
		     &r);
	mapread_each(d->maps.wakes, sizeof(struct offcpu_wake_key), sizeof(struct offcpu_count),
		     drain_wake_read, &r);
	mapread_each(d->maps.culprits, sizeof(struct offcpu_culprit_key),
		     sizeof(struct offcpu_count), drain_culprit_read, &r);
	drain_smalls_put(&r);
	drain_sums_forget(&r);
	drain_counts_forget(&r);
	drain_who_forget(d);
	remove_all(&r);
}

static void last_put(struct reading *r, const struct offcpu_thread *t, uint32_t class,
		     uint32_t flags, uint64_t from, uint64_t to)
{
	struct store_wait x = {.class = (enum store_wait_class) class,
			       .flags = (flags & ~(uint32_t)OFFCPU_F_STACKLESS) |
					STORE_WAIT_UNFINISHED,
			       .n = 1,
			       .total_ns = to > from ? to - from : 0,
			       .max_ns = to > from ? to - from : 0};

	struct drain_who *who = drain_who_find(r->d, t->id);

	if (who)
		drain_wait_put(r, who, &x);
}

static void unfinished_read(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_thread t;
	uint64_t end = (uint64_t)r->d->read_ns;

	(void)key;
	memcpy(&t, value, sizeof(t));
	if (!t.in_scope || !t.since_ns)
		return;
	if (t.state == OFFCPU_S_BLOCKED && t.woken_ns > t.since_ns) {
		last_put(r, &t, t.class, t.flags, t.since_ns, t.woken_ns);
		last_put(r, &t, OFFCPU_WOKEN, 0, t.woken_ns, end);
	} else {
		last_put(r, &t, t.state == OFFCPU_S_RUNNING ? OFFCPU_RUNNING : t.class,
			 t.state == OFFCPU_S_RUNNING ? t.flags & OFFCPU_F_BEFORE : t.flags,
			 t.since_ns, end);
	}
}

void drain_unfinished(struct drain *d, struct family_host *h, int64_t now_ns)
{
	struct reading r = {.d = d, .h = h, .utc_ns = now_ns + h->offset_ns - 1};

	d->read_ns = now_ns;
	mapread_each(d->maps.threads, sizeof(uint64_t), sizeof(struct offcpu_thread),
		     unfinished_read, &r);
}
