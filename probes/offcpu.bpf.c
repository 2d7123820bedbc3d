/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu: what threads do when they do not run. Three of the scheduler's tracepoints move each
 * thread between states:
 *
 *   running  --sched_switch, asleep-->  blocked
 *   blocked  --sched_waking-->  ready
 *   ready    --sched_switch-->  running
 *   running  --sched_switch, runnable-->  ready (preempted, or it yielded)
 *
 * and each stretch, when it ends, is added to the sums of its thread (offcpu.h). That is exact, and
 * costs a few look-ups. Some waits are also drawn, in proportion to how long they were
 * (offcpu_draw.h): of these the stack is taken, and what was waited on. At sched_switch the stack
 * of the thread that comes cannot be read. Since 6.15 there is a tracepoint behind it,
 * sched_exit_tp, where that thread is the current one: there the wait's stack goes through the
 * ring, and right after it its length. Older kernels have none: stacks are taken as threads leave,
 * when it is not known how long they will wait (limit_weight), and the length follows when the wait
 * is over. Of some wake-ups, drawn by the length of the wait that they end, a stack of the waker is
 * taken: these go through the ring one by one, all others into sums.
 *
 * 1. The state at sched_switch is the tracepoint's argument if it has one (5.18), else the task's,
 *    which a waker may have changed by then: such a wait of no length counts as ready.
 * 2. A waker can be faster than the tracepoint of the thread that goes to sleep: it then finds it
 *    running, and leaves a hint. A thread that was blocked and comes back with only a hint was
 *    ready all the time. The same is true of one that is woken while its stack is taken as it
 * leaves: until that is done it has the CPU. One that comes back with neither was woken without a
 * tracepoint: it was blocked until then. (A thread that stays because of a signal is not blocked:
 * its state says so.)
 * 3. Nothing counts before begin_ns is set, after the attachment. Existing threads are read once,
 *    with their state: waits that began before are marked, and count from begin_ns on.
 * 4. An entry of `threads` ends with the thread's last switch (TASK_DEAD). Its key is the task's
 *    address: an exec that exchanges thread ids does not confuse it, and an address is not reused
 *    before that switch.
 * 5. The last OFFCPU_STINTS stints of each CPU record which threads had it. A thread that was ready
 *    for OFFCPU_CULPRIT_NS or longer blames those threads by their share of its time, or (with
 *    culprit_ns, and if its time goes back further than OFFCPU_WALKED stints) by samples of who had
 *    the CPU in that time. If threads change often, stints go back for milliseconds only: those
 *    that span a multiple of 4.2 ms are kept longer, and represent the moments after that multiple.
 *    What they do not explain (it waited at another CPU, or for longer) is unknown.
 *
 * 6. Some kernels leave switches out of their traces (seen in guests: one in 500). A thread
 *    that leaves without having come came right after the last switch seen on its CPU, or its
 *    wake-up; one that comes without having left waited all the time since, for an unknown reason.
 *
 * 7. sched_exit_tp runs with interrupts on, its program with preemption off, and a wake-up may come
 *    in between: while a wait is to
 *    be reported (offcpu_cpu.drawn) no stacks of wakers are taken on that CPU, which would use the
 *    same scratch. A thread that runs for the first time does not come by there; of those the wait
 *    is not drawn, as that of any whose begin was not seen. Should another one not come by, its
 * wait is reported at the next switch, without a stack.
 *
 * 8. What finds no room is not lost: stretches of a thread without a number or a sum are added by
 *    class (`rests`), and while the ring is nearly full no stacks are taken, and waits begin
 *    without one, as where the limit is 0. A thread that `threads` has no room for is not followed,
 *    which is counted, as are pairs of threads: struct offcpu_tally.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/offcpu.h"
#include "probes/offcpu_load.bpf.h"
#include "probes/offcpu_state.bpf.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/stack.bpf.h"
#include "probes/offcpu_class.bpf.h"
#include "probes/offcpu_culprit.bpf.h"
#include "probes/offcpu_object.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The kernel has sched_exit_tp: stacks are taken when threads go on. */
const volatile bool at_end = false;

#define OFFCPU_CULPRIT_NS 20000
#define OFFCPU_TAGGED_NS  250000 /* the least wait of a request that has an end without a stack */
#define COST_EVERY        64 /* of switches and wake-ups without a stack, one in this many is timed */

/* ---- threads ---- */

