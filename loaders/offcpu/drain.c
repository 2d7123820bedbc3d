/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/drain.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/mapread.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/offcpu/rest.h"
#include "loaders/offcpu/thread.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/waits.h"
#include "schema/store/write/writer.h"

struct drain_who {
	struct offcpu_who who;
	uint32_t task, epoch; /* of the store */
	uint32_t turned;      /* naming_turned then */
	uint32_t alive;       /* the last turn in which its thread was there and it was this */
	uint32_t first;       /* the turn in which it was met, or the one that follows */
	enum {
		DRAIN_LONG,
		DRAIN_BRIEF_THREAD,
		DRAIN_BRIEF_PROCESS
	} brief; /* it, or all of its process, came and went between two readings */
	struct offcpu_count small; /* what each of many took from it in this reading, together */
	int64_t removed_ns;        /* from the map: known here only; 0: it is there */
};

struct drain_sum {
	struct offcpu_key key;
	struct drain_who
		*who; /* in the table: an ended thread leaves it after its sums and counts */
	uint32_t slot;
	uint64_t n, total_ns;
	uint32_t *coarse; /* OFFCPU_POWERS of them; NULL: it had steps for each */
};

struct drain_count {
	struct offcpu_wake_key key;
	struct drain_who *who, *by; /* as in drain_sum; by NULL: no thread */
	uint32_t slot;
	uint32_t met; /* the last turn in which something was added */
	struct offcpu_count count;
};

struct removal { /* keys to remove from a map */
	uint8_t *keys;
	size_t n, cap, size;
};

struct reading {
	struct drain *d;
	struct family_host *h;
	int64_t utc_ns; /* the bucket that it is for */
	uint32_t number;
	int64_t from_ns; /* boot clock: when the reading before it was, or the capture began; 0: one
			    thread is asked for */
	struct idmap threads, processes; /* that are there: address of the task -> tid, tgid -> 1;
					    where short-lived ones are one */
	struct removal totals, wakes, slots, steps, wake_slots; /* at its end */
	size_t n_wakes;                                         /* pairs in that map */
	bool evicts;                                            /* of threads that go on */
	struct removal smalls; /* struct drain_who *: those with small counts */
};

static void removal_add(struct removal *x, const void *key, size_t size)
{
	x->size = size;
	if (x->n == x->cap) {
		x->cap = x->cap ? 2 * x->cap : 256;
		x->keys = mem_realloc(x->keys, x->cap * size);
	}
	memcpy(x->keys + x->n++ * size, key, size);
}

/* ---- whose the sums are ---- */

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
		w->first = r->from_ns ? r->d->turn : r->d->turn + 1;
		idmap_set(&r->d->who, id, (uintptr_t)w);
	}
	memcpy(&w->who, value, sizeof(w->who));
}

/* Also one that came after `who` was read: it is judged by the next reading. */
static struct drain_who *who_met(struct drain *d, struct family_host *h, uint64_t id)
{
	struct reading r = {.d = d, .h = h};
	struct offcpu_who who;

	if (!who_find(d, id) && !bpf_map_lookup_elem(d->maps.who, &id, &who))
		who_read(&r, &id, &who);
	return who_find(d, id);
}

static void thread_read(void *ctx, const void *key, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_thread t;
	struct drain_who *w;
	uint64_t task;

	memcpy(&t, value, sizeof(t));
	w = who_find(r->d, t.id);
	if (w)
		w->alive = r->d->turn;
	if (r->h->bucket_s < FAMILY_ALWAYS_S)
		return;
	memcpy(&task, key, sizeof(task));
	idmap_set(&r->threads, task, t.tid);
	idmap_set(&r->processes, t.tgid, 1);
}

