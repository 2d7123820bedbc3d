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

/* One long wait is looked at so often, at equal distances. */
__noinline int culprits_of_long(__u64 id, __u64 from, __u64 len)
{
	__u64 step = len / OFFCPU_MOMENTS, at = step ? bpf_get_prandom_u32() % step : 0;

	for (__u32 i = 0; i < OFFCPU_MOMENTS; i++) {
		culprit_add(id, stint_at(from + at), step);
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
		culprit_add(id, s->id, until - begin);
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
		culprit_add(id, stint_at(from + at), step);
		at += step / 2 + bpf_get_prandom_u32() % step;
	}
	cpu->moment_ns = at > len ? at - len : 0;
	return 0;
}

static __always_inline void culprits_blame(struct offcpu_cpu *cpu, __u64 id, __u64 from, __u64 now)
{
	if (!culprit_ns)
		culprits_add(cpu, id, from, now);
	else if (now - from < (__u64)culprit_ns * OFFCPU_MOMENTS)
		culprits_sample(id, from, now - from);
	else
		culprits_of_long(id, from, now - from);
}

#endif
