/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makeday: a store as a busy host fills it in a day, for the benchmarks: 50 million samples in 24 h
 * (or as many hours as asked), buckets of 10 s, 50 processes in 18 containers, 20 000 stacks of 30
 * frames over 13 400 functions, popularity by Zipf's law (s = 1). A process has four hundred of the
 * stacks.
 *
 *   makeday DIR [--hours N] [--raw N] [--hz N]      ends at 2026-11-20T03:10:00Z; N samples a
 *   bucket (5790, a mix of hosts; 3040 are of 16
 *                                                   busy CPUs at 19 Hz)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define AT_S      1795144200
#define BUCKET_S  10
#define RAW       5790 /* samples a bucket */
#define HZ        99
#define PROCESSES 50
#define STACKS    20000
#define FUNCTIONS 13400
#define DEPTH     30

static uint64_t state = 88172645463325252ull;
static double sums[STACKS]; /* sums of popularity */

struct ids {
	uint32_t epoch, run;
	uint32_t process[PROCESSES];
	uint32_t stack[STACKS];
};

static uint32_t random_below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

static uint32_t pick_stack(void)
{
	double at = sums[STACKS - 1] * ((double)random_below(1u << 30) + 0.5) / (1u << 30);
	uint32_t low = 0, high = STACKS - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (sums[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t make_frame(struct store_writer *w, uint32_t function, bool leaf)
{
	struct store_image image = {STORE_IMAGE_ELF, "", "", "", ""};
	struct store_function fn = {.line = function};
	struct store_frame fr = {.leaf = leaf, .offset = function * 64ull};
	char name[64], module[32], path[64];

	snprintf(module, sizeof(module), "lib%u.so", function % 40);
	snprintf(path, sizeof(path), "/usr/lib/%s", module);
	snprintf(name, sizeof(name), "module%u::some_class::function_%u", function % 40, function);
	image.name = module;
	image.path = path;
	image.key = module;
	fn.name = name;
	fn.file = "source.cc";
	fr.image = fn.image = store_image(w, &image);
	fr.function = store_function(w, &fn);
	fr.line = fn.line + 1;
	return store_frame(w, &fr);
}

/* Stacks of one process share their beginnings, as programs do. */
static void make_dictionary(struct store_writer *w, struct ids *ids)
{
	uint32_t frames[DEPTH];

	state = 88172645463325252ull;
	ids->epoch = store_epoch(w);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		char id[65], name[32], cgroup[96];
		struct store_container c = {.runtime = "docker",
					    .runtime_id = id,
					    .name = name,
					    .image = "debian:12",
					    .cgroup = cgroup};
		struct store_process p = {.pid = 1000 + i,
					  .ppid = 1,
					  .exec_id = 1,
					  .start_ticks = 1 + i,
					  .comm = name,
					  .exe = "/usr/bin/server",
					  .args = "server",
					  .cgroup = cgroup,
					  .unit = ""};

		snprintf(id, sizeof(id), "%064u", i % 18);
		snprintf(name, sizeof(name), "container-%u", i % 18);
		snprintf(cgroup, sizeof(cgroup), "/docker/%s", id);
		p.container = store_container(w, &c);
		ids->process[i] = store_process(w, &p);
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t keep = i % 400 ? random_below(DEPTH - 2) : 0;

		for (uint32_t k = keep; k < DEPTH; k++)
			frames[k] = make_frame(w, random_below(FUNCTIONS), k == DEPTH - 1);
		ids->stack[i] = store_stack(w, frames, DEPTH);
	}
}

static int add(struct store_writer *w, struct ids *ids, int64_t ts)
{
	uint64_t kept = state;
	uint32_t stack, process;
	int rc = -ESTALE;

	for (int tries = 0; rc == -ESTALE && tries < 3; tries++) {
		if (ids->epoch != store_epoch(w)) {
			make_dictionary(w, ids);
			state = kept + 1;
		}
		stack = pick_stack();
		process = stack % PROCESSES;
		rc = store_add(w,
			       store_series(w, ids->run, ids->process[process], "main",
					    1000 + process, ids->stack[stack], STORE_KIND_CPU),
			       ts * NSEC_PER_SEC, 1);
	}
	return rc;
}

static int fill(struct store_writer *w, struct ids *ids, int64_t from_s, uint32_t raw,
		struct err *e)
{
	struct store_writer_stat st;

	for (int64_t ts = from_s; ts < AT_S; ts += BUCKET_S) {
		for (uint32_t i = 0; i < raw; i++)
			if (add(w, ids, ts))
				return err_set(e, -EIO, EXIT_STORE, "the store refuses samples");
		store_run_until(w, ids->run, (ts + BUCKET_S) * NSEC_PER_SEC);
		store_flush(w);
		for (store_writer_stat(w, &st); st.waiting_bytes > 64u << 20;
		     store_writer_stat(w, &st))
			nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	return 0;
}

struct sizes {
	long hours, raw, hz;
};

static int sizes_read(struct sizes *s, int argc, char **argv)
{
	for (int i = 2; i + 1 < argc; i += 2) {
		long *to = !strcmp(argv[i], "--hours") ? &s->hours :
			   !strcmp(argv[i], "--raw")   ? &s->raw :
			   !strcmp(argv[i], "--hz")    ? &s->hz :
							 NULL;

		if (!to)
			return -EINVAL;
		*to = atol(argv[i + 1]);
	}
	return argc < 2 || argc % 2 || s->hours < 1 || s->hours > 24 || s->raw < 1 ||
			       s->raw > 100000 || s->hz < 1 ?
		       -EINVAL :
		       0;
}

int main(int argc, char **argv)
{
	struct sizes size = {24, RAW, HZ};
	struct store_writer_opts o = {.dir = argc > 1 ? argv[1] : "", .max_bytes = 256u << 20};
	struct store_run r = {.family = "cpu",
			      .options = "sonde-cpu",
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = BUCKET_S,
			      .cpus = 16,
			      .boot_offset_ns = clock_boot_offset_ns()};
	struct ids *ids;
	struct store_writer *w;
	struct err e = {0};
	int64_t from_s;
	int rc;

	if (sizes_read(&size, argc, argv)) {
		fprintf(stderr, "makeday DIR [--hours N] [--raw N] [--hz N]\n");
		return EXIT_USAGE;
	}
	from_s = AT_S - size.hours * 3600;
	r.from_ns = from_s * NSEC_PER_SEC;
	r.period_ns = (uint64_t)(NSEC_PER_SEC / size.hz);
	for (uint32_t i = 0; i < STACKS; i++)
		sums[i] = (i ? sums[i - 1] : 0) + 1.0 / (i + 1);
	rc = store_writer_open(&o, &w, &e);
	if (rc)
		return err_report(&e, "makeday");
	ids = mem_alloc(sizeof(*ids));
	ids->run = store_run_begin(w, &r);
	make_dictionary(w, ids);
	rc = fill(w, ids, from_s, (uint32_t)size.raw, &e);
	if (!rc)
		rc = store_writer_close(w, 120000, &e);
	free(ids);
	return rc ? err_report(&e, "makeday") : 0;
}
