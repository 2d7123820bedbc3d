// SPDX-License-Identifier: Apache-2.0
#include "loaders/offcpu/drain.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/naming.h"
#include "loaders/offcpu/mapread.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/waits.h"
#include "schema/store/writer.h"

struct drain_who {
	struct offcpu_who who;
	uint32_t task, epoch;  /* of the store */
	uint32_t turned;       /* naming_turned then */
	uint32_t alive;        /* the last turn in which its thread was there and it was this */
	bool removed;          /* from the map: known here only */
};

struct drain_sum {
	struct offcpu_key key;
	uint32_t slot;
	uint64_t n, total_ns;
	uint32_t hist[OFFCPU_HIST];
};

struct drain_count {
	struct offcpu_wake_key key; /* of a culprit: id and by */
	struct offcpu_count count;
};

struct reading {
	struct drain *d;
	struct family_host *h;
	int64_t utc_ns;        /* the bucket that it is for */
	uint32_t number;
};

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
	table_release(&d->who);
	table_release(&d->sums);
	table_release(&d->counts);
}

/* ---- who ---- */

static struct drain_who *who_find(struct drain *d, uint64_t id)
{
	uint64_t at;

	return idmap_get(&d->who, id, &at) ? (struct drain_who *)(uintptr_t)at : NULL;
}

static void who_read(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;
	struct drain_who *w;
	uint64_t id;

	memcpy(&id, key, sizeof(id));
	w = who_find(r->d, id);
	if (!w) {
		w = mem_alloc(sizeof(*w));
		w->alive = r->d->turn;
		idmap_set(&r->d->who, id, (uintptr_t)w);
	}
	memcpy(&w->who, value, sizeof(w->who));
}

static void thread_read(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_thread t;
	struct drain_who *w;

	(void)key;
	memcpy(&t, value, sizeof(t));
	w = who_find(r->d, t.id);
	if (w)
		w->alive = r->d->turn;
}

/* The store's id of a thread; 0: it is not known (yet). */
static uint32_t who_task(struct reading *r, uint64_t id)
{
	struct drain_who *w = who_find(r->d, id);
	char thread[STACK_COMM_LEN + 1];
	struct naming_result named;
	uint32_t tid;
	struct stack_event ev = {0};

	if (!w)
		return 0;
	if (w->task && w->epoch == store_epoch(r->h->store) && w->turned == naming_turned(r->h->naming))
		return w->task;
	ev.start_ns = w->who.start_ns;
	ev.tgid = w->who.tgid;
	ev.tid = w->who.tid;
	ev.exec_id = w->who.exec_id;
	ev.cgroup_id = w->who.cgroup_id;
	ev.flags = (uint16_t)w->who.flags;
	ev.time_ns = (uint64_t)r->d->read_ns;
	memcpy(ev.thread, w->who.comm, sizeof(ev.thread));
	naming_stack(r->h->naming, &ev, NULL, &named);
	tid = w->who.tid;
	naming_thread(&named, w->who.comm, thread, &tid);
	w->task = store_task(r->h->store, r->h->run, named.process, thread, tid);
	w->epoch = store_epoch(r->h->store);
	w->turned = naming_turned(r->h->naming);
	return w->task;
}

uint32_t drain_thread(struct drain *d, struct family_host *h, uint64_t id)
{
	struct reading r = {.d = d, .h = h};
	struct offcpu_who who;

	if (!who_find(d, id) && !bpf_map_lookup_elem(d->maps.who, &id, &who))
		who_read(&r, &id, &who);
	return who_task(&r, id);
}

/* Whoever this was, it has been forgotten, and something was still added afterwards (by who had been a CPU's neighbour
 * long ago): that entry goes too. The number of a thread tells when it was given (thread_identify). */
static bool who_forgotten(const struct drain *d, uint64_t id)
{
	return ((id & ((1ull << 40) - 1)) << 16) + 5000000000ull < (uint64_t)d->read_ns;
}

/* ---- sums ---- */

/* The program adds to it no more: the next sum may stand there. */
static void slot_free(struct drain *d, uint32_t slot)
{
	const struct offcpu_slots one = {.first = slot, .n = 1};

	if (slot >= d->maps.n_sums)
		return;
	d->maps.sums[slot] = (struct offcpu_sum){0};
	bpf_map_update_elem(d->maps.free_slots, NULL, &one, BPF_ANY);
}

static struct drain_sum *sum_before(struct drain *d, const struct offcpu_key *key, uint32_t slot)
{
	uint64_t hash = hash_bytes(HASH_SEED, key, sizeof(*key)), at;
	struct drain_sum *s;

