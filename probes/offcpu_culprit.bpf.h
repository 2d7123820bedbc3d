/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_culprit: who had a CPU while another thread was ready: the stints of each CPU, and what is
 * looked up in them (point 5 of offcpu.bpf.c).
 */
#ifndef SONDE_PROBES_OFFCPU_CULPRIT_BPF_H
#define SONDE_PROBES_OFFCPU_CULPRIT_BPF_H

#include "probes/offcpu.h"
#include "probes/offcpu_state.bpf.h"

static __always_inline struct offcpu_stint *span_of(__u32 at)
{
	at &= OFFCPU_SPANS - 1;
	return bpf_map_lookup_elem(&spans, &at);
}

static __noinline void span_add(struct offcpu_cpu *cpu, __u64 id, __u64 from, __u64 to)
{
	struct offcpu_stint *s = cpu ? span_of(cpu->next_span++) : NULL;

	if (s)
		*s = (struct offcpu_stint){id, from, to};
}

static __always_inline void stint_add(struct offcpu_cpu *cpu, __u64 id, __u64 from, __u64 to)
{
	struct offcpu_stint *s = &cpu->stint[cpu->next++ & (OFFCPU_STINTS - 1)];

	s->id = id;
	s->from_ns = from;
	s->to_ns = to;
	if ((from ^ to) >> OFFCPU_SPAN_SHIFT)
		span_add(cpu, id, from, to);
}

/* Who had this CPU at the last multiple of 2^OFFCPU_SPAN_SHIFT. This and the next two are global
 * functions of numbers alone, as in offcpu_state.bpf.h. Stints follow one another: the youngest
 * that began by then is looked for in halves. */
__noinline __u64 span_at(__u64 time)
{
	__u32 zero = 0, back = OFFCPU_SPANS; /* number of entries; the oldest */
	struct offcpu_cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct offcpu_stint *s;

	if (!cpu)
		return OFFCPU_BY_UNKNOWN;
	time = time >> OFFCPU_SPAN_SHIFT << OFFCPU_SPAN_SHIFT;
	for (__u32 half = OFFCPU_SPANS / 2; half; half /= 2) {
		s = span_of(cpu->next_span - (back - half));
		if (s && s->from_ns <= time)
			back -= half;
	}
	s = span_of(cpu->next_span - back);
	return s && s->id && s->from_ns <= time && time <= s->to_ns ? s->id : OFFCPU_BY_UNKNOWN;
}

/* Who had this CPU at that time. */
__noinline __u64 stint_at(__u64 time)
{
	__u32 zero = 0, back = OFFCPU_STINTS;
	struct offcpu_cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct offcpu_stint *s;

	if (!cpu)
		return OFFCPU_BY_UNKNOWN;
	for (__u32 half = OFFCPU_STINTS / 2; half; half /= 2) {
		s = &cpu->stint[(cpu->next - (back - half)) & (OFFCPU_STINTS - 1)];
		if (s->from_ns <= time)
			back -= half;
	}
	s = &cpu->stint[(cpu->next - back) & (OFFCPU_STINTS - 1)];
	if (s->id && s->from_ns <= time)
		return time < s->to_ns ? s->id : OFFCPU_BY_UNKNOWN;
	return span_at(time);
}

#define BLAME_SHIFT_FIRST 18 /* 0.26 ms */
#define BLAME_SHIFT_MOST  30

/*
 * Where hundreds of threads wait for a CPU, each of them meets all others: what is added would grow
 * with the square of their number. So each CPU adds about limit_blame parts of waits in a window,
 * the long ones all, and those that are shorter than a step by chance, in proportion to their
 * length: each that is drawn counts for the whole step. Sums have no bias. The step depends on what
 * was added before, not on what comes; it is 0 while less is added than the limit: all parts count,
 * and sums are exact. It doubles at each further limit, and halves after a window that had a
 * quarter.
 */