/* Who it is from now on. `slot`: of who_scratch. */
static __noinline void thread_identify(struct offcpu_thread *t, struct task_struct *task, __u64 now,
				       __u32 slot)
{
	struct offcpu_scratch *s = bpf_map_lookup_elem(&who_scratch, &slot);
	struct task_struct *leader = LOAD(task, group_leader);
	struct offcpu_tally *tl = tally_get();
	struct offcpu_who *w;

	if (!s)
		return;
	w = &s->who;
	w->task = (__u64)task;
	w->start_ns = LOAD(leader, start_boottime);
	w->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	w->tgid = LOAD(task, tgid);
	w->tid = LOAD(task, pid);
	w->exec_id = (__u32)LOAD(leader, self_exec_id);
	w->flags = LOAD(task, flags) & PF_KTHREAD ? STACK_F_KTHREAD : 0;
	BPF_CORE_READ_INTO(&w->comm, task, comm);
	t->id = (__u64)w->tid << 40 | (now >> 16 & ((1ull << 40) - 1));
	t->start_ns = w->start_ns;
	t->tgid = w->tgid;
	t->tid = w->tid;
	t->exec_id = w->exec_id;
	__builtin_memcpy(t->comm, w->comm, sizeof(t->comm));
	t->in_scope = task_in_scope(task);
	__builtin_memset(t->sums, 0, sizeof(t->sums));
	t->woken_by.what = 0;
	if (tl)
		fill_tell(++tl->named, fill_wake);
	if (!bpf_map_update_elem(&who, &t->id, w, BPF_ANY))
		return;
	t->id = 0;
	t->tried = reading;
	if (tl)
		tl->unnamed++;
}

/* It has no number, and what was read since may have made room. */
static __always_inline bool thread_nameless(const struct offcpu_thread *t)
{
	return !t->id && t->tried != reading;
}

static __noinline bool thread_renamed(const struct offcpu_thread *t, struct task_struct *task)
{
	const volatile __u64 *comm = (const volatile __u64 *)&task->comm;

	if (plain) {
		__u64 now[2] = {};

		bpf_core_read(now, sizeof(now), &task->comm);
		return now[0] != t->comm[0] || now[1] != t->comm[1];
	}
	return comm[0] != t->comm[0] || comm[1] != t->comm[1];
}

/* How a thread that was not known is taken in: its state, class and flags in one number. WOKEN:
 * right now. */
#define LIKE(state_, class_, flags_) \
	((__u32)(state_) | (__u32)(class_) << 8 | (__u32)(flags_) << 16)
#define LIKE_WOKEN (1u << 24)
#define LIKE_SEED  (1u << 25) /* by the reading at the start */

/* `how`: BPF_ANY drops the previous value of the address. */
static __noinline struct offcpu_thread *thread_new(struct task_struct *task, __u64 now, __u64 since,
						   __u32 like, __u64 how)
{
	__u32 slot = like & LIKE_SEED ? 1 : 0;
	struct offcpu_scratch *s = bpf_map_lookup_elem(&who_scratch, &slot);
	__u64 key = (__u64)task;
	struct offcpu_thread *t;

	if (!s)
		return NULL;
	__builtin_memset(&s->thread, 0, sizeof(s->thread));
	s->thread.since_ns = since;
	s->thread.woken_ns = like & LIKE_WOKEN ? now : 0;
	s->thread.state = (__u8)like;
	s->thread.class = (__u8)(like >> 8);
	s->thread.flags = (__u8)(like >> 16);
	thread_identify(&s->thread, task, now, slot);
	if (!bpf_map_update_elem(&threads, &key, &s->thread, how))
		return bpf_map_lookup_elem(&threads, &key);
	t = bpf_map_lookup_elem(
		&threads, &key); /* another CPU may have taken it in meanwhile: nothing is lost */
	if (!t || t->id != s->thread.id) /* within 65 us, the same number was given */
		bpf_map_delete_elem(&who, &s->thread.id);
	if (!t)
		tally_lost();
	return t;
}

static __always_inline struct offcpu_thread *thread_get(struct task_struct *task)
{
	__u64 key = (__u64)task;

	return bpf_map_lookup_elem(&threads, &key);
}

/* ---- stacks ---- */

