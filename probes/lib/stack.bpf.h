/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack: fills a stack_event and its frames for the current task. Shared by every family's program.
 * The event is built in a per-CPU scratch and only its used length is copied to the ring: a
 * reservation would have to be of the largest size, four times what most stacks need.
 *
 * A user stack whose tables are not there yet goes through the ring `late`, as registers and
 * memory. Where that ring is full the event is sent as it is, with that as its reason: nothing is
 * lost by it but the callers.
 */
#ifndef SONDE_PROBES_STACK_BPF_H
#define SONDE_PROBES_STACK_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/inflight.bpf.h"
#include "probes/lib/stack.h"
#include "probes/lib/unwind.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 * 1024 * 1024); /* the loader sets it by the number of CPUs */
} late SEC(".maps");

/* The record is made here: what is used of it is a third of its size, and the ring holds three
 * times as many. */
struct late_room {
	__u64 words[(__builtin_offsetof(struct stack_late, stack) + STACK_LATE_BYTES) /
		    8]; /* of a struct stack_late */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct late_room);
} late_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_more);
} late_more SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACK_ERLANGS);
	__type(key, __u64);
	__type(value, struct stack_erlang);
} erlang SEC(".maps");

#define STACK_LATE_BEYOND 64 /* bytes above the outermost frame's stack pointer: multiples of 8 */
/* the loader is woken above this: a crowd of new processes does not wait for its timer */
#define LATE_WAKE (512 * 1024)

/* Kernel frames asked for: min(STACK_KERNEL_MAX, kernel.perf_event_max_stack), set before load. */
const volatile __u32 stack_depth = STACK_KERNEL_MAX;
/* A loader reads `late`. */
const volatile bool stack_late_read = true;

static __always_inline bool stack_tagged(__u64 now)
{
	__u32 zero = 0;
	struct tables_state *state = bpf_map_lookup_elem(&tables_state, &zero);

	return state && now < state->inflight_ns + TABLES_INFLIGHT_NS;
}

/* The thread's number for inflight.bpf.h; 0: unknown. A separate function: older kernels give
 * little stack. */
static __noinline __u64 stack_serves(__u64 now)
{
	return stack_tagged(now) ? inflight_who() : 0;
}

/* The request that `who` serves now; 0: unknown. */
static __noinline __u64 stack_tag(__u64 who, __u64 now)
{
	return who && stack_tagged(now) ? inflight_get(who) : 0;
}

/* Who: identity, thread, cgroup, CPU, and no tag. `time_ns` is CLOCK_BOOTTIME. */
static __always_inline void stack_fill_task(struct stack_event *ev, struct task_struct *task,
					    __u64 time_ns)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	ev->time_ns = time_ns;
	ev->start_ns = BPF_CORE_READ(leader, start_boottime);
	ev->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	ev->cgroup_id = bpf_get_current_cgroup_id();
	ev->tables_ns = 0;
	ev->tag = 0;
	ev->tgid = pid_tgid >> 32;
	ev->tid = (__u32)pid_tgid;
	ev->cpu = bpf_get_smp_processor_id();
	ev->flags = BPF_CORE_READ(task, flags) & PF_KTHREAD ? STACK_F_KTHREAD : 0;
	ev->end = STACK_END_NONE;
	ev->n_user = ev->n_kernel = 0;
	bpf_get_current_comm(ev->thread, sizeof(ev->thread));
}

#ifdef UNWIND_REMEMBERS
#include "probes/lib/kstack.bpf.h"

struct { /* next to `scratch`: an element of such a map has 32 KB at most */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kstack);
} kstacks SEC(".maps");

/* A frame of the walk that the per-CPU state holds (kstack.bpf.h). 0: it is over. */
__noinline int stack_next_kernel(__u32 i)
{
	__u32 zero = 0;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct kstack *k = bpf_map_lookup_elem(&kstacks, &zero);

	if (!s || !k)
		return 0;
	s->frames[i & STACK_KERNEL_MAX] = k->ip;
	k->how = kstack_up(k);
	return k->how == KSTACK_MORE;
}

/* false: bpf_get_stack must be used. */
static __always_inline bool stack_walk_kernel(struct stack_scratch *s, const struct arch_regs *regs)
{
	__u32 zero = 0, n = 0;
	struct kstack *k;
	int more = 1;

	if (!kstack_possible() || !kstack_tables.count)
		return false;
	k = bpf_map_lookup_elem(&kstacks, &zero);
	if (!k)
		return false;
	kstack_begin(k, regs);
	for (int i = 0; i < STACK_KERNEL_MAX && more && n < stack_depth; i++) {
		more = stack_next_kernel(i);
		n++;
	}
	s->ev.n_kernel = n;
	if (n >= stack_depth)
		s->ev.flags |= STACK_F_TRUNCATED;
	return k->how != KSTACK_OTHERWISE;
}
#else
static __always_inline bool stack_walk_kernel(struct stack_scratch *s, const struct arch_regs *regs)
{
	(void)s;
	(void)regs;
	return false;
}
#endif

