/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pstack: a task iterator that reports of each thread what is needed to show where it waits: its
 * identity, its state, since when, its kernel stack, and its registers in user space. It stops no
 * thread. The loader reads the user stack, which is valid if the thread's count of switches is the
 * same before and after.
 *
 * When a thread left its CPU the kernel does not keep. It keeps when it came
 * (sched_info.last_arrival), and how long it has run in all and had run when it was picked
 * (sum_exec_runtime, prev_sum_exec_runtime): it left at arrival plus the difference. Time of
 * interrupts and of the hypervisor within that last run is in neither, so that the wait seems
 * longer by it. Real-time classes do not keep the second: their last run counts as waiting.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/arch_x86.h"
#include "probes/pstack.h"
#include "probes/lib/sock.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sched_info___pstack {
	unsigned long long last_arrival, last_queued;
};
struct sched_entity___pstack {
	__u64 sum_exec_runtime, prev_sum_exec_runtime;
};
struct task_struct___pstack {
	unsigned int __state;
	unsigned long nvcsw, nivcsw;
	int on_cpu;
	unsigned int policy;
	unsigned in_iowait : 1;
	struct sched_info___pstack sched_info;
	struct sched_entity___pstack se;
};
struct task_struct___before514 {
	long state;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pstack_record);
} scratch SEC(".maps");

/* This process alone; 0: all. */
const volatile __u32 only_tgid = 0;
/* Nothing but the reader's own clock. */
const volatile bool kernel_stacks = true;

#define SCHED_FIFO     1
#define SCHED_RR       2
#define SCHED_DEADLINE 6

static __always_inline void fill_state(struct pstack_record *r, struct task_struct___pstack *t)
{
	struct task_struct___before514 *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		r->state = BPF_CORE_READ(t, __state);
	else
		r->state = (__u32)BPF_CORE_READ(old, state);
	if (BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait))
		r->flags |= PSTACK_IOWAIT;
	/* as wide as it is there: a byte since 7.2 */
	if (bpf_core_field_exists(t->on_cpu) && BPF_CORE_READ_BITFIELD_PROBED(t, on_cpu))
		r->flags |= PSTACK_ON_CPU;
	r->switches = BPF_CORE_READ(t, nvcsw) + BPF_CORE_READ(t, nivcsw);
}

static __always_inline void fill_clock(struct pstack_record *r, struct task_struct___pstack *t)
{
	struct task_struct___pstack *me = (void *)bpf_get_current_task();
	__u32 policy = BPF_CORE_READ(t, policy);
	__u64 queued;

	if (!bpf_core_field_exists(t->sched_info))
		return;
	r->now_ns = BPF_CORE_READ(me, sched_info.last_arrival);
	r->left_ns = BPF_CORE_READ(t, sched_info.last_arrival);
	if (policy != SCHED_FIFO && policy != SCHED_RR && policy != SCHED_DEADLINE)
		r->left_ns += BPF_CORE_READ(t, se.sum_exec_runtime) -
			      BPF_CORE_READ(t, se.prev_sum_exec_runtime);
	queued = BPF_CORE_READ(t, sched_info.last_queued);
	if (!r->state && queued)
		r->left_ns = queued;
	r->flags |= PSTACK_CLOCK;
}

static __always_inline void fill_regs(struct pstack_record *r, struct task_struct *task)
{
	struct arch_regs regs;
	void *at;

	if (r->flags & PSTACK_KTHREAD)
		return;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		at = (void *)bpf_task_pt_regs(task);
	else
		at = (char *)BPF_CORE_READ(task, stack) + ARCH_THREAD_SIZE - sizeof(regs);
	if (bpf_probe_read_kernel(&regs, sizeof(regs), at) || !arch_user(&regs) || !regs.ip)
		return;
	r->flags |= PSTACK_REGS;
	if (regs.cs == ARCH_USER32_CS)
		r->flags |= PSTACK_32BIT;
	if (arch_syscall(&regs))
		r->flags |= PSTACK_IN_SYSCALL;
	r->syscall = (__s32)regs.orig_ax;
	r->pc = regs.ip;
	arch_dwarf(&regs, r->regs);
	r->fs_base = BPF_CORE_READ(task, thread.fsbase);
}

#define FD_MAX (1u << 20)

/* Whether the call's first argument is a descriptor at all is the loader's to know. */
static __always_inline void fill_sock(struct pstack_record *r, struct task_struct *task)
{
	__u64 fd = r->regs[ARCH_DWARF_FIRST];
	struct file *file;
	struct sock *sk;

	if (!(r->flags & PSTACK_IN_SYSCALL) || fd >= FD_MAX)
		return;
	file = sock_fd_file(task, (__u32)fd);
	sk = file ? sock_of_file(file) : NULL;
	if (sk)
		sock_end_fill(&r->sock, sk);
}

static __always_inline void fill_kernel(struct pstack_record *r, struct task_struct *task)
{
	long got;

	if (!kernel_stacks || (r->flags & PSTACK_ON_CPU))
		return;
	got = bpf_get_task_stack(task, r->kernel, sizeof(r->kernel), 0);
	r->n_kernel = got > 0 ? (__u32)got / 8 : 0;
	if (r->n_kernel > PSTACK_KERNEL_MAX)
		r->n_kernel = PSTACK_KERNEL_MAX;
}

SEC("iter/task")
int pstack_task(struct bpf_iter__task *ctx)
{
	struct bpf_iter_meta *meta = ctx->meta;
	struct task_struct *task = ctx->task, *leader;
	__u32 zero = 0;
	struct pstack_record *r = bpf_map_lookup_elem(&scratch, &zero);

	if (!task || !r || (only_tgid && (__u32)task->tgid != only_tgid))
		return 0;
	__builtin_memset(r, 0, __builtin_offsetof(struct pstack_record, kernel));
	leader = task->group_leader;
	r->magic = PSTACK_MAGIC;
	r->tgid = (__u32)task->tgid;
	r->tid = (__u32)task->pid;
	r->flags = task->flags & PF_KTHREAD ? PSTACK_KTHREAD : 0;
	r->syscall = -1;
	r->start_ns = BPF_CORE_READ(leader, start_boottime);
	r->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	BPF_CORE_READ_STR_INTO(&r->thread, task, comm);
	fill_state(r, (void *)task);
	fill_clock(r, (void *)task);
	fill_regs(r, task);
	fill_sock(r, task);
	fill_kernel(r, task);
	bpf_seq_write(meta->seq, r, sizeof(*r));
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pstack_socket);
} socket_scratch SEC(".maps");

/* What threads that wait for many descriptors wait for: all sockets that processes have. */
SEC("iter/task_file")
int pstack_file(struct bpf_iter__task_file *ctx)
{
	struct bpf_iter_meta *meta = ctx->meta;
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	__u32 zero = 0;
	struct pstack_socket *s = bpf_map_lookup_elem(&socket_scratch, &zero);
	struct sock *sk;

	if (!task || !file || !s || (only_tgid && (__u32)task->tgid != only_tgid))
		return 0;
	sk = sock_of_file(file);
	if (!sk)
		return 0;
	__builtin_memset(s, 0, sizeof(*s));
	s->tgid = (__u32)task->tgid;
	s->fd = ctx->fd;
	s->ino = BPF_CORE_READ(file, f_inode, i_ino);
	sock_end_fill(&s->sock, sk);
	bpf_seq_write(meta->seq, s, sizeof(*s));
	return 0;
}
