/* SPDX-License-Identifier: Apache-2.0 */
/* steps: see the header. */
#include "tests/unit/loaders/index/testing.h"
#include "tests/onecpu.h"
#include "tests/unit/loaders/index/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct steps_page *page_get(struct steps *s, uint64_t at)
{
	struct steps_page *p;

	for (size_t i = 0; i < STEPS_PAGES; i++)
		if (s->pages[i].at == at)
			return &s->pages[i];
	p = &s->pages[s->page_next++ % STEPS_PAGES];
	p->at = 0;
	if (pread(s->mem, p->words, sizeof(p->words), (off_t)at) != sizeof(p->words))
		return NULL;
	p->at = at;
	return p;
}

bool steps_read(struct steps *s, uint64_t addr, uint64_t *value)
{
	const struct steps_page *p = addr & 7 || addr < 4096 ? NULL : page_get(s, addr & ~4095ull);

	if (p)
		*value = p->words[addr % 4096 / 8];
	return p;
}

static void pages_forget(struct steps *s)
{
	for (size_t i = 0; i < STEPS_PAGES; i++)
		s->pages[i].at = 0;
}

static void regs_get(struct steps *s)
{
	assert_int_equal(ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs), 0);
}

void steps_start(struct steps *s, const char *path)
{
	char mem[64];
	int status;

	s->before = onecpu_stay();
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (!s->pid) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDOUT_FILENO);
		setenv("SONDE_STEPS", "1", 1);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_true(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, s->pid, NULL, PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, s->pid, NULL, NULL);
	for (;;) {
		assert_int_equal(waitpid(s->pid, &status, __WALL), s->pid);
		assert_true(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		ptrace(PTRACE_CONT, s->pid, NULL,
		       (void *)(long)(WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status)));
	}
	snprintf(mem, sizeof(mem), "/proc/%d/mem", (int)s->pid);
	s->mem = open(mem, O_RDONLY | O_CLOEXEC);
	assert_true(s->mem >= 0);
	regs_get(s);
}

void steps_end(struct steps *s)
{
	int status;

	if (!s->over) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, &status, __WALL);
	}
	close(s->mem);
	onecpu_leave(&s->before);
}

/* ---- the list ---- */

static void push(struct steps *s, uint64_t cfa, uint64_t ra, uint64_t bp, bool interrupted)
{
	struct steps_list *l = &s->now;

	if (l->n == STEPS_DEPTH) { /* forget the outermost half */
		memmove(l->at, l->at + STEPS_DEPTH / 2, sizeof(l->at) / 2);
		l->n = STEPS_DEPTH / 2;
	}
	l->at[l->n++] = (struct steps_frame){cfa, ra, bp, interrupted};
}

/* Resumes the frame that was left with this return address at this SP. false: it is not in the
 * list. */
static bool list_pop(struct steps_list *l, uint64_t pc, uint64_t sp)
{
	for (size_t i = l->n; i--;)
		if (l->at[i].ra == pc && l->at[i].cfa == sp && !l->at[i].interrupted) {
			l->n = i;
			return true;
		}
	return false;
}

/* The same frame on a stack that was copied elsewhere: it and its callers move along, as far as
 * they follow closely. */
static bool list_pop_moved(struct steps_list *l, uint64_t pc, uint64_t sp)
{
	for (size_t i = l->n; i--;) {
		uint64_t before = l->at[i].cfa, shift = sp - before;

		if (l->at[i].ra != pc || l->at[i].interrupted)
			continue;
		for (size_t k = i; k--;) {
			struct steps_frame *f = &l->at[k];

			if (f->cfa <= before || f->cfa - before > 65536)
				break;
			before = f->cfa;
			f->cfa += shift;
		}
		for (size_t k = i; k--;) /* frame pointers into the old stack */
			if (l->at[k].bp + shift - sp < 1u << 20)
				l->at[k].bp += shift;
		l->n = i;
		return true;
	}
	return false;
}

