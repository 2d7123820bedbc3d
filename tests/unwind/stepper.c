/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepper: runs `stepper SONDE-INDEX DIR -- PROGRAM [ARG...]` one instruction at a time and
 * compares the unwinder with the calls it watched (shadow.h). Prints one JSON object:
 *
 *   steps        instructions
 *   complete     stacks that were right up to the root
 *   wrong        stacks with a frame that was not watched, or a root too early: must be 0
 *   guessed      such stacks that lead through code which its file does not describe
 *                (crt's, hand-written): there the unwinder can only follow the frame pointer
 *   between      stacks taken while swapcontext or setcontext switches stacks, or vfork
 *                holds its return address in a register, or a return address has been
 *                overwritten (with the exception's landing pad, by libgcc): there the
 *                watched calls are no measure
 *   short        stacks that are right as far as they go, by the last frame's function,
 *                leaf and stack_end
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/onecpu.h"
#include "tests/unwind/shadow.h"
#include "tests/unwind/target.h"

#define SHORT_MAX   256
#define WRONG_SHOWN 8
#define DEPTH       512

struct shortfall {
	char where[256];
	char leaf[256]; /* with its offset */
	int end;
	unsigned long n;
};

struct stepper {
	struct target target;
	struct shadow shadow;
	struct shadow_entry
		popped; /* the last return address that was taken off without returning there */
	unsigned long steps, complete, wrong, guessed, between, deepest;
	struct shortfall shortfall[SHORT_MAX];
	int n_short;
};

static struct stepper S;

static uint64_t word(uint64_t addr)
{
	uint64_t v = 0;

	target_read(&S.target, addr, &v);
	return v;
}

/* What the unwinder has to find behind the leaf. Returns how many. */
static size_t expected(uint64_t *pc, bool *exact, bool *rewritten)
{
	const struct shadow_stack *k = &S.shadow.stack[S.shadow.now];
	size_t n = 0, left = k->n;

	while (left && n < DEPTH) {
		const struct shadow_entry *e = &k->at[left - 1];

		*rewritten |= !e->signal && word(e->place) != e->pc;
		pc[n] = e->pc;
		exact[n++] = e->signal;
		left--;
		if (e->signal && e->below != (int)(k - S.shadow.stack)) {
			k = &S.shadow.stack[e->below];
			left = k->n;
		}
	}
	return n;
}

static void note_short(uint64_t pc, uint64_t last, int end)
{
	char where[256], leaf[256];

	target_name(&S.target, last, where, sizeof(where));
	if (strrchr(where, '+'))
		*strrchr(where, '+') = 0; /* by function */
	target_name(&S.target, pc, leaf, sizeof(leaf));
	for (int i = 0; i < S.n_short; i++)
		if (!strcmp(S.shortfall[i].where, where) && !strcmp(S.shortfall[i].leaf, leaf) &&
		    S.shortfall[i].end == end) {
			S.shortfall[i].n++;
			return;
		}
	if (S.n_short < SHORT_MAX) {
		struct shortfall *s = &S.shortfall[S.n_short++];

		*s = (struct shortfall){.end = end, .n = 1};
		strcpy(s->leaf, leaf);
		strcpy(s->where, where);
	}
}

static void show_wrong(const struct user_regs_struct *r, const uint64_t *frames, size_t n,
		       const uint64_t *want, size_t n_want, int end)
{
	char a[256], b[256];

	if (S.wrong > WRONG_SHOWN)
		return;
	target_name(&S.target, r->rip, a, sizeof(a));
	fprintf(stderr, "wrong at %s (end %d): %zu frames, %zu expected\n", a, end, n - 1, n_want);
	for (size_t i = 0; i + 1 < n || i < n_want; i++) {
		a[0] = b[0] = 0;
		if (i + 1 < n)
			target_name(&S.target, frames[i + 1] & ~FRAME_EXACT, a, sizeof(a));
		if (i < n_want)
			target_name(&S.target, want[i], b, sizeof(b));
		if (strcmp(a, b) || i < 3)
			fprintf(stderr, "  %2zu  %-50s  %s\n", i, a, b);
		if (strcmp(a, b) && i > 6)
			break;
	}
}

/* musl's way from _start to main has no call-frame information: each of its functions counts as an
 * entry. */
static bool is_entry(uint64_t pc)
{
	char name[256];

	target_name(&S.target, pc, name, sizeof(name));
	return strstr(name, " _start_c+") || strstr(name, "libc_start_main");
}

/* An exception's landing is prepared in the frame of the function that raises it: what it saved is
 * written over. */
static bool is_landing(const uint64_t *frames, size_t n)
{
	char name[256];

	for (size_t i = 0; i < n && i < 4; i++) {
		target_name(&S.target, frames[i] & ~FRAME_EXACT, name, sizeof(name));
		if (strstr(name, " _Unwind_R") || strstr(name, "libgcc_s.so"))
			return true;
	}
	return false;
}

static void compare(const struct user_regs_struct *r)
{
	uint32_t guessed = 0;
	struct unwind_from from = {
		.ctx = &S.target, .where = target_where, .read = target_read, .guessed = &guessed};
	struct unwind_regs regs = {.reg = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp,
					   r->rsp, r->r8, r->r9, r->r10, r->r11, r->r12, r->r13,
					   r->r14, r->r15},
				   .pc = r->rip,
				   .fs_base = r->fs_base,
				   .exact = true};
	uint64_t frames[DEPTH + 8], want[DEPTH];
	bool exact[DEPTH];
	enum stack_end end;
	size_t n, n_want, same = 0;
	bool rewritten = false;
	char leaf[256];

	n = unwind_stack(&from, &regs, frames, DEPTH + 8, &end);
	n_want = expected(want, exact, &rewritten);
	if (n_want > S.deepest)
		S.deepest = n_want;
	if (rewritten) {
		S.between++;
		return;
	}
	while (same < n_want && same + 1 < n &&
	       frames[same + 1] == (want[same] | (exact[same] ? FRAME_EXACT : 0)))
		same++;
	if (end != STACK_END_ROOT || same + 1 < n || same < n_want)
		rewritten = is_landing(frames, n);
	if (rewritten) {
		S.between++;
		return;
	}
	if (same + 1 < n ||
	    (end == STACK_END_ROOT && same < n_want && !is_entry(frames[n - 1] & ~FRAME_EXACT))) {
		target_name(&S.target, r->rip, leaf, sizeof(leaf));
		if (strstr(leaf, "swapcontext+") || strstr(leaf, "setcontext+") ||
		    strstr(leaf, "vfork+")) {
			S.between++;
			return;
		}
		S.guessed += guessed != 0;
		S.wrong += !guessed;
		if (!guessed)
			show_wrong(r, frames, n, want, n_want, (int)end);
	} else if (end == STACK_END_ROOT) {
		S.complete++;
	} else {
		note_short(r->rip, frames[n - 1] & ~FRAME_EXACT, (int)end);
	}
}

/* A stack that the program allocated lies inside other memory: how far RSP moved shows that it is
 * another one. */
#define FAR 40000

/* vfork takes its return address off the stack for the time of the system call, and puts it back.
 */
static void note_popped(const struct user_regs_struct *old, const struct user_regs_struct *new)
{
	const struct shadow_stack *k = &S.shadow.stack[S.shadow.now];

	if (new->rsp == old->rsp + 8 && k->n && k->at[k->n - 1].place == old->rsp &&
	    k->at[k->n - 1].pc != new->rip)
		S.popped = k->at[k->n - 1];
}

static void follow_call(const struct user_regs_struct *old, const struct user_regs_struct *new)
{
	uint64_t at;

	note_popped(old, new);
	if (new->rsp == old->rsp - 8) {
		at = word(new->rsp);
		if (at > old->rip && at <= old->rip + 15 && new->rip != at)
			shadow_push(&S.shadow, (struct shadow_entry){.place = new->rsp, .pc = at});
		else if (at == S.popped.pc && new->rsp == S.popped.place)
			shadow_push(&S.shadow, S.popped);
	}
	shadow_drop(&S.shadow, new->rsp);
}

/* To another stack: one that was left before, or a new one, which begins with the address of what
 * ends it. */
static void follow_switch(uint64_t sp)
{
	for (int i = 0; i < S.shadow.n; i++) {
		const struct shadow_stack *k = &S.shadow.stack[i];

		if (k->n && sp <= k->at[0].place + FAR && sp + FAR >= k->at[k->n - 1].place) {
			S.shadow.now = i;
			shadow_drop(&S.shadow, sp);
			return;
		}
	}
	if (S.shadow.n == SHADOW_STACKS) {
		fprintf(stderr, "stepper: too many stacks\n");
		exit(1);
	}
	S.shadow.now = S.shadow.n++;
	S.shadow.stack[S.shadow.now].n = 0;
	shadow_push(&S.shadow, (struct shadow_entry){.place = sp, .pc = word(sp)});
}

static void follow_signal(const struct user_regs_struct *old, const struct user_regs_struct *new)
{
	int below = S.shadow.now;

	if (new->rsp + FAR < old->rsp || new->rsp > old->rsp) {
		S.shadow.now = S.shadow.n++;
		S.shadow.stack[S.shadow.now].n = 0;
	}
	shadow_push(&S.shadow,
		    (struct shadow_entry){
			    .place = new->rsp + 8, .pc = old->rip, .signal = true, .below = below});
	shadow_push(&S.shadow, (struct shadow_entry){.place = new->rsp, .pc = word(new->rsp)});
}

static void follow_sigreturn(void)
{
	struct shadow_stack *k = &S.shadow.stack[S.shadow.now];

	while (k->n && !k->at[k->n - 1].signal)
		k->n--;
	if (!k->n)
		return;
	S.shadow.now = k->at[--k->n].below;
}

static bool is_syscall(pid_t pid, uint64_t pc)
{
	long code;

	errno = 0;
	code = ptrace(PTRACE_PEEKTEXT, pid, pc, NULL);
	return !errno && (code & 0xffff) == 0x050f;
}

/* One instruction. false: the program has ended. */
static bool step(pid_t pid, struct user_regs_struct *r)
{
	struct user_regs_struct old = *r;
	bool call = is_syscall(pid, r->rip), sigreturn = call && r->rax == SYS_rt_sigreturn;
	int status, sig;

	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid ||
	    !WIFSTOPPED(status))
		return false;
	sig = WSTOPSIG(status);
	ptrace(PTRACE_GETREGS, pid, NULL, r);
	if (call)
		target_maps(&S.target);
	target_stack(&S.target, r->rsp);
	if (sigreturn)
		follow_sigreturn();
	else if (r->rsp > old.rsp + FAR || r->rsp + FAR < old.rsp)
		follow_switch(r->rsp);
	else
		follow_call(&old, r);
	if (sig == SIGTRAP)
		return true;
	old = *r;
	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(long)sig) ||
	    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return false;
	ptrace(PTRACE_GETREGS, pid, NULL, r);
	target_stack(&S.target, r->rsp);
	if (sig == SIGCHLD) /* ignored: an instruction like any other */
		follow_call(&old, r);
	else if (r->rip != old.rip)
		follow_signal(&old, r);
	return true;
}