static __always_inline void stack_fill_kernel(struct stack_scratch *s, void *ctx,
					      const struct arch_perf_event_data *perf)
{
	struct stack_event *ev = &s->ev;
	__u32 n = 0;
	long got;

	if (perf && stack_walk_kernel(s, &perf->regs))
		return;
	ev->flags &= ~STACK_F_TRUNCATED;
	got = bpf_get_stack(ctx, s->frames, STACK_KERNEL_MAX * sizeof(s->frames[0]), 0);
	if (got < 0)
		ev->flags |= STACK_F_KERNEL_FAULT;
	else
		n = (__u64)got / sizeof(s->frames[0]);
	if (n > STACK_KERNEL_MAX)
		n = STACK_KERNEL_MAX;
	if (n >= stack_depth)
		ev->flags |= STACK_F_TRUNCATED;
	ev->n_kernel = (__u16)n;
}

/* The kernel's own walk by frame pointers: if no tables are published. */
static __always_inline void stack_fill_pointers(struct stack_scratch *s, void *ctx)
{
	__u32 n = 0, at = s->ev.n_kernel;
	long got;

	if (at > STACK_KERNEL_MAX)
		at = STACK_KERNEL_MAX;
	got = bpf_get_stack(ctx, &s->frames[at], STACK_KERNEL_MAX * sizeof(s->frames[0]),
			    BPF_F_USER_STACK);
	if (got > 0)
		n = (__u64)got / sizeof(s->frames[0]);
	s->ev.n_user = (__u16)n;
	s->ev.end = n ? STACK_END_NO_PROCESS : STACK_END_STACK_READ;
	if (n && s->unwind.exact)
		s->frames[at] |= FRAME_EXACT;
}

/* Memory from the stack pointer on, to page ends, as far as there is any, or to `until`. */
static __always_inline __u32 stack_copy(__u8 *to, __u64 from, __u64 until)
{
	__u32 done = 0;

	for (int i = 0; i < STACK_LATE_PAGES + 1; i++) {
		__u64 part = 4096 - ((from + done) & 4095);

		if (from + done + part > until)
			part = until - from - done;
		if (done >= STACK_LATE_PAGES * 4096 || !part)
			break;
		asm volatile(""
			     : "+r"(part)); /* else both comparisons are one, of another number than
					       is used: 5.10 */
		if (part > 4096)
			break;
		if (bpf_probe_read_user(to + done, part, (const void *)(from + done)))
			break;
		done += part;
	}
	return done;
}

/* A part of a deep stack beyond its record: from this many bytes above RSP on. Returns the size; 0:
 * no memory, or no room. A separate function, as the next. */
__noinline int stack_more_send(__u32 from)
{
	__u32 zero = 0, done = 0;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct stack_more *m = bpf_map_lookup_elem(&late_more, &zero);

	if (!s || !m)
		return 0;
	for (; done < STACK_MORE_BYTES; done += 4096)
		if (bpf_probe_read_user(m->stack + done, 4096,
					(const void *)(s->unwind.regs[ROW_REG_RSP] + from + done)))
			break;
	m->ev = s->ev;
	m->ev.flags = STACK_F_MORE;
	m->from = from;
	m->size = done;
	if (!done ||
	    bpf_ringbuf_output(&late, m, __builtin_offsetof(struct stack_more, stack) + done,
			       BPF_RB_NO_WAKEUP))
		return 0;
	return done;
}

/* Where the Erlang stack of the current thread begins, as its process says; 0: it runs none. */
static __always_inline __u64 stack_erlang_top(void)
{
	__u64 who = bpf_get_current_pid_tgid(), process = 0, top = 0;
	const struct stack_erlang *e = bpf_map_lookup_elem(&erlang, &who);

	if (!e || bpf_probe_read_user(&process, sizeof(process), (const void *)e->running) ||
	    !process || bpf_probe_read_user(&top, sizeof(top), (const void *)(process + e->top)))
		return 0;
	return top;
}

