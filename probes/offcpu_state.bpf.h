/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_state: the maps of the off-CPU program, and the small steps over them: sums, threads, who
 * they are, and how many stacks are taken. All maps are allocated beforehand: the programs run
 * where the scheduler holds its locks, and an allocation there could wake the one who reclaims
 * memory. The loader sizes them.
 */
#ifndef SONDE_PROBES_OFFCPU_STATE_BPF_H
#define SONDE_PROBES_OFFCPU_STATE_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/offcpu.h"
#include "probes/lib/scope.bpf.h"

/* Stacks in a window (DRAW_WINDOW_SHIFT) on a CPU: of waits, of those that were only ready, and of
 * wakers. Where stacks are taken as threads leave: of a thread, and of threads whose last wait was
 * long. The loader sets them, and may change them while the program runs; all 0: no stacks are
 * taken. */
__u32 limit_cpu, limit_ready, limit_wake, limit_thread, limit_slow;
const volatile __u32 least_level = 0; /* of draws */
/* Is it told how long stretches of running were, too? */
const volatile bool spread_running = true;
#define OFFCPU_WEIGHT_SHIFT 16 /* the largest weight is 2^16 */

/* Set by the loader: when the capture begins, 0: not yet; `reading` is counted up each time before
 * it reads. */
__u64 begin_ns;
__u32 reading;
/* The loader counts it up when it has taken pairs out of `wakes` whose threads go on: then a
 * thread looks up again which slot its waker has. */
__u32 wake_turn;
/* Threads, and pairs, that a CPU has added between two calls to the loader; powers of two. */
const volatile __u32 fill_wake = 1024, fill_pairs = 4096;
/* Of who ran while others waited: how many parts of waits a CPU adds in a window, about
 * (offcpu_culprit.bpf.h). */
const volatile __u32 limit_blame = 268;

/* Waits that are drawn whatever the level is, times the limit of draws: the first long ones, and
 * those by credit. */
#define LONGS  2
#define BEHIND 3

#define HASH(name_, key_, value_)                \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(max_entries, 1024);       \
		__type(key, key_);               \
		__type(value, value_);           \
	} name_ SEC(".maps")

HASH(threads, __u64, struct offcpu_thread);
HASH(who, __u64, struct offcpu_who);
HASH(totals, struct offcpu_key, __u32);
HASH(wakes, struct offcpu_wake_key, __u32);
HASH(culprits, struct offcpu_culprit_key, struct offcpu_count);

/* The sums themselves: a thread knows the slots of those it adds to (struct offcpu_sum_at), and
 * most additions need no hash. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct offcpu_sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct offcpu_steps);
} steps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1024);
	__type(value, struct offcpu_slots);
} free_slots SEC(".maps"), free_steps SEC(".maps"), free_wakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct offcpu_count);
} wake_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_tally);
} tally SEC(".maps");

/* By enum offcpu_class: what found no room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OFFCPU_RESTS);
	__type(key, __u32);
	__type(value, struct offcpu_rest);
} rests SEC(".maps");
__u32 rests_made; /* 1: something was added */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_cpu);
} cpus SEC(".maps");

struct { /* apart from `cpus`: the kernel gives a value of each CPU 32 KiB */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OFFCPU_SPANS);
	__type(key, __u32);
	__type(value, struct offcpu_stint);
} spans SEC(".maps");

const volatile __u32 culprit_ns = 0; /* below 2^31: between two moments at which it is looked for
					who had a CPU; 0: all time is */
const volatile __u32 ring_bytes = 4 * 1024 * 1024; /* of `events` */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} events SEC(".maps");

/* Where an entry is put together, as there is no room on the stack: by programs that nothing
 * interrupts, and by the reading at the start. */
struct offcpu_scratch {
	struct offcpu_who who;
	struct offcpu_thread thread;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct offcpu_scratch);
} who_scratch SEC(".maps");

/* What new elements begin as. */
static const struct offcpu_count no_count = {};

static __always_inline struct offcpu_tally *tally_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tally, &zero);
}

static __always_inline void tally_lost(void)
{
	struct offcpu_tally *t = tally_get();

	if (t)
		t->lost++;
}

