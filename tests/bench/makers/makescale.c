/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makescale: an hour of a large host as sonded records it with the families cpu, offcpu, host, net
 * and l7, for tests/bench/scale.py: one segment in DIR.
 *
 *   makescale DIR AT [--containers N] [--processes N] [--shorts N] [--operations N] [--stacks N]
 *             [--depth N] [--raw N] [--seconds N]
 *
 * AT: when the hour ends, seconds since 1970. Of the processes one in ten is busy; `shorts` are
 * processes that live for seconds, as a build or a CI job has them. `raw`: samples in ten seconds.
 * Busy ones have samples, waits, flows and requests in each bucket, the others one row in a minute.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"
#include "schema/facts/l7.h"
#include "schema/facts/net.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/requests.h"
#include "schema/store/write/waits.h"
#include "schema/store/write/writer.h"

#define BUCKET_S  10
#define FUNCTIONS 9000
#define CPUS      16

enum { RUN_CPU, RUN_OFFCPU, RUN_HOST, RUN_NET, RUN_L7, RUNS };
static const char *const FAMILIES[RUNS] = {"cpu", "offcpu", "host", "net", "l7"};

struct scale {
	long containers, processes, shorts, operations, stacks, depth, raw, seconds;
	struct store_writer *w;
	uint32_t run[RUNS], epoch;
	uint32_t *container, *process, *stack;
	int64_t from, ts; /* seconds since 1970 */
	int rc;
};

static uint64_t state = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

/* Small numbers come far more often than large ones. */
static uint32_t mostly_small(uint32_t n)
{
	const double x = (double)below(1u << 30) / (1u << 30);

	return (uint32_t)(x * x * x * n);
}

static long busy(const struct scale *s)
{
	return s->processes / 10 ? s->processes / 10 : 1;
}

static void note(struct scale *s, int rc)
{
	s->rc = rc && rc != -ESTALE ? rc : s->rc;
}

static void cgroup_of(long i, char out[96])
{
	snprintf(out, 96, "/docker/%064llx", (unsigned long long)i * 0x9e3779b97f4a7c15u);
}

static uint32_t frame_of(struct store_writer *w, uint32_t function, bool leaf)
{
	struct store_image image = {STORE_IMAGE_ELF, "", "", "", ""};
	struct store_function fn = {.line = function, .file = "source.cc"};
	struct store_frame fr = {.leaf = leaf, .offset = function * 64ull};
	char name[64], module[32], path[64];

	snprintf(module, sizeof(module), "lib%u.so", function % 60);
	snprintf(path, sizeof(path), "/usr/lib/%s", module);
	snprintf(name, sizeof(name), "module%u::some_class::function_%u", function % 60, function);
	image.name = image.key = module;
	image.path = path;
	fn.name = name;
	fr.image = fn.image = store_image(w, &image);
	fr.function = store_function(w, &fn);
	fr.line = fn.line + 1;
	return store_frame(w, &fr);
}

static void stacks(struct scale *s)
{
	uint32_t *frames = mem_alloc((size_t)s->depth * sizeof(*frames));

	for (long i = 0; i < s->stacks; i++) {
		const uint32_t keep = i % 100 ? below((uint32_t)s->depth - 1) : 0;

		for (uint32_t k = keep; k < s->depth; k++)
			frames[k] = frame_of(s->w, below(FUNCTIONS), k == s->depth - 1);
		s->stack[i] = store_stack(s->w, frames, (size_t)s->depth);
	}
	free(frames);
}

static void dictionary(struct scale *s)
{
	char cgroup[96], name[48], args[96];

	s->epoch = store_epoch(s->w);
	for (long i = 0; i < s->containers; i++) {
		struct store_container c = {.runtime = "docker",
					    .runtime_id = cgroup + 8,
					    .name = name,
					    .image = "registry/app:latest",
					    .cgroup = cgroup};

		cgroup_of(i, cgroup);
		snprintf(name, sizeof(name), "app-%ld", i);
		s->container[i] = store_container(s->w, &c);
	}
	for (long i = 0; i < s->processes; i++) {
		struct store_process p = {.pid = 1000 + (uint32_t)i,
					  .ppid = 1,
					  .exec_id = 2,
					  .start_ns = (s->from / 86400 * 86400) * NSEC_PER_SEC,
					  .start_ticks = 5000 + (uint64_t)i * 977,
					  .comm = name,
					  .exe = "/usr/lib/app/bin/worker",
					  .args = args,
					  .cgroup = cgroup,
					  .unit = "",
					  .container = s->container[i % s->containers]};

		cgroup_of(i % s->containers, cgroup);
		snprintf(name, sizeof(name), "worker-%ld", i % 90);
		snprintf(args, sizeof(args), "/usr/lib/app/bin/worker --listen %ld", 2000 + i);
		s->process[i] = store_process(s->w, &p);
	}
	stacks(s);
}