static void resume(struct steps *s, uint64_t pc, uint64_t sp)
{
	s->aside[s->aside_next++ % STEPS_ASIDE] = s->now;
	for (unsigned moved = 0; moved < 2; moved++)
		for (size_t i = 0; i < STEPS_ASIDE; i++) {
			struct steps_list *l = &s->aside[(s->aside_next - 1 - i) % STEPS_ASIDE];

			if (moved ? list_pop_moved(l, pc, sp) : list_pop(l, pc, sp)) {
				s->now = *l;
				s->resumed++;
				s->moved += moved;
				return;
			}
		}
	s->now.n = 0;
}

/* ---- what an instruction did ---- */

enum kind { OTHER, CALL, RET, JUMP };

static enum kind kind_of(const struct steps *s, uint64_t pc)
{
	uint8_t b[16] = {0};
	size_t i = 0;

	if (pread(s->mem, b, sizeof(b), (off_t)pc) <= 0)
		return OTHER;
	while (i < 4 && (b[i] == 0x66 || b[i] == 0xf2 || b[i] == 0xf3 || b[i] == 0x3e ||
			 (b[i] & 0xf0) == 0x40))
		i++;
	if (b[i] == 0xe8)
		return CALL;
	if (b[i] == 0xc3 || b[i] == 0xc2)
		return RET;
	if (b[i] == 0xff && (b[i + 1] >> 3 & 7) == 2)
		return CALL;
	if (b[i] == 0xff && (b[i + 1] >> 3 & 7) == 4)
		return JUMP;
	return OTHER;
}

/* A handler begins, or has returned: the kernel changed SP and pc at once. */
static void signal_entered(struct steps *s, const struct user_regs_struct *was)
{
	uint64_t ra = 0;

	push(s, was->rsp, was->rip, was->rbp, true);
	steps_read(s, s->regs.rsp, &ra);
	push(s, s->regs.rsp + 8, ra, was->rbp, false);
	s->signals++;
}

static void signal_left(struct steps *s)
{
	const struct steps_frame f = s->now.at[s->now.n - 1];
	uint64_t word = 0;

	s->now.n--;
	if (s->regs.rip == f.ra && s->regs.rsp == f.cfa)
		return;
	/* Go's handler set it up as if a function had been called there */
	if (s->regs.rsp == f.cfa - 8 && steps_read(s, s->regs.rsp, &word) && word == f.ra)
		push(s, f.cfa, f.ra, f.bp, false);
	else
		s->now.n = 0;
}

static void account(struct steps *s, const struct user_regs_struct *was, enum kind kind,
		    bool delivered)
{
	const struct steps_frame *top = s->now.n ? &s->now.at[s->now.n - 1] : NULL;
	uint64_t ra;

	if (delivered && (s->regs.rsp > was->rsp || was->rsp - s->regs.rsp > 512)) {
		signal_entered(s, was);
	} else if (kind == CALL && s->regs.rsp == was->rsp - 8 && steps_read(s, s->regs.rsp, &ra)) {
		push(s, was->rsp, ra, was->rbp, false);
	} else if (kind == RET) {
		if (!list_pop(&s->now, s->regs.rip, s->regs.rsp))
			s->now.n = 0;
	} else if (kind == JUMP && was->rip >= s->gogo_start && was->rip < s->gogo_end) {
		resume(s, s->regs.rip, s->regs.rsp);
	} else if (top && top->interrupted && s->regs.rip - was->rip > 16) {
		signal_left(s);
	}
}

void steps_next(struct steps *s)
{
	const struct user_regs_struct was = s->regs;
	const enum kind kind = kind_of(s, was.rip);
	const int signal = s->signal;
	int status;

	s->signal = 0;
	if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, (void *)(long)signal) ||
	    waitpid(s->pid, &status, __WALL) != s->pid || !WIFSTOPPED(status)) {
		s->over = true;
		return;
	}
	regs_get(s);
	pages_forget(s);
	if (WSTOPSIG(status) != SIGTRAP) {
		s->signal = WSTOPSIG(status) == SIGSTOP || (WSTOPSIG(status) == SIGURG &&
							    s->preempted++ % STEPS_URG) ?
				    0 :
				    WSTOPSIG(status);
		/* the instruction was not executed when it faulted; a signal from outside comes
		 * after it */
		if (s->regs.rip == was.rip)
			return;
	}
	account(s, &was, kind, signal);
}