/* Memory at `at` (enum stack_aside says what it is). A separate function. */
__noinline int stack_aside_send(__u32 which, __u64 at)
{
	__u32 zero = 0;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct stack_more *m = bpf_map_lookup_elem(&late_more, &zero);
	__u64 size = STACK_ASIDE_BYTES;

	if (!s || !m || !at || (at & 7))
		return 0;
	if (bpf_probe_read_user(m->stack + 8, STACK_ASIDE_BYTES, (const void *)at)) {
		size = (STACK_ASIDE_BYTES - (at & (STACK_ASIDE_BYTES - 1))) &
		       (STACK_ASIDE_BYTES - 1);
		asm volatile("" : "+r"(size));
		if (!size || size > STACK_ASIDE_BYTES ||
		    bpf_probe_read_user(m->stack + 8, size, (const void *)at))
			return 0;
	}
	*(__u64 *)m->stack = at;
	m->ev = s->ev;
	m->ev.flags = STACK_F_MORE;
	m->from = STACK_MORE_ASIDE | which;
	m->size = size + 8;
	bpf_ringbuf_output(&late, m, __builtin_offsetof(struct stack_more, stack) + 8 + size,
			   BPF_RB_NO_WAKEUP);
	return 0;
}

/* The thread runs C code that Erlang called. */
static __always_inline void stack_send_erlang(const struct stack_scratch *s)
{
	__u64 top = stack_erlang_top(), bp = s->unwind.own_bp[0];

	if (!top)
		return;
	stack_aside_send(STACK_ASIDE_STORED, top);
	if (bp != top)
		stack_aside_send(STACK_ASIDE_RBP, bp);
}

/* The objects of V8's frames on the stack: their functions, which the collector moves. A separate
 * function: 5.10 verifies it once. */
__noinline int stack_objects(__u32 unused)
{
	__u32 zero = 0, n;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct stack_late *l = (struct stack_late *)bpf_map_lookup_elem(&late_scratch, &zero);

	asm volatile("" ::"r"(unused)); /* as in unwind_next */
	if (!s || !l)
		return 0;
	n = s->unwind.own_n;
	for (__u32 i = 0; i < STACK_OBJECTS; i++) {
		struct stack_object *o = &l->objects[i];
		__u64 object = 0;

		o->at = 0;
		if (i >= n ||
		    bpf_probe_read_user(&object, sizeof(object),
					(const void *)(s->unwind.own_bp[i] - 16)) ||
		    (object & 3) != 1)
			continue;
		if (!bpf_probe_read_user(o->word, sizeof(o->word), (const void *)(object - 1)))
			o->at = object - 1;
	}
	return 0;
}

static __always_inline void stack_send_more(__u32 from)
{
	for (int i = 0; i < STACK_MORE_PARTS; i++) {
		int got = stack_more_send(from);

		if (got != STACK_MORE_BYTES)
			break;
		from += STACK_MORE_BYTES;
	}
}

/* The registers at the start of the walk, and memory from there to `until`. A separate function, of
 * scalars only. 0: sent. */
__noinline int stack_late_send(__u32 why, __u32 own, __u64 until)
{
	__u32 zero = 0, size;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct stack_late *l = (struct stack_late *)bpf_map_lookup_elem(&late_scratch, &zero);
	__u64 flags = bpf_ringbuf_query(&late, BPF_RB_AVAIL_DATA) > LATE_WAKE ?
			      BPF_RB_FORCE_WAKEUP :
			      BPF_RB_NO_WAKEUP;

	if (!s || !l)
		return -1;
	l->ev = s->ev;
	l->ev.n_user = 0;
	l->ev.end = (__u16)why;
	l->ev.flags |= STACK_F_LATE;
	__builtin_memcpy(l->kernel, s->frames, sizeof(l->kernel));
	__builtin_memcpy(l->regs, s->unwind.regs, sizeof(l->regs));
	l->pc = s->unwind.pc;
	l->exact = s->unwind.exact;
	l->fs_base = s->unwind.fs_base;
	if (bpf_probe_read_user(l->code, sizeof(l->code), (const void *)l->pc))
		__builtin_memset(l->code, 0, sizeof(l->code));
	stack_objects(0);
	size = stack_copy(l->stack, l->regs[ROW_REG_RSP], until);
	if (size > STACK_LATE_BYTES)
		size = STACK_LATE_BYTES;
	l->size = size;
	if (own && size >= STACK_LATE_PAGES * 4096 && l->regs[ROW_REG_RSP] + size < until)
		stack_send_more(size);
	if (own && s->unwind.own_called)
		stack_send_erlang(s);
	return bpf_ringbuf_output(&late, l, __builtin_offsetof(struct stack_late, stack) + size,
				  flags) ?
		       -1 :
		       0;
}

