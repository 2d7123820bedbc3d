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
 * mappings smaller than MEM_MAPPED_LEAST, and more than MEM_MAPPED_MOST in a second. Where the call
 * is mremap(2) it says what moves there.
 * 4. mem_stall_begin and mem_stall_end run where a thread begins and ends to free memory, before it
 * gets some: in reclaim for the host's memory or a cgroup's limit, or in compaction. Which of them
 * it was its kernel stack says. Programs of raw tracepoints: one is attached to all three, and what
 * the hooks' arguments are, which differs from kernel to kernel (7.2 swaps two), does not matter.
 * 5. mem_sleep_switch and mem_sleep_end see the other waits for memory: threads that leave the CPU
 * while the kernel marks them as stalled for memory (in_memstall, which PSI counts): until a page
 * comes back from swap, until a page of a file comes back that was given up too early, and above a
 * cgroup's memory.high. Each sched_switch runs the first one, so both are attached only while
 * a thread of the host waits for memory (loaders/mem/pressure.h). What the kernel does for memory
 * while it has the CPU, other than in 4. (a page that comes back from zram at once), is not seen.
 * 6. mem_victim says which process the kernel kills for memory, and what it holds.
 * 7. mem_fault_vma also asks what is mapped there. Where it is refused mem_fault goes without.
 * 8. mem_major_vma, or mem_major where it is refused, runs at faults that had to read the page,
 * from a file or from swap. The kernel counts these apart: among all faults they are rare.
 * 9. mem_page_alloc and mem_page_free, if a person asks for them, are in mem_pages.bpf.h.
 * 10. mem_huge_alloc, for faults that bring huge pages, is in mem_huge.bpf.h.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/mem.h"
#include "probes/mem/mem_huge.bpf.h"
#include "probes/mem/mem_pages.bpf.h"
#include "probes/mem/mem_sampled.bpf.h"
#include "probes/mem/mem_stack.bpf.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sample.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct vm_area_struct {
	unsigned long vm_flags;
	struct file *vm_file;
} __attribute__((preserve_access_index));

struct qstr___mem {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct dentry___mem {
	struct dentry___mem *d_parent;
	struct qstr___mem d_name;
} __attribute__((preserve_access_index));

struct path___mem {
	struct dentry___mem *dentry;
} __attribute__((preserve_access_index));

struct file___mem {
	struct path___mem f_path;
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

const volatile __u32 syscall_mremap = 25;

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

struct { /* faults of processes that the capture is not about */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} outside SEC(".maps");

struct bpf_perf_event_value { /* include/uapi/linux/bpf.h */
	__u64 counter, enabled, running;
};

struct counted { /* faults that samples of this CPU already represent */
	__u64 faults, majors;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counted);
} counted SEC(".maps");

/* How many faults this sample represents: all since the last one on this CPU, by the event's own
 * count. Not its period: the kernel starts its count from zero when the loader sets another
 * period, so that the next fault is a sample at once, and reports the period before at a period
 * of 1. On a CPU with few faults a second that would be most samples. */
static __always_inline __u64 faults_since(struct arch_perf_event_data *ctx, __u64 *counted_to)
{
	struct bpf_perf_event_value value = {0};
	__u64 n;

	if (bpf_perf_prog_read_value((void *)ctx, &value, sizeof(value)))
		return ctx->sample_period;
	if (value.counter < *counted_to) /* another event: the CPU was offline */
		*counted_to = 0;
	n = value.counter - *counted_to;
	if (n > MEM_PERIOD_MAX)
		n = MEM_PERIOD_MAX; /* the next one represents the others */
	*counted_to += n;
	return n;
}

static __always_inline bool is_outside(struct task_struct *task, __u64 n)
{
	__u32 zero = 0;
	__u64 *sum;

	if (task_in_scope(task))
		return false;
	sum = bpf_map_lookup_elem(&outside, &zero);
	if (sum)
		*sum += n;
	return true;
}

static long memory_of(struct task_struct *task, struct vm_area_struct *vma, __u32 *memory)
{
	if (vma->vm_flags & MEM_VM_SHARED)
		*memory = MEM_SHARED;
	else
		*memory = vma->vm_file ? MEM_PRIVATE : MEM_ANON;
	return 0;
}

struct short_stalls {
	__u64 ns;
	__u64 n;
	struct mem_serves serves; /* made here, as mapped_limit.m */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct short_stalls);
} short_stalls SEC(".maps");

