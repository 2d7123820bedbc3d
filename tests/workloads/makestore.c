/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makestore: a store whose contents are known, made through store/write/writer.h. For tests of what
 * reads a store.
 *
 *   makestore DIR [--rows N] [--at UTC_SECONDS] [--hostile] [--two-runs] [--segments N] [--stacks
 *   N] [--live]
 *
 * It prints, as JSON, what it put there. The plain store: 10 processes (pid 1000...) in three
 * containers and none, two threads each, `--stacks` stacks (default 200) of 3 to 30 frames over
 * five modules; one sample in eight is unnamed. Row i falls on second i * span / N of the 600 s
 * that end at --at (default: now), adds 1 + i % 3 samples, at 99 Hz. --hostile adds a process and
 * frames with names that try to break out of their surroundings. --two-runs adds a run at 499 Hz, 1
 * s buckets, over the middle 100 s, with the same processes: in both runs each process is busy all
 * the time (one core), so that cpu_ns is known for every window. --live does not close the store:
 * it ends as a kill -9 would.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define SPAN_S     600
#define PROCESSES  10
#define MODULES    5
#define FUNCTIONS  300
#define PERIOD_99  (NSEC_PER_SEC / 99)
#define PERIOD_499 (NSEC_PER_SEC / 499)

struct plan {
	const char *dir;
	long rows, stacks, segments;
	int64_t at_s;
	bool hostile, two_runs, live;
};

struct ids { /* all of one epoch */
	uint32_t epoch;
	uint32_t process[PROCESSES], hostile_process, self_process;
	uint32_t *stack;
	uint32_t hostile_stack[16];
	size_t n_hostile;
};

static const char *const hostile_names[] = {
	"</script><script>alert(1)</script>",
	"quote\"s and 'apostrophes' `ticks` \\ back",
	"tab\tnewline\nreturn\resc\x1b[31mred",
	"\xf0\x9f\x94\xa5 flame \xe2\x80\xae rtl",
	"invalid \xff\xfe\xc0\xaf utf-8",
	"semi;colon;and,comma",
	"=cmd|' /C calc'!A0",
	"%s%n%x <img src=x onerror=alert(1)>",
	"]]> --> */ {{7*7}} ${x}",
	"NULL",
	"-- drop table sample;",
};
#define N_HOSTILE (sizeof(hostile_names) / sizeof(hostile_names[0]))