/* Those that this reading met first, and whose thread is there no more under whatever name. */
static void briefs_judge(struct reading *r)
{
	struct drain *d = r->d;
	uint64_t tid;

	for (size_t i = 0; i < d->who.cap; i++) {
		struct drain_who *w = d->who.slots[i].used ?
					      (struct drain_who *)(uintptr_t)d->who.slots[i].value :
					      NULL;

		if (!w || w->first != d->turn ||
		    (idmap_get(&r->threads, w->who.task, &tid) && tid == w->who.tid))
			continue;
		w->brief = (int64_t)w->who.start_ns < r->from_ns ||
					   idmap_get(&r->processes, w->who.tgid, NULL) ?
				   DRAIN_BRIEF_THREAD :
				   DRAIN_BRIEF_PROCESS;
		w->task = 0; /* a task made of it meanwhile was its own */
	}
	idmap_release(&r->threads);
	idmap_release(&r->processes);
}

/* Under which process and thread it is stored (thread.h). With long buckets, processes that came
 * and went are stored as one by cgroup and command: on a host that starts a hundred programs a
 * second they made four fifths of the rows. */
static uint32_t who_process(struct reading *r, const struct drain_who *w,
			    char thread[STACK_COMM_LEN + 1], uint32_t *tid)
{
	struct naming_result named;
	struct stack_event ev = {.start_ns = w->who.start_ns,
				 .tgid = w->who.tgid,
				 .tid = w->who.tid,
				 .exec_id = w->who.exec_id,
				 .cgroup_id = w->who.cgroup_id,
				 .flags = (uint16_t)w->who.flags,
				 .time_ns = (uint64_t)r->d->read_ns};

	memcpy(ev.thread, w->who.comm, sizeof(ev.thread));
	if (w->brief == DRAIN_BRIEF_PROCESS)
		naming_brief(r->h->naming, &ev, &named);
	else
		naming_stack(r->h->naming, &ev, NULL, &named);
	*tid = w->brief ? 0 : w->who.tid;
	thread_told(r->h, &named, w->who.comm, w->who.tgid, thread, tid);
	return named.process;
}

/* The store's id of a thread; 0: it is not known (yet). */
static uint32_t who_task(struct reading *r, struct drain_who *w)
{
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid, process;

	if (!w)
		return 0;
	if (w->task && w->epoch == store_epoch(r->h->store) &&
	    w->turned == naming_turned(r->h->naming))
		return w->task;
	process = who_process(r, w, thread, &tid);
	w->task = store_task(r->h->store, r->h->run, process, thread, tid);
	w->epoch = store_epoch(r->h->store);
	w->turned = naming_turned(r->h->naming);
	return w->task;
}

uint32_t drain_thread(struct drain *d, struct family_host *h, uint64_t id)
{
	struct reading r = {.d = d, .h = h};

	return who_task(&r, who_met(d, h, id));
}

/* Its thread is already forgotten, and something was added later (by a thread that had been a CPU's
 * neighbour long ago): that entry is removed, too. The thread's number contains when it was
 * assigned (thread_identify). */
static bool who_forgotten(const struct drain *d, uint64_t id)
{
	return ((id & ((1ull << 40) - 1)) << 16) + 5000000000ull < (uint64_t)d->read_ns;
}

/* Its thread was not there when the reading before this one began: nothing of it has changed since.
 */
static bool who_gone(const struct drain *d, const struct drain_who *w)
{
	return w && w->alive + 2 <= d->turn;
}

/* Ended threads are kept here for a while: a wait whose stack is unwound late then still knows its
 * waker. */
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
		if (!w->removed_ns)
			bpf_map_delete_elem(d->maps.who, &id);
		w->removed_ns = w->removed_ns ?: d->read_ns;
		if (d->read_ns - w->removed_ns < DRAIN_KEPT_NS && kept++ < DRAIN_KEPT_MOST) {
			i++;
			continue;
		}
		idmap_del(&d->who, id);
		free(w);
	}
}

/* ---- how long threads ran and waited ---- */

static void sum_free(struct drain_sum *x)
{
	free(x->coarse);
	free(x);
}

/* The program no longer adds to it: its slot can be reused. Only this code removes totals from
 * their map. */
