/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding at every instruction of Go programs: the unwinder's own code (probes/lib/unwind.h,
 * built for user space) with the rows that sonde-index made, against the calls that the processor
 * has made and not returned from (steps.h). Growing stacks, system stack, scheduler, faults,
 * signals, cgo and callbacks are among what the programs do.
 */
#include "tests/unit/loaders/index/go/gotest.h"

#include "loaders/lib/host/unwind/unwind.h"
#include "probes/lib/arch_x86.h"
#include "probes/lib/tables.h"
#include "schema/base/idmap.h"
#include "tests/unit/loaders/index/steps.h"

#define STEPS_EVERYDAY 80000
#define STEPS_MATRIX   400000 /* where SONDE_GO is set */
/* factor for the number of steps when a required frame has not been crossed yet */
#define STEPS_MORE 4
#define FRAMES     64
#define DEEP       40

static const char go_source[] =
	"package main\n"
	"import (\"fmt\"; \"os\"; \"runtime\"; \"sort\"; \"syscall\"; \"time\")\n"
	"func init() { runtime.LockOSThread() }\n"
	"//go:noinline\n"
	"func deep(n int) int { var a [64]int; a[n&63] = n; if n == 0 { return int(time.Now().UnixNano() & 1) }; return deep(n-1) + a[n&63] }\n"
	"//go:noinline\n"
	"func fault(p *int) (r int) { defer func() { if recover() != nil { r = 7 } }(); return *p }\n"
	"//go:noinline\n"
	"func call(f func(int) int, n int) int { return f(n) }\n"
	"var keep [][]byte\n"
	"var pcs [4]uintptr\n"
	"func work() int {\n"
	"  t := fault(nil) + call(nest, 3) + deep(40)\n"
	"  runtime.Callers(0, pcs[:])\n" /* always by way of the system stack; when the allocator
					    does is chance */
	"  for i := 0; i < 20; i++ { keep = append(keep, make([]byte, 9000+i)) }\n"
	"  c := make(chan int); go func() { c <- deep(20) }(); t += <-c\n"
	"  m := map[string]int{}; for i := 0; i < 20; i++ { m[fmt.Sprint(i)] = i }\n"
	"  k := []string{}; for s := range m { k = append(k, s) }; sort.Strings(k)\n"
	"  runtime.Gosched(); runtime.GC(); t += deep(900)\n"
	"  syscall.Kill(syscall.Getpid(), syscall.SIGWINCH); time.Sleep(time.Microsecond)\n"
	"  return t + len(k) }\n"
	"func main() {\n"
	"  done := make(chan int); go func() { done <- deep(300) }(); <-done\n"
	"  if os.Getenv(\"SONDE_STEPS\") != \"\" { syscall.Kill(syscall.Getpid(), 0)\n"
	"    syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(syscall.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP)) }\n"
	"  fmt.Println(work()) }\n";
static const char plain_source[] = "package main\nfunc nest(n int) int { return n }\n";
static const char cgo_source[] =
	"package main\n"
	"/*\n"
	"extern int goNest(int);\n"
	"static int __attribute__((noinline)) mid(int n) { volatile int a[8]; a[n & 7] = n; return goNest(n - 1) + a[n & 7]; }\n"
	"*/\n"
	"import \"C\"\n"
	"//export goNest\n"
	"func goNest(n C.int) C.int { return C.int(nest(int(n))) + C.int(deep(30+int(n))) }\n"
	"func nest(n int) int { if n <= 0 { return 1 }; return int(C.mid(C.int(n))) + 1 }\n";
/* ---- what the unwinder asks ---- */

struct target {
	struct steps steps;
	struct unwind_section rows;
	uint64_t lo, hi; /* the program's code; linked at fixed addresses */
};

static bool where(void *ctx, uint64_t addr, struct unwind_where *out)
{
	const struct target *t = ctx;

	if (addr < t->lo || addr >= t->hi)
		return false;
	*out = (struct unwind_where){
		.start = t->lo, .end = t->hi, .state = UNWIND_ROWS_READY, .rows = t->rows};
	return true;
}

static bool read_word(void *ctx, uint64_t addr, uint64_t *value)
{
	return steps_read(&((struct target *)ctx)->steps, addr, value);
}