/* Leave it to user space. `own`: it knows the process's own code. false: there is no room. */
static __always_inline bool stack_send_late(struct stack_scratch *s, struct task_struct *task,
					    const struct arch_perf_event_data *ctx, bool own)
{
	__u16 why = s->unwind.own_n ? STACK_END_UNSUPPORTED : s->ev.end;
	__u64 until = s->unwind.own_n && s->ev.end == STACK_END_ROOT ?
			      s->unwind.sp + STACK_LATE_BEYOND :
			      ~0ull; /* the walk went to its end */

	unwind_begin(s, task, ctx); /* the walk may have passed a signal's frame */
	return !stack_late_send(why, own, until);
}

/* Is it worth waiting for tables? The leaf in a file mapped just now lies in no known mapping. A
 * caller in no known mapping is more likely wrong, unless the process has just begun or changed its
 * mappings: the dynamic linker calls code that it has mapped since, and main's caller is in a C
 * library that was mapped after the program. */
static __always_inline bool stack_is_early(const struct stack_event *ev)
{
	if (ev->end != STACK_END_NO_MAPPING)
		return ev->end == STACK_END_NO_PROCESS || ev->end == STACK_END_PENDING;
	return ev->n_user == 1 || ev->time_ns < ev->start_ns + TABLES_YOUNG_NS ||
	       ev->time_ns < ev->tables_ns + TABLES_YOUNG_NS;
}

/* sonde-maps is to publish what it has of the process now, rather than at its next tick. */
static __always_inline void stack_want(const struct stack_event *ev)
{
	__u32 zero = 0;
	struct tables_state *state = bpf_map_lookup_elem(&tables_state, &zero);
	__u64 tgid = ev->tgid,
	      gap = ev->end == STACK_END_PENDING ? TABLES_WANTED_ROWS_NS : TABLES_WANTED_NS;

	if (ev->time_ns > ev->start_ns + TABLES_YOUNG_NS) {
		if (ev->end != STACK_END_NO_MAPPING)
			return;
		gap = TABLES_WANTED_OLD_NS;
	}
	if (!state || ev->time_ns < state->wanted_ns + gap)
		return;
	state->wanted_ns = ev->time_ns;
	bpf_ringbuf_output(&wanted, &tgid, sizeof(tgid), BPF_RB_FORCE_WAKEUP);
}

/* Where: kernel frames, then user frames. `ctx` is what the program was called with; `perf` the
 * same where it is a perf event's, else NULL. true: it went through `late`, and there is nothing to
 * send. */
static __always_inline bool stack_fill(struct stack_scratch *s, struct task_struct *task, void *ctx,
				       const struct arch_perf_event_data *perf)
{
	enum unwind_known known;
	bool own, full = false;

	if (!perf || !arch_user(&perf->regs)) /* user code has no kernel stack, and the failing call
						 takes 5 us */
		stack_fill_kernel(s, ctx, perf);
	if (s->ev.flags & STACK_F_KTHREAD)
		return false;
	if (!unwind_begin(s, task, perf)) {
		s->ev.flags |= STACK_F_USER_FAULT;
		return false;
	}
	known = unwind_tables(s);
	if (known == UNWIND_PROCESS) {
		unwind_user(s);
		if (s->ev.end == STACK_END_STACK_READ && (BPF_CORE_READ(task, flags) & PF_EXITING))
			s->ev.end = STACK_END_NONE;
	} else {
		s->ev.end = STACK_END_NO_PROCESS;
	}
	own = known == UNWIND_PROCESS && (s->unwind.own_code == UNWIND_OWN_MET || s->unwind.own_n);
	if (own || (known != UNWIND_NOBODY && stack_is_early(&s->ev))) {
		if (!own)
			stack_want(&s->ev);
		if (stack_late_read && stack_send_late(s, task, perf, own))
			return true;
		full = stack_late_read;
	}
	if (known != UNWIND_PROCESS)
		stack_fill_pointers(s, ctx);
	if (full && s->ev.end != STACK_END_ROOT)
		s->ev.end = STACK_END_NO_ROOM;
	return false;
}

/* Bytes of the event that are used. */
static __always_inline __u32 stack_event_size(const struct stack_scratch *s)
{
	__u32 n = (__u32)s->ev.n_kernel + s->ev.n_user;

	if (n > STACK_KERNEL_MAX + STACK_USER_MAX)
		n = STACK_KERNEL_MAX + STACK_USER_MAX;
	return sizeof(s->ev) + n * sizeof(s->frames[0]);
}

#endif