/* The loader looks once a second, and is woken where that may be too late. 0: sent. */
static __always_inline long record_send(void *record, __u64 size)
{
	__u64 full = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	__u32 zero = 0;
	struct offcpu_cpu *cpu;

	if (full > RING_CROWDED) {
		cpu = bpf_map_lookup_elem(&cpus, &zero);
		if (cpu)
			cpu->crowded = 1;
	}
	return bpf_ringbuf_output(&events, record, size,
				  full > ring_bytes / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* The stack was walked just now: is the futex a lock of its interpreter? */
static __noinline void object_lock(struct offcpu_thread *t)
{
	if (script_is_lock(t->on.value))
		t->on.kind = OFFCPU_ON_GIL;
}

/* Takes the stack of the wait of `task`, which is the current thread, and sends it. false: it found
 * no room. */
static __always_inline bool stack_take(struct offcpu_thread *t, struct stack_scratch *s,
				       struct task_struct *task, bool blocked, __u64 now, void *ctx,
				       struct offcpu_tally *tl)
{
	t->out_ns = now;
	tl->stacks++;
	t->on.kind = OFFCPU_ON_NOTHING;
	if (blocked)
		object_find(&t->on, task, t->class);
	stack_fill_task(&s->ev, task, now);
	t->serves = stack_serves(now);
	if (stack_fill(s, task, ctx, NULL))
		tl->late++;
	else if (record_send(&s->ev, stack_event_size(s)))
		return false;
	if (runtimes_on && t->on.kind == OFFCPU_ON_FUTEX)
		object_lock(t);
	return true;
}

static __always_inline __u64 amounts_of(__u32 weight, bool blocked)
{
	return (__u64)weight * (blocked ? 2 : 1);
}

/* As the thread leaves: how many waits this one represents. A separate function: what it keeps is
 * not on the stack beneath the unwinder. */
static __noinline __u32 leave_weight(struct offcpu_thread *t, struct offcpu_cpu *cpu, __u64 now)
{
	__u32 weight = limit_weight(&t->limit, now, limit_thread);

	if (!weight)
		return 0;
	return weight * (t->slow ? limit_weight(&cpu->slow, now, limit_slow) :
				   limit_weight(&cpu->limit, now, limit_cpu));
}

/* true: this switch is one with a stack. */
static __always_inline bool stack_leave(struct offcpu_thread *t, struct offcpu_cpu *cpu,
					struct task_struct *prev, __u64 now, void *ctx,
					struct offcpu_tally *tl)
{
	struct stack_scratch *s;
	__u32 zero = 0;

	t->weight = leave_weight(t, cpu, now);
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s || !t->weight)
		return false;
	if (!stack_take(t, s, prev, t->state == OFFCPU_S_BLOCKED, now, ctx, tl)) {
		tl->stack_seen += amounts_of(t->weight, t->state == OFFCPU_S_BLOCKED);
		tl->stack_lost += amounts_of(t->weight, t->state == OFFCPU_S_BLOCKED);
		t->weight = 0;
	}
	return true;
}

/*
 * As the wait ends, not as it began: it was idle if another thread has answered meanwhile. Here,
 * next to stack_end: below it there is no stack left. A wait without a stack that served a request
 * has an end, too: it represents no others, and counts for that request alone. (Of a goroutine
 * nothing is known then.) 0: no end is sent.
 */
static __noinline int tag_note(struct offcpu_thread *t, __u64 now)
{
	if (!t || (!t->weight && now < t->since_ns + OFFCPU_TAGGED_NS))
		return 0;
	if (!t->weight) {
		t->serves = t->tid;
		t->out_ns = t->since_ns;
		t->on.kind = OFFCPU_ON_NOTHING;
	}
	t->tag = stack_tag(t->serves, now);
	return t->weight || t->tag;
}

/* Where an end is put together: there is no room on the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_end);
} ends SEC(".maps");

static __noinline void stack_end(const struct offcpu_thread *t, const struct offcpu_drawn *d,
				 struct offcpu_tally *tl)
{
	__u32 zero = 0;
	struct offcpu_end *e = bpf_map_lookup_elem(&ends, &zero);

	if (!e)
		return;
	__builtin_memset(e, 0, sizeof(*e));
	e->ev.time_ns = d->ended_ns;
	e->ev.start_ns = t->start_ns;
	e->ev.tgid = t->tgid;
	e->ev.tid = t->tid;
	e->ev.exec_id = t->exec_id;
	e->ev.end = OFFCPU_RECORD_END;
	e->ev.tag = t->tag;
	__builtin_memcpy(e->ev.thread, t->comm, sizeof(e->ev.thread));
	e->out_ns = t->out_ns;
	e->blocked_ns = d->blocked_ns;
	e->ready_ns = d->ready_ns;
	e->weight = d->weight;
	e->class = t->class;
	e->blocked = (__u8)d->blocked;
	e->waker = t->waker;
	e->on = t->on;
	tl->stack_seen += amounts_of(d->weight, d->blocked);
	if (record_send(e, sizeof(*e)))
		tl->stack_lost += amounts_of(d->weight, d->blocked);
}

/* ---- waits that are drawn ---- */

/* Whose end has no stack, since the thread did not come by sched_exit_tp. */
static __noinline int drawn_flush(struct offcpu_cpu *cpu, struct offcpu_tally *tl)
{
	struct offcpu_thread *t = cpu ? bpf_map_lookup_elem(&threads, &cpu->drawn.task) : NULL;

	if (!cpu || !tl)
		return 0;
	if (t) {
		t->tag = 0;
		t->out_ns = cpu->drawn.ended_ns;
		t->on.kind = OFFCPU_ON_NOTHING;
		stack_end(t, &cpu->drawn, tl);
	} else {
		tl->stack_seen += amounts_of(cpu->drawn.weight, cpu->drawn.blocked);
		tl->stack_lost += amounts_of(cpu->drawn.weight, cpu->drawn.blocked);
	}
	cpu->drawn.task = 0;
	return 0;
}

/* The wait of `t`, ready since `from`, ends: is it drawn? */
static __noinline int wait_draw(struct offcpu_thread *t, struct offcpu_cpu *cpu, __u64 task,
				__u64 from, __u64 now)
{
	__u64 since = t->since_ns, ns = now - since;
	bool blocked = t->state == OFFCPU_S_BLOCKED;
	__u32 weight = 0, slot = t->sums[blocked ? OFFCPU_SUM_BLOCKED : OFFCPU_SUM_READY].slot;
	struct offcpu_sum *sum = bpf_map_lookup_elem(&sums, &slot);

	if (sum && t->left && !(t->flags & OFFCPU_F_STACKLESS))
		weight = blocked ? draw_of(&cpu->blocked, &sum->stratum, limit_cpu, true, now, ns) :
				   draw_of(&cpu->ready, &sum->stratum, limit_ready, false, now, ns);
	if (!weight && (ns < OFFCPU_TAGGED_NS || !stack_tagged(now)))
		return 0;
	cpu->drawn.task = task;
	cpu->drawn.ended_ns = now;
	cpu->drawn.blocked_ns = from - since;
	cpu->drawn.ready_ns = now - from;
	cpu->drawn.weight = weight;
	cpu->drawn.blocked = blocked;
	return 0;
}

/* As the thread goes on. */
static __always_inline void drawn_send(struct offcpu_thread *t, struct offcpu_cpu *cpu,
				       struct task_struct *task, void *ctx, struct offcpu_tally *tl)
{
	const struct offcpu_drawn *d = &cpu->drawn;
	struct stack_scratch *s;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return;
	if (!d->weight) {
		t->out_ns = d->ended_ns;
		t->on.kind = OFFCPU_ON_NOTHING;
		t->serves = stack_serves(d->ended_ns);
	} else if (!stack_take(t, s, task, d->blocked, d->ended_ns, ctx, tl)) {
		tl->stack_seen += amounts_of(d->weight, d->blocked);
		tl->stack_lost += amounts_of(d->weight, d->blocked);
		return;
	}
	t->tag = stack_tag(t->serves, d->ended_ns);
	if (d->weight || t->tag)
		stack_end(t, d, tl);
}

/* ---- sched_switch ---- */

/* A separate function: in a larger one clang keeps values of the macros on the stack, and 5.10
 * refuses to read them. */
static __noinline bool waits_for_io(struct task_struct *task)
{
	if (plain)
		return BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
	return BPF_CORE_READ_BITFIELD(task, in_iowait);
}

static __noinline void state_set(struct offcpu_thread *t, struct task_struct *prev, bool preempt,
				 long state)
{
	struct arch_entry in;
	bool known = !(LOAD(prev, flags) & PF_KTHREAD) && entry_read(prev, &in);
	bool iowait = waits_for_io(prev);
	__u8 bare = limit_cpu ? 0 : OFFCPU_F_STACKLESS;

	if (state) {
		t->class = class_of(prev, state, known ? &in : NULL, iowait, &t->call_class);
		t->flags = bare | (state & TASK_UNINTERRUPTIBLE ? OFFCPU_F_UNINTERRUPTIBLE : 0) |
			   (iowait ? OFFCPU_F_IOWAIT : 0);
		t->state = OFFCPU_S_BLOCKED;
	} else {
		t->class = !preempt && known && in.call == syscall_yield ? OFFCPU_YIELDED :
									   OFFCPU_PREEMPTED;
		t->flags = bare;
		t->state = OFFCPU_S_READY;
	}
}

/* Its id. */
static __noinline __u64 thread_came(struct offcpu_thread *t, struct task_struct *next, __u64 now,
				    struct offcpu_cpu *cpu, struct offcpu_tally *tl)
{
	__u64 since, from;
	bool blocked;

	/* its leaving was not seen: it was about to when it was read at the start */
	if (t->state == OFFCPU_S_RUNNING) {
		t->state = OFFCPU_S_BLOCKED;
		t->class = OFFCPU_OTHER;
		t->woken_ns = now;
	}
	blocked = t->state == OFFCPU_S_BLOCKED;
	/* its wake-up was not seen: not every one is traced */
	if (blocked && !t->woken_ns && !t->hinted)
		t->woken_ns = now;
	since = t->since_ns;
	if (now < since)
		now = since;
	if (now < t->woken_ns)
		now = t->woken_ns;
	from = blocked && t->woken_ns > since ? t->woken_ns : since;
	t->slow =
		now - since >=
		OFFCPU_LONG_NS; /* here, and not behind the calls: with what they keep, four of them
				 * take 512 bytes of stack, all that kernels before 6.13 give */
	if (t->in_scope) {
		if (blocked)
			sum_add(t, OFFCPU_SUM_BLOCKED, t->class, t->flags, from - since);
		sum_add(t, OFFCPU_SUM_READY, blocked ? OFFCPU_WOKEN : t->class,
			t->flags & (from > since ? OFFCPU_F_STACKLESS :
						   OFFCPU_F_STACKLESS | OFFCPU_F_BEFORE),
			now - from);
		if (now - from >= OFFCPU_CULPRIT_NS)
			culprits_blame(cpu, t->id, from, now);
		if (at_end) {
			wait_draw(t, cpu, (__u64)next, from, now);
		} else if (tag_note(t, now)) {
			cpu->drawn.ended_ns = now;
			cpu->drawn.blocked_ns = from - since;
			cpu->drawn.ready_ns = now - from;
			cpu->drawn.weight = t->weight;
			cpu->drawn.blocked = blocked;
			stack_end(t, &cpu->drawn, tl);
		}
	}
	t->state = OFFCPU_S_RUNNING;
	t->flags = 0;
	t->left = 0;
	t->hinted = 0;
	t->weight = 0;
	t->woken_ns = 0;
	t->since_ns = now;
	return t->id;
}

/* It had this CPU until its stack had been taken: its wait begins then. Threads that wait for this
 * CPU's next action wait that much longer if a stack is taken, and would represent others without
 * one. */
static __noinline void ran_longer(struct offcpu_thread *t, __u64 until, struct offcpu_cpu *cpu)
{
	slot_extend(sum_slot(t, OFFCPU_SUM_RUNNING, OFFCPU_RUNNING, 0), until - t->since_ns);
	cpu->stint[(cpu->next - 1) & (OFFCPU_STINTS - 1)].to_ns = until;
	t->since_ns = until;
}

/* true: with a stack */
static __always_inline bool thread_left(struct task_struct *prev, bool preempt, long state,
					__u64 now, struct offcpu_cpu *cpu, void *ctx,
					struct offcpu_tally *tl)
{
	struct offcpu_thread *t = thread_get(prev);
	__u64 key = (__u64)prev;

	if (!t)
		t = thread_new(prev, now, begin_ns, LIKE(OFFCPU_S_RUNNING, 0, OFFCPU_F_BEFORE),
			       BPF_NOEXIST);
	if (!t)
		return false;
	if (t->state != OFFCPU_S_RUNNING) {
		/* its coming was not seen: it came after the last switch seen */
		thread_came(t, prev, cpu->last_ns > t->woken_ns ? cpu->last_ns : t->woken_ns, cpu,
			    tl);
		if (at_end && cpu->drawn.task)
			drawn_flush(cpu, tl);
	}
	if (t->in_scope)
		sum_add(t, OFFCPU_SUM_RUNNING, OFFCPU_RUNNING, t->flags & OFFCPU_F_BEFORE,
			now - t->since_ns);
	stint_add(cpu, t->id ?: OFFCPU_BY_UNKNOWN, t->since_ns, now);
	if (state & TASK_DEAD) {
		bpf_map_delete_elem(&threads, &key);
		return false;
	}
	if (thread_renamed(t, prev) || thread_nameless(t))
		thread_identify(t, prev, now, 0);
	t->weight = 0;
	t->woken_ns = 0;
	t->waker = 0; /* a waker may act as soon as its state is set */
	t->since_ns = now;
	t->left = 1;
	state_set(t, prev, preempt, state);
	if (ring_crowded(cpu))
		t->flags |= OFFCPU_F_STACKLESS;
	if (at_end || !t->in_scope || t->flags & OFFCPU_F_STACKLESS ||
	    !stack_leave(t, cpu, prev, now, ctx, tl))
		return false;
	ran_longer(t, bpf_ktime_get_boot_ns(), cpu);
	return true;
}

static __noinline void cost_add(struct offcpu_tally *tl, __u64 began, bool stack)
{
	__u64 ns;

	if (!stack && tl->switches % COST_EVERY)
		return;
	ns = bpf_ktime_get_boot_ns() - began;
	if (stack) {
		tl->stack_ns += ns;
		tl->stack_runs++;
	} else {
		tl->plain_ns += ns;
		tl->plain_runs++;
	}
	tl->slot[log2_of(ns) & (OFFCPU_TALLY_SLOTS - 1)]++;
}

static __always_inline int switched(bool preempt, struct task_struct *prev,
				    struct task_struct *next, long state, void *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct offcpu_tally *tl = tally_get();
	struct offcpu_thread *t;
	struct offcpu_cpu *cpu;
	bool stack = false;
	__u32 zero = 0;

	cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (!cpu || !tl || !begin_ns)
		return 0;
	if (preempt) /* it may have been about to sleep: it goes on with that when it is back */
		state = 0;
	tl->switches++;
	if (at_end && cpu->drawn.task) /* before its thread has another class, or is gone */
		drawn_flush(cpu, tl);
	cpu->began_ns = now; /* not on the stack, which the unwinder leaves little of */
	if (LOAD(prev, pid))
		stack = thread_left(prev, preempt, state, now, cpu, ctx, tl);
	else
		stint_add(cpu, OFFCPU_BY_IDLE, cpu->idle_ns ? cpu->idle_ns : begin_ns, now);
	if (stack)
		now = cpu->stint[(cpu->next - 1) & (OFFCPU_STINTS - 1)].to_ns;
	if (LOAD(next, pid)) {
		t = thread_get(next);
		if (!t) /* here: with what thread_came keeps, four calls take more than 512 bytes */
			t = thread_new(next, now, begin_ns,
				       LIKE(OFFCPU_S_BLOCKED, 0, OFFCPU_F_BEFORE) | LIKE_WOKEN,
				       BPF_NOEXIST);
		cpu->running = t ? thread_came(t, next, now, cpu, tl) : 0;
		cpu->idle_ns = 0;
	} else {
		cpu->running = 0;
		cpu->idle_ns = now;
	}
	cpu->task = (__u64)next;
	cpu->last_ns = now;
	cost_add(tl, cpu->began_ns, stack);
	return 0;
}

static __always_inline long state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ((struct task_struct___before_5_14 *)task, state);
}