static void print_result(void)
{
	printf("{\"steps\": %lu, \"complete\": %lu, \"wrong\": %lu, \"guessed\": %lu, \"between\": %lu, \"deepest\": %lu, \"short\": [",
	       S.steps, S.complete, S.wrong, S.guessed, S.between, S.deepest);
	for (int i = 0; i < S.n_short; i++)
		printf("%s{\"where\": \"%s\", \"leaf\": \"%s\", \"end\": %d, \"n\": %lu}",
		       i ? ", " : "", S.shortfall[i].where, S.shortfall[i].leaf, S.shortfall[i].end,
		       S.shortfall[i].n);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct user_regs_struct r;
	unsigned long limit = getenv("STEPS") ? strtoul(getenv("STEPS"), NULL, 10) : 20000000;
	int status;
	pid_t pid;

	if (argc < 5 || strcmp(argv[3], "--")) {
		fprintf(stderr, "usage: stepper SONDE-INDEX DIR -- PROGRAM [ARG...]\n");
		return 2;
	}
	S.target.indexer = argv[1];
	S.target.dir = argv[2];
	onecpu_stay();
	pid = fork();
	if (!pid) {
		dup2(2, 1);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[4], argv + 4);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		fprintf(stderr, "stepper: %s does not start\n", argv[4]);
		return 1;
	}
	S.target.pid = pid;
	S.shadow.n = 1;
	target_maps(&S.target);
	ptrace(PTRACE_GETREGS, pid, NULL, &r);
	target_stack(&S.target, r.rsp);
	do {
		compare(&r);
		S.steps++;
	} while (S.steps < limit && step(pid, &r));
	if (S.steps >= limit)
		kill(pid, SIGKILL);
	print_result();
	return 0;
}