static __always_inline void tally_pair_lost(void)
{
	struct offcpu_tally *t = tally_get();

	if (t)
		t->pairs_lost++;
}

/* `n` came to a map on this CPU: now and then the loader is called, which reads maps before they
 * are full. Nothing goes through the ring. */
static __always_inline void fill_tell(__u64 n, __u32 each)
{
	void *nothing;

	if (n & (each - 1))
		return;
	nothing = bpf_ringbuf_reserve(&events, 8, 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

/* A waker and who it woke, that were not met since the last reading. */
static __always_inline void tally_pair(void)
{
	struct offcpu_tally *t = tally_get();

	if (t)
		fill_tell(++t->pairs, fill_pairs);
}

/* The same of who ran, and who waited. */
static __always_inline void tally_neighbour(void)
{
	struct offcpu_tally *t = tally_get();

	if (t)
		fill_tell(++t->neighbours, fill_pairs);
}

/* This and other steps are global functions of numbers alone: they are verified once, not at each
 * call. */
__noinline __u32 log2_of(__u64 v)
{
	return draw_log2(v);
}

#define NO_SLOT 0xffffffff

static __always_inline __u32 slot_new(void)
{
	__u32 zero = 0;
	struct offcpu_cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (!cpu || (!cpu->free.n && bpf_map_pop_elem(&free_slots, &cpu->free)))
		return NO_SLOT;
	cpu->free.n--;
	return cpu->free.first++;
}

/* The slot of a sum, created if needed. */
__noinline __u32 slot_find(__u64 id, __u32 class, __u32 flags)
{
	struct offcpu_key key = {.id = id, .class = class, .flags = flags};
	__u32 *at = bpf_map_lookup_elem(&totals, &key), slot;

	if (at)
		return *at;
	slot = slot_new();
	if (slot == NO_SLOT || !bpf_map_update_elem(&totals, &key, &slot, BPF_NOEXIST))
		return slot;
	bpf_map_push_elem(&free_slots, &(struct offcpu_slots){slot, 1}, BPF_ANY);
	at = bpf_map_lookup_elem(&totals, &key); /* another CPU may have made it meanwhile */
	return at ? *at : NO_SLOT;
}

/* 1 + the number of free steps, or OFFCPU_COARSE. */
static __always_inline __u32 steps_new(void)
{
	__u32 zero = 0;
	struct offcpu_cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (!cpu || (!cpu->free_steps.n && bpf_map_pop_elem(&free_steps, &cpu->free_steps)))
		return OFFCPU_COARSE;
	cpu->free_steps.n--;
	return 1 + cpu->free_steps.first++;
}

#define NO_STEP 0xffffffff

/* Makes the steps of this length's power the sum's last ones. NO_STEP: all are in use, and it is
 * counted by its power alone. */
static __noinline __u32 steps_find(struct offcpu_sum *sum, __u64 ns)
{
	__u32 top = log2_of(ns) & 63, shift = top > 3 ? top - 3 : 0;
	__u32 step = shift * OFFCPU_STEPS + (__u32)(ns >> shift);
	__u32 which = (step / OFFCPU_STEPS) & (OFFCPU_POWERS - 1), *power = &sum->power[which];

	if (!*power)
		*power = steps_new();
	if (*power & OFFCPU_COARSE) {
		*power = *power == 0xffffffff ? *power : *power + 1;
		return NO_STEP;
	}
	sum->last = which + 1;
	sum->last_steps = *power - 1;
	return step;
}

/* As hist_step of schema/store/model/hist.h: `step` is 8 x power + place. A length in [8, 16) x
 * 2^shift has the power shift + 1. */
static __always_inline void step_count(struct offcpu_sum *sum, __u64 ns)
{
	__u32 shift = (sum->last - 2) & 63, at = sum->last_steps, step = (__u32)(ns >> shift);
	struct offcpu_steps *s;

	if (sum->last < 2 || ns >> shift >> 3 != 1) { /* not of the power of the last one */
		step = steps_find(sum, ns);
		if (step == NO_STEP)
			return;
		at = sum->last_steps;
	}
	s = bpf_map_lookup_elem(&steps, &at);
	if (s)
		s->n[step & (OFFCPU_STEPS - 1)]++;
}

/* Adds a stretch of a thread that has no sum of this class, as the tables are full: how long it was
 * is exact, whose it was is not known. */
__noinline int rest_add(__u32 class, __u64 ns)
{
	struct offcpu_rest *r = bpf_map_lookup_elem(&rests, &class);

	if (!r) {
		tally_lost();
		return 0;
	}
	if ((__s64)ns < 0) /* clocks of two CPUs */
		ns = 0;
	r->n++;
	r->total_ns += ns;
	r->power[log2_of(ns) & (OFFCPU_POWERS - 1)]++;
	rests_made = 1;
	return 0;
}

/* Adds a stretch; to the histogram only with `spread`. A separate function, like others that are
 * called next to the unwinder: its steps leave little stack. Only one CPU at a time reports on one
 * thread and class: no atomics. */
__noinline int slot_add(__u32 slot, __u64 ns, __u32 spread)
{
	struct offcpu_sum *sum = bpf_map_lookup_elem(&sums, &slot);
	__u32 now = reading, half = now & 1;

	if (!sum) {
		tally_lost();
		return 0;
	}
	if ((__s64)ns < 0) /* clocks of two CPUs */
		ns = 0;
	sum->n++;
	sum->total_ns += ns;
	if (spread)
		step_count(sum, ns);
	if (sum->reading[half] != now) {
		sum->reading[half] = now;
		sum->max_ns[half] = 0;
	}
	if (ns > sum->max_ns[half])
		sum->max_ns[half] = ns;
	return 0;
}

/* The stretch added last was longer by this. */
__noinline int slot_extend(__u32 slot, __u64 ns)
{
	struct offcpu_sum *sum = bpf_map_lookup_elem(&sums, &slot);

	if (sum)
		sum->total_ns += ns;
	else
		tally_lost();
	return 0;
}

/* `of`: enum offcpu_sum_of. */
static __always_inline __u32 sum_slot(struct offcpu_thread *t, __u32 of, __u32 class, __u32 flags)
{
	struct offcpu_sum_at *at = &t->sums[of];
	__u32 what = OFFCPU_SUM_KNOWN | flags << 16 | class;

	if (at->what != what) {
		at->slot = t->id ? slot_find(t->id, class, flags) : NO_SLOT;
		at->what = at->slot == NO_SLOT ? 0 : what;
	}
	return at->slot;
}

static __noinline void sum_add(struct offcpu_thread *t, __u32 of, __u32 class, __u32 flags,
			       __u64 ns)
{
	__u32 slot = sum_slot(t, of, class, flags);

	if (slot == NO_SLOT)
		rest_add(class, ns);
	else
		slot_add(slot, ns, of != OFFCPU_SUM_RUNNING || spread_running);
}

/* The slot of a pair, created if needed. No other CPU creates it: the kernel wakes a thread under a
 * lock of that thread's. */
static __noinline __u32 wake_slot(const struct offcpu_wake_key *key)
{
	__u32 zero = 0, *at = bpf_map_lookup_elem(&wakes, key), slot;
	struct offcpu_cpu *cpu;

	if (at)
		return *at;
	tally_pair();
	cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (!cpu || (!cpu->free_wakes.n && bpf_map_pop_elem(&free_wakes, &cpu->free_wakes)))
		return NO_SLOT;
	slot = cpu->free_wakes.first;
	if (bpf_map_update_elem(&wakes, key, &slot, BPF_NOEXIST))
		return NO_SLOT;
	cpu->free_wakes.n--;
	cpu->free_wakes.first++;
	return slot;
}

/* No atomics, for the same reason. Of a thread without a number nothing is kept. */
static __noinline void wake_add(struct offcpu_thread *t, const struct offcpu_wake_key *key,
				__u64 ns)
{
	struct offcpu_wake_at *at = &t->woken_by;
	__u32 turn = wake_turn & (OFFCPU_WAKE_TURNS - 1), slot;
	__u32 what = OFFCPU_SUM_KNOWN | turn << 17 | key->context << 16 | key->class;
	struct offcpu_count *c;

	if (!key->id)
		return;
	if (at->what != what || at->waker != key->waker) {
		at->slot = wake_slot(key);
		at->waker = key->waker;
		at->what = at->slot == NO_SLOT ? 0 : what;
	}
	slot = at->slot;
	c = bpf_map_lookup_elem(&wake_sums, &slot);
	if (!c) {
		tally_pair_lost();
		return;
	}
	c->n++;
	c->total_ns += ns;
}

/* `n` parts of waits, of `ns` together. */
__noinline int culprit_add(__u64 id, __u64 by, __u64 ns, __u64 n)
{
	struct offcpu_culprit_key key = {.id = id, .by = by};
	struct offcpu_count *c = bpf_map_lookup_elem(&culprits, &key);

	if (!c) {
		tally_neighbour();
		bpf_map_update_elem(&culprits, &key, &no_count, BPF_NOEXIST);
		c = bpf_map_lookup_elem(&culprits, &key);
	}
	if (!c) {
		tally_pair_lost();
		return 0;
	}
	c->n += n;
	c->total_ns += ns;
	return 0;
}

/* More than this of the ring is full: the loader gets no turn. Then no stacks are taken until it
 * has had one: what comes meanwhile is in sums, without a stack, and nothing is lost. The rest is
 * for waits that had begun by then. */
#define RING_CROWDED (ring_bytes / 4 * 3)

static __always_inline bool ring_crowded(struct offcpu_cpu *cpu)
{
	if (cpu->crowded)
		cpu->crowded = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > RING_CROWDED / 2;
	return cpu->crowded;
}

/* The share is one in 2^shift, from now on: where it changes a block begins. */
static __always_inline void limit_share(struct offcpu_limit *l, __u32 limit)
{
	__u32 most = l->before > l->now ? l->before : l->now;
	__u32 shift = most > limit ? log2_of((most - 1) / limit) + 1 : 0;
	__u64 until;

	if (shift > OFFCPU_WEIGHT_SHIFT)
		shift = OFFCPU_WEIGHT_SHIFT;
	until = (__u64)limit << shift;
	l->until = shift == OFFCPU_WEIGHT_SHIFT || until > 0xffffffff ? 0xffffffff : until;
	if (shift != l->shift)
		l->at = 0;
	l->shift = shift;
}

/* How many waits one of this length represents, now that it is over; 0: it is not drawn. `exact`:
 * by point 5 of offcpu_draw.h, too. */
static __always_inline __u32 draw_of(struct offcpu_draw *d, struct draw_stratum *s, __u32 most,
				     bool exact, __u64 now, __u64 ns)
{
	const struct draw_limit limit = {.most = most,
					 .least = least_level,
					 .longs = exact ? LONGS * most : 0,
					 .behind = exact ? BEHIND * most : 0};

	if (!d->random)
		d->random = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	return draw_weight(d, s, &limit, now, ns);
}

/*
 * Where stacks are taken as threads leave: how many events this one represents, decided before
 * anything is known of it: 0 if it is not chosen. All are chosen while fewer came than `limit` in a
 * window; above it one in each block of 2, 4, 8... consecutive ones, at random, by the counts of
 * the last window and of this one so far. The choice depends on the past, not on how long this wait
 * will be: sums of weights have no bias, even if a block is cut short. One random number a block:
 * it costs more than all the rest.
 */
static __always_inline __u32 limit_weight(struct offcpu_limit *l, __u64 now, __u32 limit)
{
	__u32 window = now >> DRAW_WINDOW_SHIFT, mask;

	if (!limit)
		return 0;
	if (l->window != window) {
		l->before = l->window + 1 == window ? l->now : 0;
		l->window = window;
		l->now = 0;
		l->until = 0;
	}
	l->now++;
	if (l->now > l->until)
		limit_share(l, limit);
	if (!l->shift)
		return 1;
	mask = (1u << (l->shift & 31)) - 1;
	if (!(l->at & mask))
		l->pick = bpf_get_prandom_u32() & mask;
	return (l->at++ & mask) == l->pick ? mask + 1 : 0;
}

#endif