/* One of these two is loaded. All that begin with tp_btf are given another type where that is
 * refused: see offcpu_load.bpf.h. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(offcpu_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	/* of one that stays because a signal came, most of these kernels tell what it had been
	 * about to wait in */
	return switched(preempt, prev, next, LOAD(prev, __state) ? prev_state : 0, ctx);
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(offcpu_switch_old, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return switched(preempt, prev, next, state_of(prev), ctx);
}

static __always_inline void came(unsigned long long *ctx, struct offcpu_cpu *cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct offcpu_tally *tl = tally_get();
	struct offcpu_thread *t;
	__u64 ns;

	if (cpu->drawn.task != (__u64)task)
		return;
	t = thread_get(task);
	cpu->began_ns = bpf_ktime_get_boot_ns();
	if (t && tl) {
		drawn_send(t, cpu, task, ctx, tl);
		ns = bpf_ktime_get_boot_ns() - cpu->began_ns;
		tl->stack_ns += ns;
		tl->slot[log2_of(ns) & (OFFCPU_TALLY_SLOTS - 1)]++;
	}
	cpu->drawn.task = 0;
}

/* The switch itself was not seen (point 6): the thread came just now. A separate function, for the
 * stack. */
static __noinline int came_unseen(struct task_struct *task, struct offcpu_cpu *cpu,
				  struct offcpu_tally *tl)
{
	struct offcpu_thread *t = thread_get(task);
	__u64 now = bpf_ktime_get_boot_ns();