	if (idmap_get(&d->sums, hash, &at))
		return (struct drain_sum *)(uintptr_t)at;
	s = mem_alloc(sizeof(*s));
	s->key = *key;
	s->slot = slot;
	idmap_set(&d->sums, hash, (uintptr_t)s);
	return s;
}

static int wait_put(struct reading *r, uint64_t id, const struct store_wait *x)
{
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++)
		err = store_wait(r->h->store, who_task(r, id), r->utc_ns, x);
	if (err)
		r->h->refused += x->n;
	else
		r->h->added += x->n;
	return err;
}

static void sum_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_key key;
	struct offcpu_sum now;
	struct drain_sum *before;
	struct store_wait x;
	uint32_t hist[OFFCPU_HIST], half = r->number & 1, slot;

	memcpy(&key, key_, sizeof(key));
	memcpy(&slot, value, sizeof(slot));
	if (slot >= r->d->maps.n_sums)
		return;
	if (!who_find(r->d, key.id)) { /* made since `who` was read: next time */
		if (who_forgotten(r->d, key.id) && !bpf_map_delete_elem(r->d->maps.totals, &key))
			slot_free(r->d, slot);
		return;
	}
	now = r->d->maps.sums[slot];
	before = sum_before(r->d, &key, slot);
	if (now.n == before->n)
		return;
	for (int i = 0; i < OFFCPU_HIST; i++)
		hist[i] = now.hist[i] - before->hist[i];
	x = (struct store_wait){.class = (enum store_wait_class)key.class, .flags = key.flags, .n = now.n - before->n,
				.total_ns = now.total_ns - before->total_ns, .hist = hist, .n_hist = OFFCPU_HIST,
				.max_ns = now.reading[half] == r->number ? now.max_ns[half] : 0};
	wait_put(r, key.id, &x);
	before->n = now.n;
	before->total_ns = now.total_ns;
	memcpy(before->hist, now.hist, sizeof(before->hist));
}

/* ---- wake-ups and culprits ---- */

static struct offcpu_count count_new(struct drain *d, const struct offcpu_wake_key *key, const struct offcpu_count *now)
{
	uint64_t hash = hash_bytes(HASH_SEED, key, sizeof(*key)), at;
	struct offcpu_count more = *now;
	struct drain_count *before;

	if (idmap_get(&d->counts, hash, &at)) {
		before = (struct drain_count *)(uintptr_t)at;
		more.n -= before->count.n;
		more.total_ns -= before->count.total_ns;
	} else {
		before = mem_alloc(sizeof(*before));
		before->key = *key;
		idmap_set(&d->counts, hash, (uintptr_t)before);
	}
	before->count = *now;
	return more;
}

static void wake_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_wake_key key;
	struct offcpu_count now;
	struct store_wake x;
	int err = -ESTALE;

	memcpy(&key, key_, sizeof(key));
	memcpy(&now, value, sizeof(now));
	if (!who_find(r->d, key.id) || (key.waker && !who_find(r->d, key.waker))) {
		if (who_forgotten(r->d, key.id) && (!key.waker || who_forgotten(r->d, key.waker)))
			bpf_map_delete_elem(r->d->maps.wakes, &key);
		return;
	}
	now = count_new(r->d, &key, &now);
	if (!now.n)
		return;
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		x = (struct store_wake){.class = (enum store_wait_class)key.class, .n = now.n, .total_ns = now.total_ns,
					.context = (enum store_wake_context)key.context};
		x.waker = key.waker ? who_task(r, key.waker) : 0;
		err = store_wake(r->h->store, who_task(r, key.id), r->utc_ns, &x);
	}
}

#define COUNT_CULPRIT UINT32_MAX /* in place of a class: the two share a table */

static void culprit_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_culprit_key key;
	struct offcpu_wake_key as;
	struct offcpu_count now;
	struct store_culprit x;
	bool thread;
	int err = -ESTALE;

	memcpy(&key, key_, sizeof(key));
	memcpy(&now, value, sizeof(now));
	thread = key.by > OFFCPU_BY_UNKNOWN;
	if (!who_find(r->d, key.id) || (thread && !who_find(r->d, key.by))) {
		if (who_forgotten(r->d, key.id) && (!thread || who_forgotten(r->d, key.by)))
			bpf_map_delete_elem(r->d->maps.culprits, &key);
		return;
	}
	as = (struct offcpu_wake_key){.id = key.id, .waker = key.by, .class = COUNT_CULPRIT};
	now = count_new(r->d, &as, &now);
	if (!now.n)
		return;
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		x = (struct store_culprit){.kind = thread ? STORE_CULPRIT_THREAD : (enum store_culprit_kind)key.by,
					   .n = now.n, .total_ns = now.total_ns};
		x.culprit = thread ? who_task(r, key.by) : 0;
		err = store_culprit(r->h->store, who_task(r, key.id), r->utc_ns, &x);
	}
}

