/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/walk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "loaders/lib/host/unwind/unwind.h"
#include "loaders/pstack/scripts.h"
#include "schema/base/mem.h"

#define PAGE  4096ull
#define PAGES 64 /* kept of one thread; a walk goes up, so that the oldest is given up */
#define AHEAD 4  /* read at once */

struct memory {
	struct hostmaps *hm;
	struct hostmaps_process *process;
	uint64_t time_ns, pending;
	uint64_t at[PAGES];
	bool there[PAGES];
	uint8_t page[PAGES][PAGE];
};

/* Pages from `at` on; none of them is a reason to fail. */
static void memory_fill(struct memory *m, uint64_t at)
{
	for (uint64_t i = 0; i < AHEAD; i++) {
		uint64_t page = at + i * PAGE, slot = page / PAGE % PAGES;
		struct iovec to = {m->page[slot], PAGE}, from = {(void *)(uintptr_t)page, PAGE};

		if (i && m->at[slot] == page)
			continue;
		m->at[slot] = page;
		m->there[slot] = process_vm_readv((pid_t)m->process->tgid, &to, 1, &from, 1, 0) ==
				 (ssize_t)PAGE;
	}
}

static bool memory_byte(struct memory *m, uint64_t addr, uint8_t *byte)
{
	uint64_t page = addr & ~(PAGE - 1), slot = page / PAGE % PAGES;

	if (m->at[slot] != page)
		memory_fill(m, page);
	*byte = m->page[slot][addr - page];
	return m->there[slot];
}

static bool memory_read(void *ctx, uint64_t addr, uint64_t *value)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		if (!memory_byte(ctx, addr + i, &bytes[i]))
			return false;
	memcpy(value, bytes, sizeof(bytes));
	return true;
}

static bool memory_where(void *ctx, uint64_t addr, struct unwind_where *out)
{
	struct memory *m = ctx;

	return hostmaps_where(m->hm, m->process, addr, m->time_ns, out, &m->pending);
}

/* Behind the first `keep` frames of `out`. */
static void unwind_into(struct hostmaps *hm, struct hostmaps_process *process, uint64_t time_ns,
			const struct unwind_regs *regs, size_t keep, struct walk *out)
{
	static struct memory m; /* too large for a stack; one thread walks */
	uint64_t frames[STACK_USER_MAX], sp[STACK_USER_MAX], *all_frames, *all_sp;
	struct unwind_from from = {.ctx = &m, .where = memory_where, .read = memory_read, .sp = sp};
	size_t n;

	m.hm = hm;
	m.process = process;
	m.time_ns = time_ns;
	m.pending = 0;
	memset(m.at, 0xff, sizeof(m.at));
	n = unwind_stack(&from, regs, frames, STACK_USER_MAX - keep, &out->end);
	all_frames = mem_array(keep + n, sizeof(frames[0]));
	all_sp = mem_array(keep + n, sizeof(sp[0]));
	if (keep) {
		memcpy(all_frames, out->frames, keep * sizeof(frames[0]));
		memcpy(all_sp, out->sp, keep * sizeof(sp[0]));
	}
	memcpy(all_frames + keep, frames, n * sizeof(frames[0]));
	memcpy(all_sp + keep, sp, n * sizeof(sp[0]));
	free(out->frames);
	free(out->sp);
	out->frames = all_frames;
	out->sp = all_sp;
	out->n = keep + n;
	out->pending |= m.pending && hostmaps_awaits(hm, m.pending);
}

void walk_thread(struct hostmaps *hm, struct hostmaps_process *process,
		 const struct pstack_record *thread, uint64_t time_ns, struct walk *out)
{
	struct unwind_regs regs = {.pc = thread->pc,
				   .fs_base = thread->fs_base,
				   .exact = !(thread->flags & PSTACK_IN_SYSCALL)};

	walk_clear(out);
	out->end = thread->flags & PSTACK_KTHREAD ? STACK_END_NONE : STACK_END_NO_REGISTERS;
	if (!(thread->flags & PSTACK_REGS))
		return;
	out->end = thread->flags & PSTACK_32BIT ? STACK_END_32BIT : STACK_END_NO_PROCESS;
	if (!process || (thread->flags & PSTACK_32BIT))
		return;
	memcpy(regs.reg, thread->regs, sizeof(regs.reg));
	unwind_into(hm, process, time_ns, &regs, 0, out);
}

/* The first argument of the system call that it waits in. */
static uint64_t futex_of(const struct pstack_record *r)
{
	return r->flags & PSTACK_IN_SYSCALL && r->syscall == SYS_futex ? r->regs[5] : 0; /* rdi */
}

/* What goes on where a runtime's own code, which nothing describes, was left. */
struct resumed {
	struct hostmaps *hm;
	struct hostmaps_process *process;
	uint64_t time_ns;
	struct walk *w;
};

static void resume(void *ctx, struct scripts_native *native, size_t keep,
		   const struct runtime_follow *to)
{
	const struct resumed *r = ctx;
	struct walk *w = r->w;
	struct unwind_regs regs = {.pc = to->pc, .fs_base = native->fs_base};

	regs.reg[6] = to->bp; /* as DWARF numbers rbp and rsp */
	regs.reg[7] = to->sp;
	w->n = keep;
	w->end = STACK_END_UNSUPPORTED;
	if (to->goes_on && keep < STACK_USER_MAX)
		unwind_into(r->hm, r->process, r->time_ns, &regs, keep, w);
	native->frames = w->frames;
	native->sp = w->sp;
	native->n = w->n;
	native->complete = w->end == STACK_END_ROOT;
}

void walk_scripts(struct hostmaps *hm, struct hostmaps_process *process,
		  const struct pstack_record *thread, uint64_t time_ns, struct walk *w)
{
	struct resumed again = {.hm = hm, .process = process, .time_ns = time_ns, .w = w};
	struct scripts_native native = {.frames = w->frames,
					.sp = w->sp,
					.n = w->n,
					.complete = w->end == STACK_END_ROOT,
					.fs_base = thread->fs_base,
					.tid = thread->tid,
					.futex = futex_of(thread),
					.resume = resume,
					.ctx = &again};

	script_stack_release(&w->scripts);
	w->gil = RUNTIME_GIL_NEITHER;
	if (process && w->n)
		scripts_walk(hm, process, &native, time_ns, &w->scripts, &w->gil);
}

void walk_clear(struct walk *w)
{
	free(w->frames);
	free(w->sp);
	script_stack_release(&w->scripts);
	*w = (struct walk){0};
}
