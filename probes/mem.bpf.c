/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mem: who makes memory grow. A page gets memory when it is first touched, which is a page fault:
 * a software perf event on every CPU counts these and runs a program at every so-and-so-many-th
 * one. Between two samples nothing of sonde runs. The sample has the page and the stack that
 * touched it; what comes of the page later the loader asks the kernel.
 *
 * 1. The event fires once for each fault of user code and of the kernel in user memory (read(2)
 *    into fresh memory), and once for a huge page. It does not fire where pages are made without a
 *    fault: MAP_POPULATE, mlock, O_DIRECT into fresh memory.
 * 2. It fires in the context of the thread that faulted, when its page is in place.
 * 3. mem_mapped reports new mappings of processes that have samples: what was mapped there before
 * is gone, and else memory that is freed and mapped again would seem to grow. It leaves out
 * mappings smaller than MEM_MAPPED_LEAST, and more than MEM_MAPPED_MOST in a second.
 * 4. mem_stall_begin and mem_stall_end run where a thread begins and ends to free memory, before it
 * gets some: in reclaim for the host's memory or a cgroup's limit, or in compaction. Which of them
 * it was its kernel stack says. Programs of raw tracepoints: one is attached to all three, and what
 * the hooks' arguments are, which differs from kernel to kernel (7.2 swaps two), does not matter.
 * 5. mem_victim says which process the kernel kills for memory, and what it holds.
 * 6. mem_fault_vma also asks what is mapped there. Where it is refused mem_fault goes without.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/mem.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sample.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define VM_SHARED 0x8

struct vm_area_struct {
	unsigned long vm_flags;
	struct file *vm_file;
} __attribute__((preserve_access_index));

#define MEM_MAPPED_LEAST 65536
#define MEM_MAPPED_MOST  2000 /* a second, on each CPU */

struct vm_unmapped_area_info {
	unsigned long length;
} __attribute__((preserve_access_index));

#define MM_ANON 1 /* the kernel's MM_ANONPAGES and MM_SWAPENTS */
#define MM_SWAP 2

struct mm_rss_stat { /* up to 6.1 */
	atomic64_t count[4];
} __attribute__((preserve_access_index));

struct mm_struct___counts {
	struct mm_rss_stat rss_stat;
} __attribute__((preserve_access_index));

struct percpu_counter {
	__s64 count;
} __attribute__((preserve_access_index));

struct mm_struct___percpu { /* from 6.2 on: up to 32 pages a CPU are not in `count` yet */
	struct percpu_counter rss_stat[4];
} __attribute__((preserve_access_index));

struct { /* processes with samples */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u8);
} sampled SEC(".maps");

struct mapped_limit {
	__u64 second;
	__u32 n;
	__u32 unused;
	struct mem_mapped m; /* made here: older kernels give little stack */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mapped_limit);
} mapped_limit SEC(".maps");

struct { /* faults of processes that the capture is not about, by the periods of its samples */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} outside SEC(".maps");

static __always_inline bool is_outside(struct arch_perf_event_data *ctx, struct task_struct *task)
{
	__u32 zero = 0;
	__u64 *sum;

	if (task_in_scope(task))
		return false;
	sum = bpf_map_lookup_elem(&outside, &zero);
	if (sum)
		*sum += ctx->sample_period;
	return true;
}

static long memory_of(struct task_struct *task, struct vm_area_struct *vma, __u32 *memory)
{
	if (vma->vm_flags & VM_SHARED)
		*memory = MEM_SHARED;
	else
		*memory = vma->vm_file ? MEM_PRIVATE : MEM_ANON;
	return 0;
}

static __always_inline void sampled_note(__u32 tgid)
{
	__u8 yes = 1;

	if (!bpf_map_lookup_elem(&sampled, &tgid))
		bpf_map_update_elem(&sampled, &tgid, &yes, BPF_ANY);
}

static __always_inline void fault_sample(struct arch_perf_event_data *ctx, struct task_struct *task,
					 __u32 memory)
{
	__u64 now = bpf_ktime_get_boot_ns(), period = ctx->sample_period, addr = ctx->addr;
	struct stack_scratch *s;
	struct sample_tally *t;
	__u32 zero = 0;

	t = bpf_map_lookup_elem(&tally, &zero);
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!t || !s)
		return;
	stack_fill_task(&s->ev, task, now);
	if (period > MEM_PERIOD_MAX)
		period = MEM_PERIOD_MAX;
	s->ev.tag = addr >> MEM_PAGE_SHIFT << MEM_TAG_SHIFT | (__u64)memory << MEM_MEMORY_SHIFT |
		    period;
	sampled_note((__u32)(bpf_get_current_pid_tgid() >> 32));
	sample_take(s, t, task, ctx, period);
	sample_tally_run(t, bpf_ktime_get_boot_ns() - now);
}

SEC("?perf_event")
int mem_fault_vma(struct arch_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 memory = MEM_UNKNOWN;

	if (is_outside(ctx, task))
		return 0;
	bpf_find_vma(task, ctx->addr, memory_of, &memory, 0);
	fault_sample(ctx, task, memory);
	return 0;
}

SEC("?perf_event")
int mem_fault(struct arch_perf_event_data *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (!is_outside(ctx, task))
		fault_sample(ctx, task, MEM_UNKNOWN);
	return 0;
}