	if (!cpu || !tl)
		return 0;
	if (cpu->idle_ns)
		stint_add(cpu, OFFCPU_BY_IDLE, cpu->idle_ns, now);
	cpu->idle_ns = LOAD(task, pid) ? 0 : now;
	cpu->task = (__u64)task;
	cpu->running = t ? t->id : 0;
	cpu->last_ns = now;
	if (t && t->state != OFFCPU_S_RUNNING)
		thread_came(t, task, now, cpu, tl);
	return 0;
}

/* Behind the switch: the thread that came is the current one. No arguments are used: they changed.
 * Kernels that have it also have what turns preemption off. */
SEC("?tp_btf/sched_exit_tp")
int offcpu_came(unsigned long long *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct offcpu_cpu *cpu;
	__u32 zero = 0;

	cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (!cpu || (!cpu->drawn.task && (cpu->task == (__u64)task || !cpu->last_ns)))
		return 0;
	bpf_preempt_disable();
	cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (cpu && !cpu->drawn.task)
		came_unseen(task, cpu, tally_get());
	if (cpu)
		came(ctx, cpu);
	bpf_preempt_enable();
	return 0;
}

/* ---- wake-ups ---- */

/*
 * Does the thread on this CPU do this, or an interrupt on top of it? Interrupts of kernel code, and
 * all soft ones, have their own stack; one of user code is on the thread's stack, which then has
 * not come by a system call. The arguments of a tracepoint are on the stack.
 */