static void sum_remove(struct reading *r, const struct offcpu_key *key, uint32_t slot)
{
	const struct offcpu_sum *sum = r->d->maps.sums + slot;

	removal_add(&r->totals, key, sizeof(*key));
	if (slot >= r->d->maps.n_sums)
		return;
	removal_add(&r->slots, &slot, sizeof(slot));
	for (int p = 0; p < OFFCPU_POWERS; p++) {
		uint32_t at = sum->power[p] - 1;

		if (at < r->d->maps.n_steps)
			removal_add(&r->steps, &at, sizeof(at));
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
	who = who_find(d, key->id);
	if (!who)
		return NULL;
	s = mem_alloc(sizeof(*s));
	*s = (struct drain_sum){.key = *key, .who = who, .slot = slot};
	idmap_set(&d->sums, hash, (uintptr_t)s);
	return s;
}

static int wait_put(struct reading *r, struct drain_who *who, const struct store_wait *x)
{
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++)
		err = store_wait(r->h->store, who_task(r, who), r->utc_ns, x);
	if (err)
		r->h->refused += x->n;
	else
		r->h->added += x->n;
	return err;
}

/* While no stacks are taken, the time is stored without a stack: so the sums over stacks are
 * complete at any time. */
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
		process = who_process(r, w, thread, &tid);
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

/* Of a thread that is forgotten. */
static void stray_put(struct reading *r, const struct offcpu_key *key, const struct offcpu_sum *sum)
{
	const struct store_wait x = {
		.class = (enum store_wait_class)key->class, .n = sum->n, .total_ns = sum->total_ns};

	if (x.n)
		rest_put(r->d->maps.rest, r->h, r->utc_ns, &x);
}

static void sum_read(void *ctx, const void *key_, const void *value)
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
	if (!before) { /* created since `who` was read: next time */
		if (who_forgotten(r->d, key.id)) {
			stray_put(r, &key, &r->d->maps.sums[slot]);
			sum_remove(r, &key, slot);
		}
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
	wait_put(r, before->who, &x);
	before->n = now.n;
	before->total_ns = now.total_ns;
}

static void sums_forget(struct reading *r)
{
	struct drain *d = r->d;

	for (size_t i = 0; i < d->sums.cap;) {
		struct idmap_slot *s = &d->sums.slots[i];
		struct drain_sum *x = s->used ? (struct drain_sum *)(uintptr_t)s->value : NULL;

		if (!x || !who_gone(d, x->who)) {
			i++;
			continue;
		}
		sum_remove(r, &x->key, x->slot);
		idmap_del(&d->sums, s->key);
		sum_free(x);
	}
}

/* ---- wake-ups, and who had the CPU while another thread was ready ---- */

/* As read before; `other`: the key names another thread, too. NULL: the thread is unknown. */
static struct drain_count *count_before(struct drain *d, const struct offcpu_wake_key *key,
					bool other)
{
	uint64_t hash = hash_bytes(HASH_SEED, key, sizeof(*key)), at;
	struct drain_who *who, *by;
	struct drain_count *c;

	if (idmap_get(&d->counts, hash, &at))
		return (struct drain_count *)(uintptr_t)at;
	who = who_find(d, key->id);
	by = other ? who_find(d, key->waker) : NULL;
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

/* As sum_remove. */
static void wake_remove(struct reading *r, const struct offcpu_wake_key *key, uint32_t slot)
{
	removal_add(&r->wakes, key, sizeof(*key));
	if (slot < r->d->maps.n_wake_sums)
		removal_add(&r->wake_slots, &slot, sizeof(slot));
}

/* What was added to it since. */
static void wake_put(struct reading *r, struct drain_count *c)
{
	struct offcpu_count now = r->d->maps.wake_sums[c->slot];
	struct store_wake x;
	int err = -ESTALE;

	now = count_take(c, &now);
	if (!now.n)
		return;
	c->met = r->d->turn;
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		x = (struct store_wake){.class = (enum store_wait_class)c->key.class,
					.n = now.n,
					.total_ns = now.total_ns,
					.context = (enum store_wake_context)c->key.context};
		x.waker = c->by ? who_task(r, c->by) : 0;
		err = store_wake(r->h->store, who_task(r, c->who), r->utc_ns, &x);
	}
}