/* Says which request the current thread serves, of the record whose event this is. A separate
 * function: older kernels give little stack. */
static __noinline int stall_serves(__u64 now)
{
	__u64 tag = stack_tag(stack_serves(now), now);
	struct short_stalls *sum;
	struct stack_scratch *s;
	__u32 zero = 0;

	sum = bpf_map_lookup_elem(&short_stalls, &zero);
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!tag || !sum || !s)
		return 0;
	sum->serves.ev = s->ev;
	sum->serves.ev.end = MEM_RECORD_SERVES;
	sum->serves.tag = tag;
	sample_note(&sum->serves, sizeof(sum->serves), BPF_RB_NO_WAKEUP);
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mem_file);
} fault_files SEC(".maps");

static long file_of(struct task_struct *task, struct vm_area_struct *vma, void *unused)
{
	struct file___mem *file = (void *)vma->vm_file;
	struct dentry___mem *at, *above;
	struct mem_file *f;
	__u32 zero = 0;

	f = bpf_map_lookup_elem(&fault_files, &zero);
	if (!f)
		return 0;
	f->has_file = file != NULL;
	at = file ? BPF_CORE_READ(file, f_path.dentry) : NULL;
	for (int i = 0; i < MEM_FILE_NAMES; i++) {
		f->names[i][0] = 0;
		if (!at)
			continue;
		bpf_probe_read_kernel_str(f->names[i], MEM_FILE_NAME,
					  BPF_CORE_READ(at, d_name.name));
		above = BPF_CORE_READ(at, d_parent);
		at = above == at ? NULL : above;
	}
	return 0;
}

/* Says what is mapped there, of the record whose event this CPU has. */
static __always_inline void file_send(struct task_struct *task, __u64 address)
{
	struct stack_scratch *s;
	struct mem_file *f;
	__u32 zero = 0;

	f = bpf_map_lookup_elem(&fault_files, &zero);
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!f || !s || bpf_find_vma(task, address, file_of, NULL, 0))
		return;
	f->ev = s->ev;
	f->ev.end = MEM_RECORD_FILE;
	f->ev.n_kernel = f->ev.n_user = 0;
	sample_note(f, sizeof(*f), BPF_RB_NO_WAKEUP);
}

/* `n`: faults that it represents. `is`: bits of the tag. `asks`: also what is mapped there. */
static __always_inline void fault_sample(struct arch_perf_event_data *ctx, struct task_struct *task,
					 __u64 n, __u64 is, bool asks)
{
	__u64 now = bpf_ktime_get_boot_ns(), addr = ctx->addr;
	struct mem_stack x;

	if (!n || !mem_stack_begin(&x, n))
		return;
	stack_fill_task(&x.s->ev, task, now);
	if (asks)
		file_send(task, addr);
	if (is & MEM_MAJOR)
		stall_serves(now);
	else
		mem_sampled_note((__u32)(bpf_get_current_pid_tgid() >> 32));
	x.s->ev.tag = addr >> MEM_PAGE_SHIFT << MEM_TAG_SHIFT | is | n;
	sample_take(x.s, x.t, task, ctx, n);
	mem_stack_end(&x);
}

SEC("?perf_event")
int mem_fault_vma(struct arch_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 zero = 0, memory = MEM_UNKNOWN;
	struct counted *c;
	__u64 n;

	c = bpf_map_lookup_elem(&counted, &zero);
	if (!c)
		return 0;
	n = faults_since(ctx, &c->faults);
	if (is_outside(task, n))
		return 0;
	bpf_find_vma(task, ctx->addr, memory_of, &memory, 0);
	fault_sample(ctx, task, n, (__u64)memory << MEM_MEMORY_SHIFT, false);
	return 0;
}

SEC("?perf_event")
int mem_fault(struct arch_perf_event_data *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct counted *c;
	__u32 zero = 0;
	__u64 n;

	c = bpf_map_lookup_elem(&counted, &zero);
	if (!c)
		return 0;
	n = faults_since(ctx, &c->faults);
	if (!is_outside(task, n))
		fault_sample(ctx, task, n, (__u64)MEM_UNKNOWN << MEM_MEMORY_SHIFT, false);
	return 0;
}