static __always_inline __u32 context_of(struct task_struct *current, struct offcpu_cpu *cpu,
					void *ctx)
{
	struct arch_entry in;
	__u32 flags;
	bool known;
	__u64 stack;

	cpu->stack = (__u64)ctx; /* read back, it is a number */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		struct task_struct *task = bpf_get_current_task_btf();

		stack = (__u64)task->stack;
		flags = task->flags;
		known = arch_task_entry_read(task, &in);
	} else {
		stack = (__u64)BPF_CORE_READ(current, stack);
		flags = BPF_CORE_READ(current, flags);
		known = arch_entry_read(arch_current_entry(current), &in);
	}
	if (*(volatile __u64 *)&cpu->stack - stack >= ARCH_THREAD_SIZE)
		return OFFCPU_IN_INTERRUPT;
	return !(flags & PF_KTHREAD) && known && in.call < 0 ? OFFCPU_IN_INTERRUPT :
							       OFFCPU_IN_THREAD;
}

/* After the stack in `s`, of the thread that wakes `t`. A separate function: the unwinder leaves
 * little stack. 0: sent. */
static __noinline long wake_send(const struct offcpu_thread *t, const struct stack_scratch *s,
				 const struct offcpu_wake_key *key, __u64 slept_ns, __u32 flags)
{
	struct offcpu_wake w = {
		.ev = {.time_ns = s->ev.time_ns,
		       .start_ns = s->ev.start_ns,
		       .cgroup_id = s->ev.cgroup_id,
		       .tgid = s->ev.tgid,
		       .tid = s->ev.tid,
		       .exec_id = s->ev.exec_id,
		       .flags = s->ev.flags & STACK_F_KTHREAD,
		       .end = OFFCPU_RECORD_WAKE},
		.start_ns = t->start_ns,
		.slept_ns = slept_ns,
		.tgid = t->tgid,
		.tid = t->tid,
		.exec_id = t->exec_id,
		.class = key->class,
		.context = key->context,
		.flags = flags & PF_KTHREAD ? STACK_F_KTHREAD : 0,
	};

	__builtin_memcpy(w.ev.thread, s->ev.thread, sizeof(w.ev.thread));
	__builtin_memcpy(w.thread, t->comm, sizeof(w.thread));
	return record_send(&w, sizeof(w));
}