static size_t unwind(struct target *t, uint64_t *frames, enum stack_end *end)
{
	const struct user_regs_struct *r = &t->steps.regs;
	const struct unwind_regs regs = {.reg = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
						 r->rbp, r->rsp, r->r8, r->r9, r->r10, r->r11,
						 r->r12, r->r13, r->r14, r->r15},
					 .pc = r->rip,
					 .fs_base = r->fs_base,
					 .exact = true};

	return unwind_stack(&(struct unwind_from){.ctx = t, .where = where, .read = read_word},
			    &regs, frames, FRAMES, end);
}

/* ---- the comparison ---- */

struct tally {
	size_t steps, frames, wrong, deepest, roots;
	char names[2048];  /* where a root came before the end of the known frames */
	struct idmap seen; /* return addresses that were crossed rightly */
};

static void name_note(struct tally *y, const struct made *m, uint64_t pc)
{
	const char *name = made_name(m, pc);

	if (!strstr(y->names, name) && strlen(y->names) + strlen(name) + 2 < sizeof(y->names))
		strcat(strcat(y->names, name), " ");
}

static bool in_program(const struct target *t, uint64_t pc)
{
	return pc >= t->lo && pc < t->hi;
}

/* Go's handlers rewrite their return context word by word: after that, the interrupted frame no
 * longer counts. */
static bool context_changed(struct target *t, const struct steps_frame *f,
			    const struct steps_frame *handler)
{
	uint64_t pc = 0, sp = 0;

	steps_read(&t->steps, handler->cfa + ARCH_SIGCONTEXT + 8 * ARCH_SIG_IP, &pc);
	steps_read(&t->steps, handler->cfa + ARCH_SIGCONTEXT + 8 * (ARCH_SIG_IP - 1), &sp);
	return pc != f->ra || sp != f->cfa;
}

/* Known frames, innermost first, as far as the program's own code goes. */
static size_t expected(struct target *t, uint64_t *pcs, bool *exact)
{
	const struct steps_list *l = &t->steps.now;
	size_t n = 0;

	if (!in_program(t, t->steps.regs.rip))
		return 0;
	pcs[n] = t->steps.regs.rip;
	exact[n++] = true;
	for (size_t i = l->n; i-- && n < FRAMES; n++) {
		if (!in_program(t, l->at[i].ra) ||
		    (l->at[i].interrupted && context_changed(t, &l->at[i], &l->at[i + 1])))
			break;
		pcs[n] = l->at[i].ra;
		exact[n] = l->at[i].interrupted;
	}
	return n;
}

static void compare(struct target *t, const struct made *m, struct tally *y)
{
	uint64_t ours[FRAMES], pcs[FRAMES];
	bool exact[FRAMES];
	enum stack_end end;
	size_t n = expected(t, pcs, exact), have, k = 0;

	if (!n)
		return;
	have = unwind(t, ours, &end);
	y->steps++;
	y->frames += n;
	y->deepest = n > y->deepest ? n : y->deepest;
	while (k < n && k < have && FRAME_ADDRESS(ours[k]) == pcs[k] &&
	       (!exact[k] || ours[k] & FRAME_EXACT)) {
		if (k && k < n - 1)
			idmap_set(&y->seen, pcs[k], 1);
		k++;
	}
	if (k == n)
		return;
	if (k == have && end == STACK_END_ROOT) { /* mcall: what called it goes on elsewhere */
		y->roots++;
		name_note(y, m, FRAME_ADDRESS(ours[k - 1]));
		return;
	}
	if (y->wrong++ < 12)
		print_message("at %llx (%s): frame %zu is %llx (%s), we say %llx (%s), end %d\n",
			      (unsigned long long)pcs[0], made_name(m, pcs[0]), k,
			      (unsigned long long)pcs[k], made_name(m, pcs[k] - 1),
			      k < have ? (unsigned long long)FRAME_ADDRESS(ours[k]) : 0,
			      k < have ? made_name(m, FRAME_ADDRESS(ours[k]) - 1) : "nothing",
			      (int)end);
}

/* ---- a program ---- */

static struct made made_of_file(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct made m = {0};

	assert_true(fd >= 0);
	m.rc = indexer_run_fd(fd, &(struct index_finder){.lines = INDEX_LINES_NONE}, &m.r, NULL);
	made_open(&m);
	assert_non_null(m.img);
	return m;
}