static __noinline int blame_turn(struct offcpu_cpu *cpu, __u64 now)
{
	__u32 window = now >> DRAW_WINDOW_SHIFT, gap;
	struct offcpu_blame *b;

	if (!cpu)
		return 0;
	b = &cpu->blame;
	if (b->window == window)
		return 0;
	gap = b->window + 1 != window;
	if (b->shift && (gap || b->added < limit_blame / 4))
		b->shift = b->shift > BLAME_SHIFT_FIRST && !gap ? b->shift - 1 : 0;
	b->window = window;
	b->added = 0;
	b->until = limit_blame;
	return 0;
}

static __always_inline void blame_count(struct offcpu_blame *b)
{
	if (++b->added <= b->until)
		return;
	b->until += limit_blame;
	if (b->shift < BLAME_SHIFT_MOST)
		b->shift = b->shift ? b->shift + 1 : BLAME_SHIFT_FIRST;
}

/* `by` had the CPU for `ns` of the time that the thread `id` was ready. */
__noinline int blame_add(__u64 id, __u64 by, __u64 ns)
{
	__u32 zero = 0;
	struct offcpu_cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	__u64 step, n = 1;

	if (!cpu)
		return 0;
	step = cpu->blame.shift ? 1ull << (cpu->blame.shift & 31) : 0;
	if (ns < step) {
		if ((bpf_get_prandom_u32() & (step - 1)) >= ns)
			return 0;
		n = step / (ns ?: 1);
		ns = step;
	}
	blame_count(&cpu->blame);
	culprit_add(id, by, ns, n);
	return 0;
}

/* One long wait is looked at so often, at equal distances. */
__noinline int culprits_of_long(__u64 id, __u64 from, __u64 len)
{
	__u64 step = len / OFFCPU_MOMENTS, at = step ? bpf_get_prandom_u32() % step : 0;

	for (__u32 i = 0; i < OFFCPU_MOMENTS; i++) {
		blame_add(id, stint_at(from + at), step);
		at += step;
	}
	return 0;
}

/* Who had this CPU while the thread `id` was ready, from `from` to `now`. */
static __noinline void culprits_add(struct offcpu_cpu *cpu, __u64 id, __u64 from, __u64 now)
{
	__u64 until = now;

	if (!cpu)
		return;
	for (__u32 i = 1; i <= OFFCPU_WALKED && until > from; i++) {
		struct offcpu_stint *s = &cpu->stint[(cpu->next - i) & (OFFCPU_STINTS - 1)];
		__u64 begin = s->from_ns > from ? s->from_ns : from;

		if (!s->id || s->to_ns <= from || begin >= until)
			break;
		blame_add(id, s->id, until - begin);
		until = begin;
	}
	if (until > from)
		culprits_of_long(id, from, until - from);
}

/* The time that threads were ready on this CPU, one after the other, is sampled once in culprit_ns,
 * with some jitter: the thread that had the CPU at that moment gets that share. The cost depends on
 * how many wait, and hardly on how often. */
__noinline int culprits_sample(__u64 id, __u64 from, __u64 len)
{
	__u64 step = culprit_ns ?: 1, at;
	__u32 zero = 0;
	struct offcpu_cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (!cpu)
		return 0;
	at = cpu->moment_ns;
	for (__u32 i = 0; i < 2 * OFFCPU_MOMENTS && at < len; i++) {
		culprit_add(id, stint_at(from + at), step, 1);
		at += step / 2 + bpf_get_prandom_u32() % step;
	}
	cpu->moment_ns = at > len ? at - len : 0;
	return 0;
}

static __always_inline void culprits_blame(struct offcpu_cpu *cpu, __u64 id, __u64 from, __u64 now)
{
	if (!id) /* it is not known whose they would be */
		return;
	blame_turn(cpu, now);
	if (!culprit_ns)
		culprits_add(cpu, id, from, now);
	else if (now - from < (__u64)culprit_ns * OFFCPU_MOMENTS)
		culprits_sample(id, from, now - from);
	else
		culprits_of_long(id, from, now - from);
}

#endif