/* true: it has been told with a stack of who wakes (not of an idle CPU), and belongs in no sum.
 * Drawn by the wait's length: below the limit all are. */
static __always_inline bool wake_tell(const struct offcpu_thread *t, struct task_struct *p,
				      struct task_struct *current, struct offcpu_cpu *cpu,
				      const struct offcpu_wake_key *key, __u64 now, __u64 slept_ns,
				      void *ctx)
{
	__u32 zero = 0;
	struct stack_scratch *s;

	if (!key->waker || !limit_wake || cpu->drawn.task || cpu->crowded ||
	    !draw_of(&cpu->wakes, &cpu->waking, limit_wake, false, now, slept_ns))
		return false;
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return false;
	stack_fill_task(&s->ev, current, now);
	if (!stack_fill(s, current, ctx, NULL) && record_send(&s->ev, stack_event_size(s)))
		return false;
	return !wake_send(t, s, key, slept_ns, LOAD(p, flags));
}

/* The thread on this CPU; 0: none, or unknown. No look-up, unless its coming was not seen. */
static __always_inline __u64 running_id(const struct offcpu_cpu *cpu, struct task_struct *current)
{
	struct offcpu_thread *t;

	if (cpu->task == (__u64)current)
		return cpu->running;
	t = thread_get(current);
	return t ? t->id : 0;
}