/* ---- those that are gone ---- */

/* Its thread was not there when the reading before this one began: nothing of it has changed since. */
static bool who_gone(struct drain *d, uint64_t id)
{
	struct drain_who *w = who_find(d, id);

	return w && w->alive + 2 <= d->turn;
}

static void sums_forget(struct drain *d)
{
	for (size_t i = 0; i < d->sums.cap;) {
		struct idmap_slot *s = &d->sums.slots[i];
		struct drain_sum *x = s->used ? (struct drain_sum *)(uintptr_t)s->value : NULL;

		if (!x || !who_gone(d, x->key.id)) {
			i++;
			continue;
		}
		if (!bpf_map_delete_elem(d->maps.totals, &x->key))
			slot_free(d, x->slot);
		idmap_del(&d->sums, s->key);
		free(x);
	}
}

static void counts_forget(struct drain *d)
{
	for (size_t i = 0; i < d->counts.cap;) {
		struct idmap_slot *s = &d->counts.slots[i];
		struct drain_count *x = s->used ? (struct drain_count *)(uintptr_t)s->value : NULL;
		struct offcpu_culprit_key culprit;

		if (!x || (!who_gone(d, x->key.id) && !who_gone(d, x->key.waker))) {
			i++;
			continue;
		}
		culprit = (struct offcpu_culprit_key){x->key.id, x->key.waker};
		if (x->key.class == COUNT_CULPRIT)
			bpf_map_delete_elem(d->maps.culprits, &culprit);
		else
			bpf_map_delete_elem(d->maps.wakes, &x->key);
		idmap_del(&d->counts, s->key);
		free(x);
	}
}

/* Those that are gone are known here for a while: a wait whose stack is unwound late tells then who ended it. */
static void who_forget(struct drain *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->who.cap;) {
		struct idmap_slot *s = &d->who.slots[i];
		struct drain_who *w = s->used ? (struct drain_who *)(uintptr_t)s->value : NULL;
		uint64_t id = s->key;

		if (!w || w->alive + 2 > d->turn) {
			i++;
			continue;
		}
		if (!w->removed)
			bpf_map_delete_elem(d->maps.who, &id);
		w->removed = true;
		if (w->alive + 2 + DRAIN_KEPT_TURNS > d->turn && kept++ < DRAIN_KEPT_MOST) {
			i++;
			continue;
		}
		idmap_del(&d->who, id);
		free(w);
	}
}

/* ---- readings ---- */

void drain_read(struct drain *d, struct family_host *h, uint32_t reading, int64_t now_ns)
{
	struct reading r = {.d = d, .h = h, .utc_ns = (d->read_ns + now_ns) / 2 + h->offset_ns, .number = reading};

	d->turn++;
	d->read_ns = now_ns;
	mapread_each(d->maps.who, sizeof(uint64_t), sizeof(struct offcpu_who), who_read, &r);
	mapread_each(d->maps.threads, sizeof(uint64_t), sizeof(struct offcpu_thread), thread_read, &r);
	mapread_each(d->maps.totals, sizeof(struct offcpu_key), sizeof(uint32_t), sum_read, &r);
	mapread_each(d->maps.wakes, sizeof(struct offcpu_wake_key), sizeof(struct offcpu_count), wake_read, &r);
	mapread_each(d->maps.culprits, sizeof(struct offcpu_culprit_key), sizeof(struct offcpu_count), culprit_read, &r);
	sums_forget(d);
	counts_forget(d);
	who_forget(d);
}

static void last_put(struct reading *r, const struct offcpu_thread *t, uint32_t class, uint32_t flags, uint64_t from,
		     uint64_t to)
{
	struct store_wait x = {.class = (enum store_wait_class)class, .flags = flags | STORE_WAIT_UNFINISHED, .n = 1,
			       .total_ns = to > from ? to - from : 0, .max_ns = to > from ? to - from : 0};

	if (who_find(r->d, t->id))
		wait_put(r, t->id, &x);
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
			 t.state == OFFCPU_S_RUNNING ? t.flags & OFFCPU_F_BEFORE : t.flags, t.since_ns, end);
	}
}

void drain_unfinished(struct drain *d, struct family_host *h, int64_t now_ns)
{
	struct reading r = {.d = d, .h = h, .utc_ns = now_ns + h->offset_ns - 1};

	d->read_ns = now_ns;
	mapread_each(d->maps.threads, sizeof(uint64_t), sizeof(struct offcpu_thread), unfinished_read, &r);
}