TRACEPOINT(vm_unmapped_area, mem_mapped, unsigned long addr, struct vm_unmapped_area_info *info)
{
	__u32 zero = 0, tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	__u64 now, length = info->length;
	struct mapped_limit *l;

	if (addr >> 63 || length < MEM_MAPPED_LEAST || !bpf_map_lookup_elem(&sampled, &tgid))
		return 0;
	l = bpf_map_lookup_elem(&mapped_limit, &zero);
	if (!l)
		return 0;
	now = bpf_ktime_get_boot_ns();
	if (l->second != now >> 30) {
		l->second = now >> 30;
		l->n = 0;
	}
	if (l->n++ >= MEM_MAPPED_MOST)
		return 0;
	stack_fill_task(&l->m.ev, (struct task_struct *)bpf_get_current_task(), now);
	l->m.ev.end = MEM_RECORD_MAPPED;
	l->m.start = addr;
	l->m.end = addr + length;
	bpf_ringbuf_output(&events, &l->m, sizeof(l->m), BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- waits for memory ---- */

struct stall {
	__u64 began_ns;
	__u32 depth; /* in case one lies within another */
	__u32 unused;
};

struct { /* by thread */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct stall);
} stalls SEC(".maps");

struct short_stalls {
	__u64 ns;
	__u64 n;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct short_stalls);
} short_stalls SEC(".maps");

static __always_inline int stall_begin(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct stall begun = {.began_ns = bpf_ktime_get_boot_ns()}, *s;

	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !task_in_scope(task))
		return 0;
	s = bpf_map_lookup_elem(&stalls, &tid);
	if (s)
		s->depth++;
	else
		bpf_map_update_elem(&stalls, &tid, &begun, BPF_ANY);
	return 0;
}

static __always_inline __u64 stall_tag(__u64 n, __u64 ns)
{
	__u64 units = ns >> MEM_STALL_UNIT_SHIFT;

	if (units > MEM_STALL_UNITS_MAX)
		units = MEM_STALL_UNITS_MAX;
	return n << MEM_STALL_N_SHIFT | units << MEM_TAG_SHIFT;
}

/* How long the wait of this thread was, which ends now. 0: it has none, or another one goes on. */
static __always_inline __u64 stall_over(__u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct stall *s = bpf_map_lookup_elem(&stalls, &tid);
	__u64 ns;

	if (!s)
		return 0;
	if (s->depth) {
		s->depth--;
		return 0;
	}
	ns = now - s->began_ns;
	bpf_map_delete_elem(&stalls, &tid);
	return ns;
}

static __always_inline int stall_end(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 now = bpf_ktime_get_boot_ns(), ns = stall_over(now);
	struct short_stalls *sum;
	struct stack_scratch *s;
	struct sample_tally *t;
	__u32 zero = 0;

	t = bpf_map_lookup_elem(&tally, &zero);
	s = bpf_map_lookup_elem(&scratch, &zero);
	sum = bpf_map_lookup_elem(&short_stalls, &zero);
	if (!t || !s || !sum || !ns)
		return 0;
	sum->ns += ns;
	sum->n++;
	if (sum->ns < MEM_STALL_WHOLE_NS && sum->n < MEM_STALL_N_MAX)
		return 0;
	stack_fill_task(&s->ev, task, now);
	s->ev.tag = stall_tag(sum->n, sum->ns);
	sum->ns = sum->n = 0;
	t->seen++;
	if (stack_fill(s, task, ctx, NULL))
		t->late++;
	else if (sample_send(s))
		t->ring_full++;
	else
		t->sent++;
	sample_tally_run(t, bpf_ktime_get_boot_ns() - now);
	return 0;
}

PREEMPT_PAIR("raw_tp", mem_stall_begin, stall_begin())
PREEMPT_PAIR("raw_tp", mem_stall_end, stall_end(ctx))

/* ---- out of memory ---- */

static __always_inline void victim_holds(struct mem_victim *v, struct mm_struct *mm)
{
	struct mm_struct___percpu *percpu = (void *)mm;
	struct mm_struct___counts *counts = (void *)mm;

	if (bpf_core_type_exists(struct mm_rss_stat)) {
		v->anon_pages = (__u64)BPF_CORE_READ(counts, rss_stat.count[MM_ANON].counter);
		v->swap_pages = (__u64)BPF_CORE_READ(counts, rss_stat.count[MM_SWAP].counter);
	} else {
		v->anon_pages = (__u64)BPF_CORE_READ(percpu, rss_stat[MM_ANON].count);
		v->swap_pages = (__u64)BPF_CORE_READ(percpu, rss_stat[MM_SWAP].count);
	}
}

static __always_inline int victim_send(unsigned long long *ctx)
{
	struct mem_victim v = {.ev.time_ns = bpf_ktime_get_boot_ns(), .ev.end = MEM_RECORD_VICTIM};
	struct task_struct *task = (void *)ctx[0], *leader;

	if (ctx[0] >> 32) {
		leader = BPF_CORE_READ(task, group_leader);
		v.ev.tgid = v.ev.tid = (__u32)BPF_CORE_READ(task, tgid);
		v.ev.start_ns = BPF_CORE_READ(leader, start_boottime);
		v.ev.exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
		BPF_CORE_READ_INTO(&v.ev.thread, leader, comm);
		victim_holds(&v, BPF_CORE_READ(task, mm));
	} else {
		v.ev.tgid = v.ev.tid = (__u32)ctx[0];
	}
	bpf_ringbuf_output(&events, &v, sizeof(v), BPF_RB_FORCE_WAKEUP);
	return 0;
}

PREEMPT_PAIR("raw_tp/mark_victim", mem_victim, victim_send(ctx))

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(mem_fork, struct task_struct *parent, struct task_struct *child)
{
	sample_fork(parent, child);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(mem_exit, struct task_struct *task)
{
	scope_exit(task);
	return 0;
}