__u64 majors = 0; /* faults that had to read, of those that the capture is about */

static __always_inline int major_sample(struct arch_perf_event_data *ctx, struct task_struct *task,
					bool asks)
{
	struct counted *c;
	__u32 zero = 0;
	__u64 n;

	c = bpf_map_lookup_elem(&counted, &zero);
	if (!c)
		return 0;
	n = faults_since(ctx, &c->majors);
	if (!task_in_scope(task))
		return 0;
	__sync_fetch_and_add(&majors, n);
	fault_sample(ctx, task, n, MEM_MAJOR, asks);
	return 0;
}

SEC("?perf_event")
int mem_major_vma(struct arch_perf_event_data *ctx)
{
	return major_sample(ctx, bpf_get_current_task_btf(), true);
}

SEC("?perf_event")
int mem_major(struct arch_perf_event_data *ctx)
{
	return major_sample(ctx, (struct task_struct *)bpf_get_current_task(), false);
}

TRACEPOINT(vm_unmapped_area, mem_mapped, unsigned long addr, struct vm_unmapped_area_info *info)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 zero = 0, tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	__u64 now, length = info->length;
	struct mapped_limit *l;
	struct arch_call call;

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
	stack_fill_task(&l->m.ev, task, now);
	l->m.ev.end = MEM_RECORD_MAPPED;
	l->m.start = addr;
	l->m.end = addr + length;
	l->m.from = l->m.from_end = 0;
	if (arch_call_read(arch_current_entry(task), &call) && call.number == syscall_mremap) {
		l->m.from = call.first;
		l->m.from_end = call.first + call.second;
	}
	sample_note(&l->m, sizeof(l->m), BPF_RB_NO_WAKEUP);
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
	else if (bpf_map_update_elem(&stalls, &tid, &begun, BPF_ANY))
		sample_no_room();
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

/* true: what has come together is a record. */
static __always_inline bool stall_adds_up(struct short_stalls *sum, __u64 ns)
{
	sum->ns += ns;
	sum->n++;
	return sum->ns >= MEM_STALL_WHOLE_NS || sum->n >= MEM_STALL_N_MAX;
}

/* The current thread has waited so long. */
static __always_inline int stall_report(void *ctx, __u64 now, __u64 ns)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct short_stalls *sum;
	struct mem_stack x;
	__u32 zero = 0;
	__u64 n;

	sum = bpf_map_lookup_elem(&short_stalls, &zero);
	if (!sum || !ns || !stall_adds_up(sum, ns) || !mem_stack_begin(&x, 0))
		return 0; /* where it is taken the next one reports it, too */
	stack_fill_task(&x.s->ev, task, now);
	stall_serves(now);
	n = sum->n;
	x.s->ev.tag = stall_tag(n, sum->ns);
	sum->ns = sum->n = 0;
	x.t->seen += n;
	if (stack_fill(x.s, task, ctx, NULL))
		x.t->late += n;
	else if (sample_send(x.s))
		x.t->ring_full += n;
	else
		x.t->sent += n;
	mem_stack_end(&x);
	return 0;
}

/* The thread stays marked as stalled while this program runs, and has no memory yet: that is part
 * of the wait, and reported with the next one of this CPU. Where waits are short it is much of
 * them. */
static __always_inline int stall_end(void *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns(), ns = stall_over(now);
	struct short_stalls *sum;
	__u32 zero = 0;

	if (!ns)
		return 0;
	stall_report(ctx, now, ns);
	sum = bpf_map_lookup_elem(&short_stalls, &zero);
	if (sum)
		sum->ns += bpf_ktime_get_boot_ns() - now;
	return 0;
}

PREEMPT_PAIR("raw_tp", mem_stall_begin, stall_begin())
PREEMPT_PAIR("raw_tp", mem_stall_end, stall_end(ctx))

/* ---- threads that sleep for memory ---- */

/* sched_exit_tp is there (6.15): stacks are taken when threads go on. */
const volatile bool at_end = false;

struct task_struct___stall { /* with CONFIG_PSI */
	unsigned int in_memstall : 1;
} __attribute__((preserve_access_index));