static uint32_t short_one(struct scale *s)
{
	char cgroup[96], args[96];
	const uint32_t pid = 100000 + below(3000000);
	const long c = (long)below((uint32_t)s->containers);
	struct store_process p = {.pid = pid,
				  .ppid = 1000,
				  .exec_id = 3,
				  .start_ns = s->ts * NSEC_PER_SEC,
				  .start_ticks = (uint64_t)s->ts * 100 + pid,
				  .comm = "cc1",
				  .exe = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1",
				  .args = args,
				  .cgroup = cgroup,
				  .unit = "",
				  .container = s->container[c]};

	cgroup_of(c, cgroup);
	snprintf(args, sizeof(args), "cc1 -quiet src/file_%u.c -O2", pid % 5000);
	return store_process(s->w, &p);
}

static int64_t now_ns(const struct scale *s)
{
	return s->ts * NSEC_PER_SEC;
}

static void sample(struct scale *s, uint32_t process, const char *thread, uint64_t n)
{
	const uint32_t stack = s->stack[mostly_small((uint32_t)s->stacks)];

	note(s, store_add(s->w,
			  store_series(s->w, s->run[RUN_CPU], process, thread, 0, stack,
				       STORE_KIND_CPU),
			  now_ns(s), n));
}

static void wait_row(struct scale *s, uint32_t process, uint32_t stack)
{
	static const enum store_wait_class CLASSES[] = {STORE_WAIT_POLL, STORE_WAIT_LOCK,
							STORE_WAIT_NETWORK, STORE_READY_WOKEN};
	const enum store_wait_class class = CLASSES[below(4)];
	const uint64_t n = 1 + below(400), one = 1000 + below(4000000);
	const uint32_t hist = (uint32_t)n;
	const uint32_t task = store_task(s->w, s->run[RUN_OFFCPU], process, "main", 0);
	struct store_wait x = {.class = class,
			       .n = n,
			       .total_ns = n * one,
			       .max_ns = 2 * one,
			       .hist = &hist,
			       .n_hist = 1,
			       .first_slot = hist_slot(one)};
	struct store_amount a = {.n = n, .value = n * one, .max = 2 * one};

	note(s, store_wait(s->w, task, now_ns(s), &x));
	note(s,
	     store_amount(s->w,
			  store_series_labelled(s->w, s->run[RUN_OFFCPU], process, "main", 0, stack,
						class == STORE_READY_WOKEN ? STORE_KIND_RUNQUEUE :
									     STORE_KIND_OFFCPU,
						class),
			  now_ns(s), &a));
}

static void fact(struct scale *s, int run, const struct fact *f, struct fact_row *row)
{
	note(s, store_fact(s->w, s->run[run], now_ns(s), f, row));
}

static void process_fact(struct scale *s, uint32_t process, bool is_busy)
{
	struct fact_row row = {0};

	fact_put(&row, PROCESS_ID, process);
	fact_put(&row, PROCESS_USER, is_busy ? 100000 + below(900000) : 0);
	fact_put(&row, PROCESS_SYSTEM, is_busy ? below(300000) : 0);
	fact_put(&row, PROCESS_MINFLT, below(100));
	fact_put(&row, PROCESS_MAJFLT, 0);
	fact_put(&row, PROCESS_READ_BYTES, is_busy ? below(1000) * 4096 : 0);
	fact_put(&row, PROCESS_WRITE_BYTES, is_busy ? below(1000) * 4096 : 0);
	fact_put(&row, PROCESS_RSS, (40ull + below(100)) << 20);
	fact_put(&row, PROCESS_THREADS, 1 + below(12));
	fact_put(&row, PROCESS_FDS, 8 + below(40));
	fact(s, RUN_HOST, &PROCESS_FACT, &row);
}