static __always_inline void wake_cost(struct offcpu_cpu *cpu, __u64 began, bool stack)
{
	struct offcpu_tally *tl;

	if (!stack && cpu->woken++ % COST_EVERY)
		return;
	tl = tally_get();
	if (tl)
		tl->wake_ns += (bpf_ktime_get_boot_ns() - began) * (stack ? 1 : COST_EVERY);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(offcpu_waking, struct task_struct *p)
{
	struct offcpu_thread *t = thread_get(p);
	struct task_struct *current;
	struct offcpu_wake_key key = {};
	struct offcpu_cpu *cpu;
	__u32 zero = 0;
	__u64 now, since;
	bool stack;

	if (!t)
		return 0;
	if (t->state == OFFCPU_S_RUNNING)
		t->hinted = 1;
	if (t->state != OFFCPU_S_BLOCKED || t->woken_ns)
		return 0;
	now = bpf_ktime_get_boot_ns();
	t->woken_ns = now;
	if (!t->in_scope)
		return 0;
	since = *(volatile __u64 *)&t->since_ns; /* once: its stack may be being taken */
	cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (!cpu)
		return 0;
	current = (struct task_struct *)bpf_get_current_task();
	key.id = t->id;
	key.waker = running_id(cpu, current);
	key.class = t->class;
	key.context = context_of(current, cpu, ctx);
	t->waker = key.context == OFFCPU_IN_THREAD ? key.waker : 0;
	stack = wake_tell(t, p, current, cpu, &key, now, now > since ? now - since : 0, ctx);
	if (culprit_ns && key.context != OFFCPU_IN_THREAD)
		key.waker = 0; /* it had no part in it: a row for each whom an interrupt came upon
				  says little */
	if (!stack)
		wake_add(t, &key, now > since ? now - since : 0);
	wake_cost(cpu, now, stack);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(offcpu_wakeup_new, struct task_struct *p)
{
	__u64 now = bpf_ktime_get_boot_ns();

	if (begin_ns)
		thread_new(p, now, now, LIKE(OFFCPU_S_READY, OFFCPU_WOKEN, 0), BPF_ANY);
	return 0;
}

/* ---- processes ---- */

/* The new program's time is not the old one's. */
TRACEPOINT(sched_process_exec, offcpu_exec, struct task_struct *p)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct offcpu_thread *t = thread_get(p);
	struct offcpu_cpu *cpu;
	__u32 zero = 0;

	if (!t || t->state != OFFCPU_S_RUNNING)
		return 0;
	if (t->in_scope)
		sum_add(t, OFFCPU_SUM_RUNNING, OFFCPU_RUNNING, t->flags & OFFCPU_F_BEFORE,
			now - t->since_ns);
	t->flags = 0;
	t->since_ns = now;
	thread_identify(t, p, now, 0);
	cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (cpu && cpu->task == (__u64)p)
		cpu->running = t->id;
	return 0;
}

TRACEPOINT(sched_process_fork, offcpu_fork, struct task_struct *parent, struct task_struct *child)
{
	struct offcpu_tally *t;

	if (scope_fork(parent, child))
		return 0;
	t = tally_get();
	if (t)
		t->unfollowed++;
	return 0;
}

TRACEPOINT(sched_process_exit, offcpu_exit, struct task_struct *task)
{
	scope_exit(task);
	return 0;
}

/* ---- at the start ---- */

SEC("iter/task")
int offcpu_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct offcpu_thread like = {};
	long state;

	if (!task || thread_get(task))
		return 0; /* it has been seen since */
	state = state_of(task);
	if (state & TASK_DEAD)
		return 0;
	state_set(&like, task, true,
		  state); /* one that runs is ready, too: when it leaves, it came at once */
	thread_new(
		task, bpf_ktime_get_boot_ns(), begin_ns,
		LIKE(like.state, like.class, (like.flags & ~OFFCPU_F_STACKLESS) | OFFCPU_F_BEFORE) |
			LIKE_SEED,
		BPF_NOEXIST);
	return 0;
}