static uint32_t lcg(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

static char *long_cpp_name(void)
{
	char *s = mem_alloc(4096 + 1);
	size_t n = 0;

	n += (size_t)snprintf(s, 4097, "std::map<");
	while (n < 4000)
		n += (size_t)snprintf(s + n, 4097 - n,
				      "std::pair<const std::string, std::vector<int> >, ");
	snprintf(s + n, 4097 - n, "int>::operator[](int&&) const");
	return s;
}

static uint32_t make_image(struct store_writer *w, int m)
{
	static const struct store_image images[MODULES] = {
		{STORE_IMAGE_ELF, "server", "/usr/bin/server",
		 "0101010101010101010101010101010101010101", "01-01"},
		{STORE_IMAGE_ELF, "libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6",
		 "0202020202020202020202020202020202020202", "02-02"},
		{STORE_IMAGE_KERNEL, "[kernel]", "[kernel]", "", ""},
		{STORE_IMAGE_JIT, "[jit]", "/tmp/perf-1000.map", "", ""},
		{STORE_IMAGE_MODULE, "[ext4]", "[ext4]", "", ""},
	};

	return store_image(w, &images[m]);
}

static uint32_t make_process(struct store_writer *w, int i, int64_t start_s)
{
	static const char *const names[3] = {"web-1", "db-1", "</script>\"'"};
	char comm[16], exe[64], args[128], id[65], cgroup[128];
	struct store_container c = {.runtime = "docker",
				    .runtime_id = id,
				    .name = names[i % 4 % 3],
				    .image = "debian:12",
				    .cgroup = cgroup};
	struct store_process p = {.pid = 1000u + (uint32_t)i,
				  .ppid = 1,
				  .uid = 1000,
				  .exec_id = 1,
				  .start_ns = start_s * NSEC_PER_SEC,
				  .start_ticks = 1000000u * (uint64_t)(i + 1),
				  .comm = comm,
				  .exe = exe,
				  .args = args,
				  .cgroup = cgroup,
				  .unit = ""};

	snprintf(comm, sizeof(comm), "server-%d", i);
	snprintf(exe, sizeof(exe), "/usr/bin/server");
	snprintf(args, sizeof(args), "server --number %d --port %d", i, 8000 + i);
	snprintf(id, sizeof(id), "%064d", i % 4);
	snprintf(cgroup, sizeof(cgroup), i % 4 == 3 ? "/user.slice" : "/docker/%s", id);
	p.container = i % 4 == 3 ? 0 : store_container(w, &c);
	return store_process(w, &p);
}

static uint32_t make_frame(struct store_writer *w, uint64_t *rnd, bool leaf)
{
	uint32_t pick = lcg(rnd) % FUNCTIONS;
	uint32_t image = make_image(w, (int)(pick % MODULES));
	char name[48];
	struct store_function fn = {
		.name = name, .image = image, .file = pick % 3 ? "server.c" : "", .line = pick};
	struct store_frame fr = {.image = image, .offset = 0x1000ull * pick, .leaf = leaf};

	snprintf(name, sizeof(name), "function_%03u", pick);
	if (pick % 8 != 7) {
		fr.function = store_function(w, &fn);
		fr.line = pick % 3 ? pick + 1 : 0;
	}
	if (!leaf)
		fr.offset += lcg(rnd) % 16 * 4;
	return store_frame(w, &fr);
}

/* Half of each stack is shared with the one before it, as of programs that branch late. */
static void make_stacks(struct store_writer *w, const struct plan *p, struct ids *ids)
{
	uint64_t rnd = 42;
	uint32_t frames[32];
	size_t depth, keep = 0;

	for (long i = 0; i < p->stacks; i++) {
		depth = 3 + lcg(&rnd) % 28;
		if (keep > depth - 1)
			keep = depth - 1;
		for (size_t k = keep; k < depth; k++)
			frames[k] = make_frame(w, &rnd, k == depth - 1);
		ids->stack[i] = store_stack(w, frames, depth);
		keep = depth / 2;
	}
}

static void make_hostile(struct store_writer *w, struct ids *ids, int64_t start_s)
{
	char *cpp = long_cpp_name();
	struct store_container c = {.runtime = "docker",
				    .runtime_id = "ffff\"<>",
				    .name = hostile_names[0],
				    .image = hostile_names[1],
				    .cgroup = hostile_names[2]};
	struct store_process p = {.pid = 6666,
				  .ppid = 1,
				  .exec_id = 1,
				  .start_ns = start_s * NSEC_PER_SEC,
				  .start_ticks = 66,
				  .comm = "\xff</script>\"\n'",
				  .exe = hostile_names[0],
				  .args = hostile_names[2],
				  .cgroup = hostile_names[3],
				  .unit = hostile_names[4]};
	uint32_t frames[2];

	p.container = store_container(w, &c);
	ids->hostile_process = store_process(w, &p);
	for (size_t i = 0; i <= N_HOSTILE; i++) {
		const char *name = i < N_HOSTILE ? hostile_names[i] : cpp;
		struct store_image im = {STORE_IMAGE_ELF, i < N_HOSTILE ? name : "libx.so", name,
					 "\"><", "k"};
		struct store_function fn = {
			.name = name, .image = store_image(w, &im), .file = name, .line = 1};
		struct store_frame fr = {.image = fn.image, .offset = i, .line = 2};

		frames[0] = store_frame(w, &fr); /* not named: module+offset */
		fr.function = store_function(w, &fn);
		fr.leaf = true;
		frames[1] = store_frame(w, &fr);
		ids->hostile_stack[i] = store_stack(w, frames, 2);
	}
	ids->n_hostile = N_HOSTILE + 1;
	free(cpp);
}

static void make_dictionary(struct store_writer *w, const struct plan *p, struct ids *ids)
{
	struct store_process self = {.pid = 4242,
				     .ppid = 1,
				     .exec_id = 1,
				     .start_ns = p->at_s * NSEC_PER_SEC,
				     .start_ticks = 4242,
				     .comm = "sonde-cpu",
				     .exe = "/usr/bin/sonde-cpu",
				     .args = "sonde-cpu",
				     .cgroup = "/",
				     .unit = "",
				     .self = true};

	ids->epoch = store_epoch(w);
	for (int i = 0; i < PROCESSES; i++)
		ids->process[i] = make_process(w, i, p->at_s - SPAN_S);
	ids->self_process = store_process(w, &self);
	make_stacks(w, p, ids);
	if (p->hostile)
		make_hostile(w, ids, p->at_s - SPAN_S);
}

struct tallies {
	uint64_t samples, two_samples, self_samples;
};

static void add(struct store_writer *w, const struct plan *p, struct ids *ids, uint32_t run,
		uint32_t which, uint32_t tid, const char *thread, long stack, int64_t utc_ns,
		uint64_t n)
{
	for (int tries = 0; tries < 3; tries++) {
		uint32_t process, st, series;

		if (ids->epoch != store_epoch(w))
			make_dictionary(w, p, ids);
		process = which < PROCESSES  ? ids->process[which] :
			  which == PROCESSES ? ids->hostile_process :
					       ids->self_process;
		st = which == PROCESSES ? ids->hostile_stack[(size_t)stack % ids->n_hostile] :
					  ids->stack[stack % p->stacks];
		series = store_series(w, run, process, thread, tid, st, STORE_KIND_CPU);
		if (store_add(w, series, utc_ns, n) == 0)
			return;
	}
}

static void fill_rows(struct store_writer *w, const struct plan *p, struct ids *ids, uint32_t run,
		      struct tallies *t)
{
	int64_t from_ns = (p->at_s - SPAN_S) * NSEC_PER_SEC;
	struct store_cost cost = {.program = "sonde-cpu",
				  .cpu_ns = 1000000,
				  .runs = 0,
				  .rss_bytes = 20 << 20,
				  .private_bytes = 8 << 20,
				  .map_bytes = 1 << 20};
	uint64_t rnd = 7;

	for (long i = 0; i < p->rows; i++) {
		int64_t utc_ns = from_ns + i * (SPAN_S * NSEC_PER_SEC / p->rows);
		uint32_t which = lcg(&rnd) % PROCESSES;
		long stack = (long)((uint64_t)lcg(&rnd) % (uint64_t)p->stacks);
		uint64_t n = 1 + (uint64_t)i % 3;

		if (p->hostile && i % 16 == 0)
			which = PROCESSES;
		else if (i % 64 == 1)
			which = PROCESSES + 1;
		t->self_samples += which == PROCESSES + 1 ? n : 0;
		t->samples += n;
		add(w, p, ids, run, which, 1000 + which * 10 + (uint32_t)i % 2,
		    i % 2 ? "worker" : "main", stack, utc_ns, n);
		if (i % 4096 == 4095) {
			store_cost(w, run, utc_ns, &cost);
			store_flush(w);
		}
	}
	store_cost(w, run, from_ns + (SPAN_S - 1) * NSEC_PER_SEC, &cost);
	store_loss(w, run, from_ns, "ring", 7);
	store_unwound(w, run, from_ns, "/usr/bin/server", 0, 1, t->samples - 20);
	store_unwound(w, run, from_ns, "/usr/bin/server", make_image(w, 1), 8, 15);
	store_unwound(w, run, from_ns, "/usr/bin/server", make_image(w, 2), 5, 5);
	store_run_until(w, run, p->at_s * NSEC_PER_SEC);
}

/* Each process busy all the time: `hz` samples a second. */
static void fill_busy(struct store_writer *w, const struct plan *p, struct ids *ids, uint32_t run,
		      int64_t from_s, int64_t to_s, uint32_t hz, uint64_t *samples)
{
	for (int64_t s = from_s; s < to_s; s++) {
		for (uint32_t k = 0; k < hz; k++)
			for (uint32_t i = 0; i < PROCESSES; i++)
				add(w, p, ids, run, i, 1000 + i * 10, "main", (long)(k * 7 + i),
				    s * NSEC_PER_SEC + (int64_t)k * NSEC_PER_SEC / hz, 1);
		store_flush(w);
	}
	store_run_until(w, run, to_s * NSEC_PER_SEC);
	*samples += (uint64_t)(to_s - from_s) * hz * PROCESSES;
}

static uint32_t begin(struct store_writer *w, const char *options, uint32_t bucket_s,
		      uint64_t period_ns, int64_t from_s)
{
	struct store_run r = {.family = "cpu",
			      .options = options,
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = bucket_s,
			      .period_ns = period_ns,
			      .cpus = 2,
			      .from_ns = from_s * NSEC_PER_SEC,
			      .boot_offset_ns = clock_boot_offset_ns()};

	return store_run_begin(w, &r);
}

static int make(const struct plan *p, struct err *e)
{
	struct store_writer_opts o = {
		.dir = p->dir,
		.max_bytes = 256u << 20,
		.segment_bytes =
			p->segments > 1 ? (uint64_t)p->rows * 16 / (uint64_t)p->segments : 0};
	struct ids ids = {.stack = mem_array((size_t)p->stacks, sizeof(uint32_t))};
	struct store_writer *w;
	struct tallies t = {0};
	int64_t from_s = p->at_s - SPAN_S;
	int rc = store_writer_open(&o, &w, e);

	if (rc)
		goto out;
	make_dictionary(w, p, &ids);
	if (p->two_runs) {
		uint32_t coarse = begin(w, "sonde-cpu", 10, PERIOD_99, from_s);
		uint32_t fine = begin(w, "sonde-cpu --freq 499 --duration 100s", 1, PERIOD_499,
				      from_s + 253);

		fill_busy(w, p, &ids, coarse, from_s, p->at_s, 99, &t.samples);
		fill_busy(w, p, &ids, fine, from_s + 253, from_s + 353, 499, &t.two_samples);
	} else {
		fill_rows(w, p, &ids, begin(w, "sonde-cpu --duration 10m", 1, PERIOD_99, from_s),
			  &t);
	}
	if (p->live) {
		struct store_writer_stat st;

		store_flush(w);
		do {
			usleep(10000);
			store_writer_stat(w, &st);
		} while (st.stored < t.samples + t.two_samples);
	}
	printf("{\"from\": %lld, \"to\": %lld, \"samples\": %llu, \"fine_samples\": %llu, \"self_samples\": %llu,"
	       " \"period_ns\": %lld, \"processes\": %d}\n",
	       (long long)from_s, (long long)p->at_s, (unsigned long long)t.samples,
	       (unsigned long long)t.two_samples, (unsigned long long)t.self_samples,
	       (long long)PERIOD_99, PROCESSES);
	if (p->live) {
		fflush(stdout);
		kill(getpid(), SIGKILL);
	}
	rc = store_writer_close(w, 60000, e);
out:
	free(ids.stack);
	return rc;
}

static const struct program PROGRAM = {.name = "makestore",
				       .usage = "DIR [options]",
				       .about = "Makes a store of a known load.",
				       .words = 1};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"rows", 0, OPTION_UINT, "N", "of samples", OPTION_AT(struct plan, rows), .min = 1, .max = INT32_MAX},
	{"at", 0, OPTION_UINT, "UTC_SECONDS", "where it ends (default now)", OPTION_AT(struct plan, at_s), .max = INT32_MAX},
	{"segments", 0, OPTION_UINT, "N", "about how many files", OPTION_AT(struct plan, segments), .max = INT32_MAX},
	{"stacks", 0, OPTION_UINT, "N", "how many are different", OPTION_AT(struct plan, stacks), .min = 1, .max = INT32_MAX},
	{"hostile", 0, OPTION_FLAG, NULL, "with names that strangers chose", OPTION_AT(struct plan, hostile)},
	{"two-runs", 0, OPTION_FLAG, NULL, "a coarse one, and a finer one within it", OPTION_AT(struct plan, two_runs)},
	{"live", 0, OPTION_FLAG, NULL, "its writer is killed", OPTION_AT(struct plan, live)},
	{0},
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct plan p = {
		.rows = 10000, .stacks = 200, .segments = 1, .at_s = clock_utc_ns() / NSEC_PER_SEC};
	struct option_words words;
	struct err e = {0};
	int rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &p}, 1, &words,
				 &e);

	if (!rc && !words.n)
		rc = err_set(&e, -EINVAL, EXIT_USAGE, "which folder?");
	if (!rc) {
		p.dir = words.items[0];
		rc = make(&p, &e);
	}
	options_release(NULL, 0, &words);
	return program_end(PROGRAM.name, rc, &e);
}