static void cgroup_fact(struct scale *s, long i)
{
	struct fact_row row = {0};
	char path[96];

	cgroup_of(i, path);
	fact_put_text(&row, CGROUP_PATH, path);
	fact_put(&row, CGROUP_CONTAINER, s->container[i]);
	fact_put_text(&row, CGROUP_UNIT, "");
	fact_put(&row, CGROUP_USER, below(8000000));
	fact_put(&row, CGROUP_SYSTEM, below(2000000));
	for (int c = CGROUP_MEM; c <= CGROUP_KERNEL; c++)
		fact_put(&row, c, (100ull + below(300)) << 20);
	for (int c = CGROUP_PSI_CPU; c <= CGROUP_PSI_IO_FULL; c++)
		fact_put(&row, c, below(100000));
	for (int c = CGROUP_READ_BYTES; c <= CGROUP_TX_PACKETS; c++)
		fact_put(&row, c, below(1000000));
	fact_put(&row, CGROUP_PIDS, 4 + below(60));
	fact(s, RUN_HOST, &CGROUP_FACT, &row);
}

static void host_fact(struct scale *s)
{
	struct fact_row row = {0};

	for (int i = 0; i < (int)HOST_N; i++)
		fact_put(&row, i, below(4000000));
	fact(s, RUN_HOST, &HOST_FACT, &row);
}

static void flow_fact(struct scale *s, long i)
{
	struct fact_row row = {0};
	char peer[32], port[8];

	snprintf(peer, sizeof(peer), "172.18.0.%ld", i % 250);
	snprintf(port, sizeof(port), "%ld", 5000 + i % 40);
	fact_put(&row, FLOW_PROCESS, s->process[i]);
	fact_put_text(&row, FLOW_SIDE, i % 2 ? "client" : "server");
	fact_put_text(&row, FLOW_PROTOCOL, "tcp");
	fact_put_text(&row, FLOW_PEER, peer);
	fact_put_text(&row, FLOW_PORT, port);
	fact_put(&row, FLOW_MATE, s->process[(i * 7 + 1) % s->processes]);
	fact_put_text(&row, FLOW_OWNER, "opener");
	fact_put(&row, FLOW_CONTAINER, s->container[i % s->containers]);
	fact_put(&row, FLOW_ATTEMPTS, 1);
	fact_put(&row, FLOW_OPENED, 1);
	fact_put(&row, FLOW_OPEN_NOW, 1 + below(4));
	fact_put(&row, FLOW_TX, below(1000000));
	fact_put(&row, FLOW_RX, below(1000000));
	fact(s, RUN_NET, &FLOW_FACT, &row);
}

static void request(struct scale *s, long i)
{
	const uint64_t n = 1 + below(300), one = 200 + below(80000) * 1000ull;
	const uint32_t steps = (uint32_t)n;
	char service[32], operation[64];
	struct store_request r = {.process = s->process[i % busy(s)],
				  .side = i % 2 ? STORE_SIDE_CLIENT : STORE_SIDE_SERVER,
				  .protocol = i % 3 ? "http" : "postgresql",
				  .service = service,
				  .operation = operation,
				  .status = "200",
				  .n = n,
				  .total_ns = n * one,
				  .max_ns = 2 * one,
				  .request_bytes = n * 300,
				  .response_bytes = n * 4000,
				  .steps = &steps,
				  .n_steps = 1,
				  .first_step = hist_step(one)};

	snprintf(service, sizeof(service), "172.18.0.%ld:8080", i % 250);
	snprintf(operation, sizeof(operation), "GET /api/v1/resource-%ld/*/items", i);
	note(s, store_request(s->w, s->run[RUN_L7], now_ns(s), &r));
}

static void idle_processes(struct scale *s)
{
	for (long i = busy(s); i < s->processes; i++)
		if ((s->ts / BUCKET_S + i) % 6 == 0)
			process_fact(s, s->process[i], false);
}

static void bucket(struct scale *s)
{
	const long shorts = s->shorts * BUCKET_S / 3600;

	if (s->epoch != store_epoch(s->w))
		dictionary(s);
	host_fact(s);
	for (long i = 0; i < s->containers; i++)
		cgroup_fact(s, i);
	for (long i = 0; i < busy(s); i++) {
		process_fact(s, s->process[i], true);
		for (int k = 0; k < 3; k++)
			wait_row(s, s->process[i], s->stack[mostly_small((uint32_t)s->stacks)]);
		flow_fact(s, i);
	}
	idle_processes(s);
	for (long i = 0; i < shorts; i++) {
		const uint32_t p = short_one(s);

		process_fact(s, p, true);
		sample(s, p, "cc1", 2);
	}
	for (long i = 0; i < s->raw; i++)
		sample(s, s->process[mostly_small((uint32_t)busy(s))], "main", 1);
	for (long i = 0; i < s->operations; i++)
		if (below(4) == 0)
			request(s, i);
	for (int r = 0; r < RUNS; r++)
		store_run_until(s->w, s->run[r], (s->ts + BUCKET_S) * NSEC_PER_SEC);
	store_flush(s->w);
}