static void target_open(struct target *t, const struct made *m, const char *path)
{
	const void *data = NULL;
	struct gofile f;
	size_t size = 0;

	*t = (struct target){.lo = UINT64_MAX};
	assert_true(image_unwind(m->img, &data, &size));
	assert_int_equal(unwind_section_open(&t->rows, data, size), 0);
	gofile_open(&f, path);
	for (size_t i = 0; i < f.elf.segment_count; i++) {
		const Elf64_Phdr *p = &f.elf.segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			t->lo = p->p_vaddr < t->lo ? p->p_vaddr : t->lo;
			t->hi = p->p_vaddr + p->p_memsz > t->hi ? p->p_vaddr + p->p_memsz : t->hi;
		}
	}
	for (uint32_t i = 0; i < f.table.tab.func_count; i++) {
		struct pclntab_func p;

		if (!pclntab_func(&f.table.tab, f.table.text, i, &p) ||
		    (strcmp(p.name, "gogo") &&
		     (strcmp(p.name, "runtime.gogo") || t->steps.gogo_end)))
			continue;
		t->steps.gogo_start = p.start;
		t->steps.gogo_end = p.end;
	}
	gofile_close(&f);
	steps_start(&t->steps, path);
}

/* Did a stack cross a frame of this function and continue beyond it? */
static bool was_crossed(const struct tally *y, const struct made *m, const char *name)
{
	for (size_t i = 0; i < y->seen.cap; i++)
		if (y->seen.slots[i].used && !strcmp(made_name(m, y->seen.slots[i].key - 1), name))
			return true;
	return false;
}

static void check_roots(char *names)
{
	char *save = NULL;

	for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save))
		if (strcmp(name, "runtime.mcall") && strcmp(name, "runtime.morestack") &&
		    strcmp(name, "gogo") && strcmp(name, "runtime.gogo"))
			fail_msg("%s was taken for a root, and somebody had called it", name);
}

/* The first of these that no stack went through; NULL: all were crossed. */
static const char *missing(const struct tally *y, const struct made *m, const char *const *crossed)
{
	while (*crossed && was_crossed(y, m, *crossed))
		crossed++;
	return *crossed;
}

static void check_program(const char *go, const char *kind, const char *path,
			  const char *const *crossed)
{
	static struct target t;
	struct tally y = {0};
	struct made m = made_of_file(path);
	size_t least = getenv("SONDE_GO") ? STEPS_MATRIX : STEPS_EVERYDAY;

	target_open(&t, &m, path);
	for (size_t i = 0; i < STEPS_MORE * least && !t.steps.over; i++) {
		if (i >= least && i % 4096 == 0 && y.deepest > DEEP && t.steps.signals &&
		    !missing(&y, &m, crossed))
			break;
		steps_next(&t.steps);
		if (!t.steps.over)
			compare(&t, &m, &y);
	}
	steps_end(&t.steps);
	print_message(
		"%s, %s: %zu instructions, %zu known frames, up to %zu at once; %zu signals, %zu goroutines resumed, "
		"%zu moved stacks; %zu wrong; %zu ended early at a root: %s\n",
		go, kind, y.steps, y.frames, y.deepest, t.steps.signals, t.steps.resumed,
		t.steps.moved, y.wrong, y.roots, y.names);
	assert_int_equal(y.wrong, 0);
	assert_true(y.steps > 50000 && y.deepest > DEEP && t.steps.signals);
	check_roots(y.names);
	if (missing(&y, &m, crossed))
		fail_msg("no stack went through %s", missing(&y, &m, crossed));
	idmap_release(&y.seen);
	made_release(&m);
}

TEST(stacks_of_every_instruction_are_what_was_called)
{
	struct gotest g;

	if (!gotest_open(&g, go_source)) {
		skip_missing("go");
	}
	for (size_t i = 0; i < g.count; i++) {
		char *path;

		gotest_write(&g, "nest.go", plain_source);
		path = gotest_build(&g, i, "", false);
		assert_non_null(path);
		check_program(g.go[i], "program", path,
			      (const char *const[]){"runtime.systemstack", "runtime.sigpanic",
						    "runtime.morestack", NULL});
		free(path);
	}
	gotest_close(&g);
}

TEST(stacks_through_c_and_back_are_what_was_called)
{
	struct gotest g;

	if (!gotest_open(&g, go_source)) {
		skip_missing("go");
	}
	gotest_write(&g, "nest.go", cgo_source);
	for (size_t i = 0; i < g.count; i++) {
		char *path = gotest_build(
			&g, i, "-ldflags='-linkmode=external -extldflags=-static'", true);

		if (path)
			check_program(g.go[i], "cgo", path,
				      (const char *const[]){"runtime.systemstack",
							    "runtime.asmcgocall",
							    "runtime.cgocallback", "mid",
							    "runtime.sigpanic", NULL});
		else
			print_message("%s: no cgo here\n", g.go[i]);
		free(path);
	}
	gotest_close(&g);
}
