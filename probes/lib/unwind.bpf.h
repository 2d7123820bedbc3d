/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind: the user part of a stack, in a BPF program, by the tables that sonde-maps publishes
 * (tables.h).
 *
 * The shape is the one that loads on every kernel from 5.10 on: a `for` loop over one step, which
 * is a global function (verified once, by itself) and takes scalars only; so are the two searches.
 * They find the state in a per-CPU map. Arrays have 8-byte elements, whose look-up the verifier
 * turns into a load.
 *
 * Without tables (nothing is published, or the process is unknown) the kernel's own walk by frame
 * pointers is used.
 */
#ifndef SONDE_PROBES_UNWIND_BPF_H
#define SONDE_PROBES_UNWIND_BPF_H

#include "probes/runtimes/runtime.bpf.h"
#include "probes/lib/unwind_state.bpf.h"

/* One native frame of the walk that the per-CPU state holds. 0: it is over; negative: there is no
 * room for more. `unused`: a global function without arguments does not load on 5.10. */
__noinline int unwind_next(__u32 unused)
{
	__u32 zero = 0;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	int more;

	asm volatile("" ::"r"(
		unused)); /* else the compiler does not pass it, and the verifier wants it */
	if (!s)
		return 0;
	if (s->unwind.script_deep ||
	    s->unwind.n >= (s->unwind.script == SCRIPT_OFF ? STACK_NATIVE_MAX : STACK_USER_MAX))
		return -1;
	if (runtimes_on && s->unwind.script_rest)
		return 0;
	script_native(&s->unwind);
	more = unwind_step(&s->unwind);
	return runtimes_on ? script_after(&s->unwind, more) : more;
}

/* One step of the walk: some frames of a script, or a native frame. A separate function with almost
 * nothing on its stack: the verifier follows the loop over it, and older kernels give a whole chain
 * of calls 512 bytes. */
__noinline int unwind_turn(__u32 i)
{
	__u32 zero = 0;
	struct stack_scratch *s;

	if (runtimes_on) {
		s = bpf_map_lookup_elem(&scratch, &zero);
		if (s && script_is_next(&s->unwind) && script_step(&s->unwind, i))
			return 1;
	}
	return unwind_next(i);
}

enum unwind_known { UNWIND_NOBODY /* publishes */, UNWIND_UNKNOWN /* process */, UNWIND_PROCESS };

/* The mappings of the task's process, if they are published, of this identity, and kept up to date.
 */
static __always_inline enum unwind_known unwind_tables(struct stack_scratch *s)
{
	__u32 zero = 0, tgid = s->ev.tgid;
	struct tables_state *state = bpf_map_lookup_elem(&tables_state, &zero);
	struct tables_process *p;

	s->unwind.slice_count = 0;
	s->unwind.script_home = 0;
	s->unwind.own_code = UNWIND_OWN_NONE;
	s->unwind.own_n = 0;
	s->unwind.own_called = 0;
	if (!state || !state->heartbeat_ns || s->ev.time_ns > state->heartbeat_ns + TABLES_STALE_NS)
		return UNWIND_NOBODY;
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!p || p->start_ns != s->ev.start_ns || p->exec_id != s->ev.exec_id)
		return UNWIND_UNKNOWN;
	s->unwind.slice_first = p->first;
	s->unwind.slice_count = p->count;
	s->unwind.own_code = p->flags & TABLES_PROCESS_OWN_CODE ? UNWIND_OWN_THERE :
			     p->flags & TABLES_PROCESS_OBJECTS  ? UNWIND_OWN_OBJECTS :
								  UNWIND_OWN_NONE;
	s->unwind.script_home =
		p->flags & TABLES_PROCESS_SCRIPTS ? TABLES_SCRIPTS_MAPPING(p->flags) + 1 : 0;
	s->ev.tables_ns = p->as_of_ns;
	if (bpf_map_lookup_elem(&processes, &tgid) != p) { /* it was replaced while it was read */
		s->unwind.slice_count = 0;
		return UNWIND_UNKNOWN;
	}
	s->ev.flags |= STACK_F_TABLES;
	return UNWIND_PROCESS;
}

/* How the task was in user space when it was interrupted, or when it entered the kernel. `ctx`:
 * NULL, or the perf event's. false: ev.end says why there is nothing to begin with. */
static __always_inline bool unwind_begin(struct stack_scratch *s, struct task_struct *task,
					 const struct arch_perf_event_data *ctx)
{
	struct unwind *u = &s->unwind;
	struct arch_regs regs;

	if (ctx)
		regs = ctx->regs;
	if (!ctx || !arch_user(&regs)) {
		if (arch_task_regs(task, &regs) || !arch_user(&regs) || !regs.ip) {
			s->ev.end = STACK_END_NO_REGISTERS;
			return false;
		}
		u->exact = !arch_syscall(&regs);
	} else {
		u->exact = 1;
	}
	if (regs.cs == ARCH_USER32_CS) {
		s->ev.end = STACK_END_32BIT;
		return false;
	}
	arch_dwarf(&regs, u->regs);
	u->pc = regs.ip;
	u->sp = regs.sp;
	u->bp = regs.bp;
	u->fs_base = BPF_CORE_READ(task, thread.fsbase);
	u->regs_known = 1;
	u->bx_how = ROW_BX_SAME;
	u->end = STACK_END_NONE;
	u->n = 0;
	u->map_start = u->map_end = 0;
	u->window_bytes = 0;
	u->map_runtime = u->script = u->script_rest = u->script_kind = u->script_deep = 0;
	u->script_free = u->script_said = 0;
	return true;
}

/* The user part. What is found goes behind the kernel frames of s->frames, ev.n_user and ev.end. */
static __always_inline void unwind_user(struct stack_scratch *s)
{
	int more = 1;

	for (int i = 0; i < UNWIND_STEPS && more > 0; i++)
		more = unwind_turn(i);
	if (more) {
		s->unwind.end = STACK_END_DEPTH;
		s->ev.flags |= STACK_F_TRUNCATED;
	}
	s->ev.n_user = s->unwind.n;
	s->ev.end = s->unwind.end;
}

#endif
