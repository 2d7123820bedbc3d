/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepper ROWS PROGRAM [ARG...]: run a program (linked at a fixed address, one thread) instruction
 * by instruction and hold its unwind rows (as sonde-index --dump-rows prints them) against what the
 * processor does. Each call is noted with the place of its return address and the caller's RBP,
 * each return takes one note away; so at every instruction the CFA and the caller's RBP are known.
 *
 * Prints "STEPS RIGHT WRONG NONE OTHER": rows that agree, that disagree (the first are
 * printed on stderr), no row, a rule that is not plain. Exit 0 unless the program could not be run
 * to its end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/onecpu.h"

#define DEPTH_MAX 4096
#define TOLD_MAX  20

enum kind { NONE, OTHER, ROOT, BY_RSP, BY_RBP };

struct row {
	uint64_t addr;
	enum kind kind;
	uint64_t offset; /* CFA - the register */
	uint64_t saved;  /* CFA - address of the saved RBP; 0: unchanged */
};

struct note {
	uint64_t slot; /* of the return address */
	uint64_t bp;   /* the caller's */
};

struct run {
	pid_t pid;
	struct row *rows;
	size_t row_count;
	struct note notes[DEPTH_MAX];
	size_t depth;
	unsigned long steps, right, wrong, none, other;
};

static enum kind kind_of(const char *cfa, const char *bp)
{
	if (!strcmp(cfa, "none"))
		return NONE;
	if (!strcmp(cfa, "root"))
		return ROOT;
	if (strcmp(bp, "same") && strncmp(bp, "c-", 2))
		return OTHER;
	return !strncmp(cfa, "rsp+", 4) ? BY_RSP : !strncmp(cfa, "rbp+", 4) ? BY_RBP : OTHER;
}

static int rows_read(struct run *r, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256], cfa[64], bp[64];
	size_t cap = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		struct row x = {0};

		bp[0] = 0;
		if (line[0] == '#' || sscanf(line, "%" SCNx64 " %63s %63s", &x.addr, cfa, bp) < 2)
			continue;
		x.kind = kind_of(cfa, bp);
		if (x.kind >= BY_RSP)
			x.offset = strtoull(cfa + 4, NULL, 10);
		if (x.kind >= BY_RSP && bp[0] == 'c')
			x.saved = strtoull(bp + 2, NULL, 10);
		if (r->row_count == cap) {
			cap = cap ? 2 * cap : 1024;
			r->rows = realloc(r->rows, cap * sizeof(*r->rows));
			if (!r->rows)
				abort();
		}
		r->rows[r->row_count++] = x;
	}
	fclose(f);
	return r->row_count ? 0 : -1;
}

static const struct row *row_at(const struct run *r, uint64_t pc)
{
	static const struct row nothing;
	size_t lo = 0, hi = r->row_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->rows[mid].addr <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &r->rows[lo - 1] : &nothing;
}

static uint64_t word(const struct run *r, uint64_t addr)
{
	uint64_t v = 0;
	struct iovec to = {&v, sizeof(v)}, from = {(void *)addr, sizeof(v)};

	return process_vm_readv(r->pid, &to, 1, &from, 1, 0) == sizeof(v) ? v : 0;
}

static void judge(struct run *r, const struct user_regs_struct *u)
{
	const struct row *x = row_at(r, u->rip);
	const struct note *n = r->depth ? &r->notes[r->depth - 1] : NULL;
	uint64_t cfa = x->offset + (x->kind == BY_RSP ? u->rsp : u->rbp), bp;

	r->steps++;
	if (x->kind == NONE) {
		r->none++;
		return;
	}
	if (x->kind == OTHER) {
		r->other++;
		return;
	}
	bp = x->saved ? word(r, cfa - x->saved) : u->rbp;
	if (x->kind == ROOT ? !n : n && cfa == n->slot + 8 && bp == n->bp) {
		r->right++;
		return;
	}
	if (r->wrong++ < TOLD_MAX)
		fprintf(stderr,
			"stepper: at %llx (row %" PRIx64 "): CFA %" PRIx64 ", RBP %" PRIx64
			"; is %" PRIx64 ", %" PRIx64 "\n",
			u->rip, x->addr, cfa, bp, n ? n->slot + 8 : 0, n ? n->bp : 0);
}

/* What the instruction at pc is: 1 a call, -1 a return, 0 neither. */
static int direction(uint64_t bytes)
{
	uint8_t b[8];
	size_t i = 0;

	memcpy(b, &bytes, 8);
	while (i < 4 &&
	       (b[i] == 0xf3 || b[i] == 0xf2 || b[i] == 0x3e || b[i] == 0x66 || b[i] == 0x67))
		i++;
	if ((b[i] & 0xf0) == 0x40)
		i++;
	if (b[i] == 0xe8 || (b[i] == 0xff && (b[i + 1] >> 3 & 7) == 2))
		return 1;
	return b[i] == 0xc3 || b[i] == 0xc2 ? -1 : 0;
}

static int step(struct run *r, struct user_regs_struct *u, int *status)
{
	const int way = direction(word(r, u->rip));
	const uint64_t bp = u->rbp;

	if (ptrace(PTRACE_SINGLESTEP, r->pid, NULL, NULL) || waitpid(r->pid, status, 0) != r->pid ||
	    !WIFSTOPPED(*status))
		return -1;
	if (ptrace(PTRACE_GETREGS, r->pid, NULL, u))
		return -1;
	if (way > 0 && r->depth < DEPTH_MAX)
		r->notes[r->depth++] = (struct note){u->rsp, bp};
	while (way < 0 && r->depth && r->notes[r->depth - 1].slot < u->rsp)
		r->depth--;
	return 0;
}

int main(int argc, char **argv)
{
	struct user_regs_struct u;
	static struct run r;
	int status = 0;

	if (argc < 3 || rows_read(&r, argv[1])) {
		fprintf(stderr, "usage: stepper ROWS PROGRAM [ARG...]\n");
		return 2;
	}
	onecpu_stay();
	r.pid = fork();
	if (r.pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (waitpid(r.pid, &status, 0) != r.pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, r.pid, NULL, &u))
		return 1;
	do
		judge(&r, &u);
	while (!step(&r, &u, &status));
	printf("%lu %lu %lu %lu %lu\n", r.steps, r.right, r.wrong, r.none, r.other);
	return WIFEXITED(status) ? 0 : 1;
}