static void wake_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_wake_key key;
	struct drain_count *before;
	uint32_t slot;

	memcpy(&key, key_, sizeof(key));
	memcpy(&slot, value, sizeof(slot));
	r->n_wakes++;
	if (slot >= r->d->maps.n_wake_sums)
		return;
	before = count_before(r->d, &key, key.waker);
	if (!before) {
		if (who_forgotten(r->d, key.id) && (!key.waker || who_forgotten(r->d, key.waker))) {
			r->d->pairs_lost += r->d->maps.wake_sums[slot].n;
			wake_remove(r, &key, slot);
		}
		return;
	}
	before->slot = slot;
	wake_put(r, before);
}

/* Those that the last reading took out: a thread may have added to one since. */
static void evicted_read(struct reading *r)
{
	struct drain *d = r->d;

	for (size_t i = 0; i < d->n_evicted; i++) {
		struct drain_count *c = d->evicted[i];

		wake_put(r, c);
		removal_add(&r->wake_slots, &c->slot, sizeof(c->slot));
		free(c);
	}
	d->n_evicted = 0;
}

/* Both threads go on, and have not met since the last reading. */
static bool wake_rests(const struct drain *d, const struct drain_count *c)
{
	return c->met != d->turn && c->who->alive == d->turn && (!c->by || c->by->alive == d->turn);
}

static void wakes_evict(struct reading *r)
{
	struct drain *d = r->d;

	if (r->n_wakes <= d->maps.n_wake_sums / 2)
		return;
	for (size_t i = 0; i < d->counts.cap;) {
		struct idmap_slot *s = &d->counts.slots[i];
		struct drain_count *c = s->used ? (struct drain_count *)(uintptr_t)s->value : NULL;

		if (!c || !wake_rests(d, c)) {
			i++;
			continue;
		}
		removal_add(&r->wakes, &c->key, sizeof(c->key));
		mem_grow(d->evicted, d->n_evicted, d->cap_evicted);
		d->evicted[d->n_evicted++] = c;
		idmap_del(&d->counts, s->key);
		r->evicts = true;
	}
}

/* Least time that one thread took from another in a reading to be stored with its name (less makes
 * 30 to 60 % of the rows, and 0.5 % of the time). */
#define SMALL_NS       100000
#define SMALL_BRIEF_NS 300000 /* where buckets are long, and readings rare */

static void culprit_put(struct reading *r, struct drain_who *who, struct drain_who *by,
			enum store_culprit_kind kind, const struct offcpu_count *now)
{
	struct store_culprit x = {.kind = kind, .n = now->n, .total_ns = now->total_ns};
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		x.culprit = by ? who_task(r, by) : 0;
		err = store_culprit(r->h->store, who_task(r, who), r->utc_ns, &x);
	}
}

static void small_add(struct reading *r, struct drain_who *who, const struct offcpu_count *now)
{
	if (!who->small.n)
		removal_add(&r->smalls, &who, sizeof(who));
	who->small.n += now->n;
	who->small.total_ns += now->total_ns;
}

/* One that was added later by a thread that had been a CPU's neighbour long ago may be of threads
 * that are forgotten. */
static void culprit_read(void *ctx, const void *key_, const void *value)
{
	struct reading *r = ctx;
	struct offcpu_culprit_key key;
	struct drain_who *who, *by = NULL;
	struct offcpu_count now;
	bool thread;

	memcpy(&key, key_, sizeof(key));
	memcpy(&now, value, sizeof(now));
	thread = key.by > OFFCPU_BY_UNKNOWN;
	who = who_met(r->d, r->h, key.id);
	if (!who) {
		r->d->pairs_lost += now.n;
		return;
	}
	if (thread)
		by = who_met(r->d, r->h, key.by);
	if (thread &&
	    (!by || now.total_ns < (r->h->bucket_s < FAMILY_ALWAYS_S ? SMALL_NS : SMALL_BRIEF_NS)))
		small_add(r, who, &now);
	else if (now.n)
		culprit_put(r, who, by,
			    thread ? STORE_CULPRIT_THREAD : (enum store_culprit_kind)key.by, &now);
}

