/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* kstack_check: each kernel stack twice, by kstack.bpf.h and by bpf_get_stack, and whether they are
 * the same. */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/kstack.bpf.h"
#include "tests/unit/probes/kstack_check.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct kstack_tables kstack_tables = {};
struct kstack_check check = {};

struct twice {
	struct kstack kstack;
	__u64 walked[KSTACK_CHECK_MAX], got[KSTACK_CHECK_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct twice);
} both SEC(".maps");

__noinline int check_next(__u32 i)
{
	__u32 zero = 0;
	struct twice *t = bpf_map_lookup_elem(&both, &zero);

	if (!t)
		return 0;
	t->walked[i & (KSTACK_CHECK_MAX - 1)] = t->kstack.ip;
	t->kstack.how = kstack_up(&t->kstack);
	return t->kstack.how == KSTACK_MORE;
}

__noinline int check_same(__u32 i)
{
	__u32 zero = 0;
	struct twice *t = bpf_map_lookup_elem(&both, &zero);

	i &= KSTACK_CHECK_MAX - 1;
	if (t && t->walked[i] == t->got[i])
		return 1;
	check.differ_at = i;
	return 0;
}

SEC("perf_event")
int check_sample(struct arch_perf_event_data *ctx)
{
	struct twice *t;
	__u32 zero = 0, n = 0, same = 1, more = 1;
	long got;

	if (arch_user(&ctx->regs))
		return 0;
	t = bpf_map_lookup_elem(&both, &zero);
	if (!t)
		return 0;
	check.possible = kstack_possible();
	got = bpf_get_stack(ctx, t->got, sizeof(t->got), 0);
	if (got <= 0 || got >= (long)sizeof(t->got) || !kstack_tables.count)
		return 0;
	kstack_begin(&t->kstack, &ctx->regs);
	for (; n < KSTACK_CHECK_MAX && more; n++)
		more = check_next(n);
	__sync_fetch_and_add(&check.stacks, 1);
	if (t->kstack.how == KSTACK_OTHERWISE) {
		__sync_fetch_and_add(&check.otherwise, 1);
		return 0;
	}
	for (__u32 i = 0; i < KSTACK_CHECK_MAX && i < n && same; i++)
		same = check_same(i);
	__sync_fetch_and_add(&check.frames, n);
	if (!same || n != (__u64)got / sizeof(t->got[0]))
		__sync_fetch_and_add(&check.differ, 1);
	return 0;
}