static void wait_for_writer(struct scale *s)
{
	struct store_writer_stat st;

	for (store_writer_stat(s->w, &st); st.queued_bytes > 64u << 20;
	     store_writer_stat(s->w, &st))
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static int options(struct scale *s, int argc, char **argv)
{
	static const struct {
		const char *name;
		size_t at;
	} NAMES[] = {{"--containers", offsetof(struct scale, containers)},
		     {"--processes", offsetof(struct scale, processes)},
		     {"--shorts", offsetof(struct scale, shorts)},
		     {"--operations", offsetof(struct scale, operations)},
		     {"--stacks", offsetof(struct scale, stacks)},
		     {"--depth", offsetof(struct scale, depth)},
		     {"--raw", offsetof(struct scale, raw)},
		     {"--seconds", offsetof(struct scale, seconds)}};

	for (int i = 3; i + 1 < argc; i += 2) {
		size_t k = 0;

		while (k < sizeof(NAMES) / sizeof(NAMES[0]) && strcmp(argv[i], NAMES[k].name) != 0)
			k++;
		if (k == sizeof(NAMES) / sizeof(NAMES[0]))
			return -EINVAL;
		*(long *)((char *)s + NAMES[k].at) = atol(argv[i + 1]);
	}
	return argc < 3 || argc % 2 == 0 || s->depth < 2 || s->containers < 1 || s->processes < 1 ||
			       s->stacks < 1 ?
		       -EINVAL :
		       0;
}

static void begin(struct scale *s)
{
	for (int r = 0; r < RUNS; r++) {
		struct store_run run = {.family = FAMILIES[r],
					.options = "sonded",
					.scope = STORE_SCOPE_HOST,
					.bucket_s = BUCKET_S,
					.cpus = CPUS,
					.period_ns = r == RUN_CPU ? NSEC_PER_SEC / 19 : 0,
					.from_ns = s->from * NSEC_PER_SEC,
					.boot_offset_ns = clock_boot_offset_ns()};

		s->run[r] = store_run_begin(s->w, &run);
	}
	s->container = mem_alloc((size_t)s->containers * sizeof(*s->container));
	s->process = mem_alloc((size_t)s->processes * sizeof(*s->process));
	s->stack = mem_alloc((size_t)s->stacks * sizeof(*s->stack));
	dictionary(s);
}

int main(int argc, char **argv)
{
	struct scale s = {.containers = 60,
			  .processes = 1000,
			  .operations = 300,
			  .stacks = 5000,
			  .depth = 30,
			  .raw = 1500,
			  .seconds = 3600};
	/* a dictionary that is larger would be forgotten */
	struct store_writer_opts o = {.dir = argc > 1 ? argv[1] : "",
				      .max_bytes = 6ull << 30,
				      .segment_bytes = 8ull << 30,
				      .segment_s = 1u << 30};
	struct err e = {0};
	int rc;

	if (options(&s, argc, argv)) {
		fprintf(stderr,
			"makescale DIR AT [--containers N] [--processes N] [--shorts N] "
			"[--operations N] [--stacks N] [--depth N] [--raw N] [--seconds N]\n");
		return EXIT_USAGE;
	}
	state += (uint64_t)atoll(argv[2]);
	s.ts = s.from = atoll(argv[2]) - s.seconds;
	rc = store_writer_open(&o, &s.w, &e);
	if (rc)
		return err_report(&e, "makescale");
	begin(&s);
	for (; s.ts < s.from + s.seconds; s.ts += BUCKET_S) {
		bucket(&s);
		wait_for_writer(&s);
	}
	rc = store_writer_close(s.w, 120000, &e);
	if (!rc && s.rc)
		rc = err_set(&e, s.rc, EXIT_STORE, "the store refuses rows");
	free(s.container);
	free(s.process);
	free(s.stack);
	return rc ? err_report(&e, "makescale") : 0;
}