static void smalls_put(struct reading *r)
{
	for (size_t i = 0; i < r->smalls.n; i++) {
		struct drain_who *w;

		memcpy(&w, r->smalls.keys + i * sizeof(w), sizeof(w));
		culprit_put(r, w, NULL, STORE_CULPRIT_UNKNOWN, &w->small);
		w->small = (struct offcpu_count){0};
	}
	free(r->smalls.keys);
}

static void counts_forget(struct reading *r)
{
	struct drain *d = r->d;

	for (size_t i = 0; i < d->counts.cap;) {
		struct idmap_slot *s = &d->counts.slots[i];
		struct drain_count *x = s->used ? (struct drain_count *)(uintptr_t)s->value : NULL;

		if (!x || (!who_gone(d, x->who) && !who_gone(d, x->by))) {
			i++;
			continue;
		}
		wake_remove(r, &x->key, x->slot);
		idmap_del(&d->counts, s->key);
		free(x);
	}
}

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
			sum_free((struct drain_sum *)(uintptr_t)d->sums.slots[i].value);
	idmap_release(&d->sums);
	free(d->seen);
	table_release(&d->who);
	table_release(&d->counts);
	for (size_t i = 0; i < d->n_evicted; i++)
		free(d->evicted[i]);
	free(d->evicted);
}

/* ---- removals ---- */

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

/* Adjacent slots are returned together. */
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

/* Keys first: a returned slot is reused at once. */
static void remove_all(struct reading *r)
{
	removal_do(&r->totals, r->d->maps.totals);
	removal_do(&r->wakes, r->d->maps.wakes);
	if (r->evicts) /* after the keys: who looks one up finds none */
		__atomic_fetch_add(r->d->maps.wake_turn, 1, __ATOMIC_RELEASE);
	steps_unseen(r->d, &r->steps);
	slots_free(&r->slots, r->d->maps.sums, sizeof(*r->d->maps.sums), r->d->maps.free_slots);
	slots_free(&r->wake_slots, r->d->maps.wake_sums, sizeof(*r->d->maps.wake_sums),
		   r->d->maps.free_wakes);
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
	mapread_each(d->maps.who, sizeof(uint64_t), sizeof(struct offcpu_who), who_read, &r);
	mapread_each(d->maps.threads, sizeof(uint64_t), sizeof(struct offcpu_thread), thread_read,
		     &r);
	if (h->bucket_s >= FAMILY_ALWAYS_S)
		briefs_judge(&r);
	mapread_each(d->maps.totals, sizeof(struct offcpu_key), sizeof(uint32_t), sum_read, &r);
	rest_read(d->maps.rest, h, r.utc_ns);
	evicted_read(&r);
	mapread_each(d->maps.wakes, sizeof(struct offcpu_wake_key), sizeof(uint32_t), wake_read,
		     &r);
	mapread_take(d->maps.culprits, sizeof(struct offcpu_culprit_key),
		     sizeof(struct offcpu_count), culprit_read, &r);
	smalls_put(&r);
	sums_forget(&r);
	counts_forget(&r);
	wakes_evict(&r);
	who_forget(d);
	remove_all(&r);
}

void drain_culprits(struct drain *d, struct family_host *h, int64_t now_ns)
{
	struct reading r = {.d = d, .h = h, .utc_ns = (d->read_ns + now_ns) / 2 + h->offset_ns};

	mapread_take(d->maps.culprits, sizeof(struct offcpu_culprit_key),
		     sizeof(struct offcpu_count), culprit_read, &r);
	smalls_put(&r);
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

	struct drain_who *who = who_find(r->d, t->id);

	if (who)
		wait_put(r, who, &x);
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
