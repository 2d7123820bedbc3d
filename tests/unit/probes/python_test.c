/* SPDX-License-Identifier: Apache-2.0 */
/* The walker of CPython's frames in a BPF program: at each sample of a running thread, compared
 * with what the Python program says of itself. */
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loaders/index/indexer.h"
#include "probes/runtimes/python_layout.h"
#include "schema/base/cleanup.h"
#include "schema/image/format.h"
#include "schema/image/image.h"
#include "tests/unit/missing.h"
#include "tests/unit/probes/python_check.bpf.h"

#include "tests/unit/probes/python_check.skel.h"
#include "tests/unit/test.h"

#define PYTHON  "/usr/bin/python3"
#define WANTED  300 /* samples */
#define LONGEST 60  /* seconds that they may take on a busy machine */

enum python_step_here {
	FRAME,
	CLOSES,
	SHIM,
	END,
	FAULT
}; /* enum python_step, whose header only readers of frames include */

/* Prints the addresses of its thread's state and of its functions' code, innermost first, then runs
 * without end: `calls` calls and returns, `spins` calls nothing. */
static const char script[] =
	"import ctypes, os, sys\n"
	"ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p\n"
	"def leaf(x):\n"
	"    return x + 1\n"
	"def calls():\n"
	"    x = 0\n"
	"    while True: x = max(x, leaf(x), key=leaf)\n"
	"def spins():\n"
	"    x = 0\n"
	"    while True: x += 1\n"
	"def inner(): (calls if sys.argv[1] == 'calls' else spins)()\n"
	"def outer(): sorted([1], key=lambda x: inner())\n"
	"codes = [leaf, calls, spins, inner, outer.__code__.co_consts, outer]\n"
	"find = lambda f: f.__code__ if hasattr(f, '__code__') else [c for c in f if hasattr(c, 'co_code')][0]\n"
	"print(ctypes.pythonapi.PyThreadState_Get(), *[id(find(f)) for f in codes], id(sys._getframe().f_code), flush=True)\n"
	"outer()\n";

enum { LEAF, CALLS, SPINS, INNER, LAMBDA, OUTER, MODULE, CODES };

struct program {
	pid_t pid;
	uint64_t thread, code[CODES];
};

static void program_start(struct program *p, const char *how)
{
	int out[2];
	FILE *said;

	assert_int_equal(pipe(out), 0);
	p->pid = fork();
	if (!p->pid) {
		dup2(out[1], 1);
		execl(PYTHON, PYTHON, "-c", script, how, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	said = fdopen(out[0], "r");
	assert_int_equal(fscanf(said, "%lu", &p->thread), 1);
	for (int i = 0; i < CODES; i++)
		assert_int_equal(fscanf(said, "%lu", &p->code[i]), 1);
	fclose(said);
}

static bool layout_find(struct python_layout *l)
{
	const struct index_finder no_lines = {.lines = INDEX_LINES_NONE};
	cleanup_fd int fd = open(PYTHON, O_RDONLY | O_CLOEXEC);
	struct index_result r = {0};
	struct image *img = NULL;
	const void *section;
	size_t size = 0;

	if (fd < 0 || indexer_run_fd(fd, &no_lines, &r, NULL) ||
	    image_open_bytes(r.data, r.size, &img, NULL))
		return false;
	if (image_part(img, IMAGE_SECTION_PYTHON, &section, &size) && size == sizeof(*l))
		memcpy(l, section, size);
	else
		size = 0;
	image_close(img);
	free(r.data);
	return size;
}

static int attach(int prog)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_freq = 997,
				       .freq = 1};
	int n = 0;

	for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		int fd =
			(int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0 && !ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) &&
		    !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			n++; /* closed with this program */
	}
	return n;
}

/* Takes WANTED samples of the program. */
static void sample(struct python_check_bpf *skel, const struct program *p)
{
	struct python_check *c = &skel->bss->check;
	time_t until = time(NULL) + LONGEST;

	memset(c, 0, sizeof(*c));
	c->thread = p->thread;
	__atomic_store_n(&c->tgid, (uint32_t)p->pid, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&c->taken, __ATOMIC_SEQ_CST) < WANTED && time(NULL) < until)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	assert_true(c->taken >= WANTED);
}

static size_t index_of(const struct program *p, uint64_t code)
{
	size_t i = 0;

	while (i < CODES && p->code[i] != code)
		i++;
	return i;
}

/* The one sample in flight when the program was killed may be torn. */
static void check_spins(struct python_check_bpf *skel, const struct program *p)
{
	static const size_t want[] = {SPINS, INNER, LAMBDA, OUTER, MODULE};
	size_t whole = 0;

	for (size_t i = 0; i < WANTED; i++) {
		const struct python_check_sample *s = &skel->bss->check.samples[i];
		bool right = s->step == END && s->n == 5;

		for (size_t k = 0; k < 5 && right; k++)
			right = s->code[k] == p->code[want[k]];
		whole += right;
		if (s->step == END && !right)
			assert_true(s->n && s->code[s->n - 1] ==
						    p->code[MODULE]); /* it had not begun to spin */
	}
	assert_true(whole >= WANTED * 98 / 100);
}

/* Caller of each function; calls are right even where a frame was just pushed or popped. */
static void check_calls(struct python_check_bpf *skel, const struct program *p)
{
	size_t whole = 0, leaves = 0;

	for (size_t i = 0; i < WANTED; i++) {
		const struct python_check_sample *s = &skel->bss->check.samples[i];

		for (size_t k = 0; k + 1 < s->n; k++) {
			size_t callee = index_of(p, s->code[k]),
			       caller = index_of(p, s->code[k + 1]);

			assert_true(callee < CODES && caller == (callee == LEAF  ? CALLS :
								 callee == CALLS ? INNER :
										   callee + 1));
			leaves += callee == LEAF;
		}
		whole += s->step == END && s->code[s->n - 1] == p->code[MODULE];
	}
	assert_true(whole >= WANTED * 98 / 100);
	assert_true(leaves > 0);
}

TEST(the_frames_of_a_running_thread_are_found_in_the_kernel)
{
	struct python_layout layout;
	struct python_check_bpf *skel;
	struct program p;

	if (geteuid())
		skip_missing("root");
	if (!layout_find(&layout))
		skip_missing("a python3 that is linked statically");
	skel = python_check_bpf__open_and_load();
	assert_non_null(skel);
	memcpy(&skel->bss->layout, &layout, sizeof(layout));
	assert_true(attach(bpf_program__fd(skel->progs.check_sample)) > 0);
	program_start(&p, "spins");
	sample(skel, &p);
	check_spins(skel, &p);
	program_start(&p, "calls");
	sample(skel, &p);
	check_calls(skel, &p);
	python_check_bpf__destroy(skel);
}