struct sleep {
	__u64 began_ns;
	__u64 slept_ns; /* 0: it goes on */
};

struct { /* by thread */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct sleep);
} sleeps SEC(".maps");

__u64 sleepers = 0; /* in that map; 0: nothing is looked up */

static __always_inline void sleep_drop(__u32 tid)
{
	if (!bpf_map_delete_elem(&sleeps, &tid))
		__sync_fetch_and_add(&sleepers, -1);
}

/* As waits_for_io in offcpu.bpf.c. */
static __noinline bool stalls_for_memory(struct task_struct *task)
{
	struct task_struct___stall *t = (void *)task;

	if (!bpf_core_field_exists(t->in_memstall))
		return false;
	return BPF_CORE_READ_BITFIELD_PROBED(t, in_memstall);
}

static __always_inline void sleep_begins(struct task_struct *task, __u64 now)
{
	struct sleep begun = {.began_ns = now}, *s;
	__u32 tid = (__u32)task->pid;

	s = sleepers ? bpf_map_lookup_elem(&sleeps, &tid) : NULL;
	if (!stalls_for_memory(task) || task->flags & PF_KTHREAD ||
	    bpf_map_lookup_elem(&stalls, &tid) || !task_in_scope(task)) {
		if (s) /* that it went on was not seen */
			sleep_drop(tid);
		return;
	}
	if (s)
		*s = begun;
	else if (!bpf_map_update_elem(&sleeps, &tid, &begun, BPF_NOEXIST))
		__sync_fetch_and_add(&sleepers, 1);
	else
		sample_no_room();
}

/* Without a stack: `task` is not the current thread yet. */
static __noinline int sleep_report(struct task_struct *task, __u64 now, __u64 ns)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct short_stalls *sum;
	struct stack_event *ev;
	struct stack_scratch *s;
	struct sample_tally *t;
	__u32 zero = 0;
	__u64 n;

	t = bpf_map_lookup_elem(&tally, &zero);
	s = bpf_map_lookup_elem(&scratch, &zero);
	sum = bpf_map_lookup_elem(&short_stalls, &zero);
	if (!t || !s || !sum || !stall_adds_up(sum, ns))
		return 0;
	ev = &s->ev;
	stack_fill_task(ev, task, now);
	ev->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	ev->tgid = (__u32)BPF_CORE_READ(task, tgid);
	ev->tid = (__u32)BPF_CORE_READ(task, pid);
	ev->start_ns = BPF_CORE_READ(leader, start_boottime);
	BPF_CORE_READ_INTO(&ev->thread, task, comm);
	n = sum->n;
	ev->tag = stall_tag(n, sum->ns);
	sum->ns = sum->n = 0;
	t->seen += n;
	if (sample_send(s))
		t->ring_full += n;
	else
		t->sent += n;
	sample_tally_run(t, bpf_ktime_get_boot_ns() - now);
	return 0;
}

static __always_inline void sleep_ends(struct task_struct *task, __u64 now)
{
	__u32 tid = (__u32)task->pid;
	struct sleep *s = sleepers ? bpf_map_lookup_elem(&sleeps, &tid) : NULL;
	__u64 ns;

	if (!s)
		return;
	ns = now - s->began_ns;
	if (at_end) {
		s->slept_ns = ns;
		return;
	}
	sleep_drop(tid);
	sleep_report(task, now, ns);
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(mem_sleep_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now;

	if (!sleepers && !stalls_for_memory(prev))
		return 0;
	now = bpf_ktime_get_boot_ns();
	sleep_begins(prev, now);
	sleep_ends(next, now);
	return 0;
}

static __always_inline int sleep_end(void *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct sleep *s = sleepers ? bpf_map_lookup_elem(&sleeps, &tid) : NULL;
	__u64 ns = s ? s->slept_ns : 0;

	if (!ns)
		return 0;
	sleep_drop(tid);
	return stall_report(ctx, bpf_ktime_get_boot_ns(), ns);
}

PREEMPT_PAIR("raw_tp/sched_exit_tp", mem_sleep_end, sleep_end(ctx))

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
	sample_note(&v, sizeof(v), BPF_RB_FORCE_WAKEUP);
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
