/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plantstore: a store with two windows of one noisy load, of which the second has known
 * differences. For tests of what finds differences.
 *
 *   plantstore DIR --seed N [--at UTC_SECONDS] [--window SECONDS] [--steady] [--bursty]
 *
 * The windows follow each other and end at --at; buckets of 10 s, 499 Hz. FUNCTIONS functions,
 * each below two of 40 callers, below one of 12 services, below main; their CPU time follows
 * Zipf's law. Samples of each bucket and stack are Poisson. In addition the load of one service in
 * four varies by 10 % (--bursty: 30 %), neighbouring buckets alike (r = 0.7). Unless --steady, in
 * the second window
 *
 *   planted_20    uses 20 % more, of some 2 200 samples
 *   planted_5     uses 5 % more, of some 22 000
 *   planted_gone  is absent
 *   planted_new   calls planted_callee, which others called before
 *
 * Prints as JSON the two windows and their contents.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define FUNCTIONS 400
#define CALLERS   40
#define SERVICES  12
#define BUCKET_S  10
#define PERIOD    (NSEC_PER_SEC / 499)
#define AMONG     250000.0 /* samples of the common functions in a window */

struct leaf {
	uint32_t series, service;
	double rate[2]; /* samples a bucket, in each window */
	uint64_t n[2];
	char name[24];
};

struct plan {
	const char *dir;
	uint64_t seed;
	int64_t at_s, window_s;
	bool steady, bursty;
};

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static uint64_t poisson(double mean)
{
	double left, product = 1;
	uint64_t n = 0;

	if (mean > 60) /* the sum of two is Poisson again */
		return poisson(mean / 2) + poisson(mean / 2);
	left = exp(-mean);
	while ((product *= uniform()) > left)
		n++;
	return n;
}

static uint32_t frame(struct store_writer *w, uint32_t image, const char *name, bool leaf)
{
	struct store_function fn = {.name = name, .image = image, .file = "load.c", .line = 1};
	struct store_frame fr = {
		.image = image, .function = store_function(w, &fn), .leaf = leaf, .line = 2};

	for (const char *p = name; *p; p++)
		fr.offset = (fr.offset * 31 + (unsigned char)*p) & 0xffffff;
	return store_frame(w, &fr);
}

struct making {
	struct store_writer *w;
	uint32_t run, process, image;
	struct leaf *leaves;
	size_t n, cap;
	double buckets;
};

/* `total` samples a window, before and after, of a function below a caller. */
static void add_leaf(struct making *m, const char *name, const char *caller, uint32_t service,
		     double before, double after)
{
	char service_name[24];
	uint32_t frames[4], stack;
	struct leaf *l;

	snprintf(service_name, sizeof(service_name), "service_%u", service);
	frames[0] = frame(m->w, m->image, "main", false);
	frames[1] = frame(m->w, m->image, service_name, false);
	frames[2] = frame(m->w, m->image, caller, false);
	frames[3] = frame(m->w, m->image, name, true);
	stack = store_stack(m->w, frames, 4);
	mem_grow(m->leaves, m->n, m->cap);
	l = &m->leaves[m->n++];
	*l = (struct leaf){.service = service,
			   .rate = {before / m->buckets, after / m->buckets},
			   .series = store_series(m->w, m->run, m->process, "load", 1000, stack,
						  STORE_KIND_CPU)};
	snprintf(l->name, sizeof(l->name), "%s", name);
}

static void add_leaves(struct making *m, bool steady)
{
	double zipf = 0;
	char name[24], caller[24];

	for (uint32_t i = 0; i < FUNCTIONS; i++)
		zipf += 1.0 / (i + 3);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		double samples = AMONG / (i + 3) / zipf;

		snprintf(name, sizeof(name), "function_%u", i);
		for (uint32_t k = 0; k < 2; k++) {
			snprintf(caller, sizeof(caller), "caller_%u", (i * 7 + k * 13) % CALLERS);
			add_leaf(m, name, caller, (i + k) % SERVICES, samples / 2, samples / 2);
		}
	}
	add_leaf(m, "planted_20", "caller_1", 1, 2200, steady ? 2200 : 2640);
	add_leaf(m, "planted_5", "caller_2", 2, 22000, steady ? 22000 : 23100);
	add_leaf(m, "planted_gone", "caller_3", 3, 300, steady ? 300 : 0);
	add_leaf(m, "planted_callee", "caller_5", 5, 1000, steady ? 1000 : 700);
	if (!steady)
		add_leaf(m, "planted_callee", "planted_new", 5, 0, 300);
}

/* exp of an AR(1) process with mean 1 */
static void wander(double *level, double *load, double sd)
{
	for (uint32_t s = 0; s < SERVICES; s++) {
		level[s] = 0.7 * level[s] + sqrt(1 - 0.49) * normal();
		load[s] = s % 4 ? 1 : exp(sd * level[s] - sd * sd / 2);
	}
}

static void fill(struct making *m, const struct plan *p)
{
	double level[SERVICES], load[SERVICES];
	int64_t from_s = p->at_s - 2 * p->window_s;

	for (uint32_t s = 0; s < SERVICES; s++)
		level[s] = normal();
	for (int64_t ts = from_s; ts < p->at_s; ts += BUCKET_S) {
		int window = ts >= from_s + p->window_s;

		wander(level, load, p->bursty ? 0.3 : 0.1);
		for (size_t i = 0; i < m->n; i++) {
			struct leaf *l = &m->leaves[i];
			uint64_t n = poisson(l->rate[window] * load[l->service]);

			l->n[window] += n;
			if (n)
				store_add(m->w, l->series, ts * NSEC_PER_SEC, n);
		}
	}
	store_run_until(m->w, m->run, p->at_s * NSEC_PER_SEC);
}

static void tell(const struct making *m, const struct plan *p)
{
	int64_t from_s = p->at_s - 2 * p->window_s;
	const char *comma = "";

	printf("{\"from\": %lld, \"middle\": %lld, \"to\": %lld, \"planted\": [", (long long)from_s,
	       (long long)(from_s + p->window_s), (long long)p->at_s);
	for (size_t i = 0; i < m->n; i++) {
		if (strncmp(m->leaves[i].name, "planted", 7))
			continue;
		printf("%s{\"function\": \"%s\", \"before\": %llu, \"after\": %llu}", comma,
		       m->leaves[i].name, (unsigned long long)m->leaves[i].n[0],
		       (unsigned long long)m->leaves[i].n[1]);
		comma = ", ";
	}
	printf("]}\n");
}

static int make(const struct plan *p, struct err *e)
{
	struct store_writer_opts o = {.dir = p->dir, .max_bytes = 256u << 20};
	struct store_run run = {.family = "cpu",
				.options = "sonde-cpu",
				.scope = STORE_SCOPE_HOST,
				.bucket_s = BUCKET_S,
				.period_ns = PERIOD,
				.cpus = 8,
				.from_ns = (p->at_s - 2 * p->window_s) * NSEC_PER_SEC,
				.boot_offset_ns = clock_boot_offset_ns()};
	struct store_process process = {.pid = 1000,
					.ppid = 1,
					.exec_id = 1,
					.start_ns = run.from_ns,
					.start_ticks = 1,
					.comm = "load",
					.exe = "/usr/bin/load",
					.args = "load",
					.cgroup = "/",
					.unit = ""};
	struct store_image image = {STORE_IMAGE_ELF, "load", "/usr/bin/load",
				    "0101010101010101010101010101010101010101", "1"};
	struct making m = {.buckets = (double)p->window_s / BUCKET_S};
	int rc = store_writer_open(&o, &m.w, e);

	if (rc)
		return rc;
	m.run = store_run_begin(m.w, &run);
	m.process = store_process(m.w, &process);
	m.image = store_image(m.w, &image);
	add_leaves(&m, p->steady);
	fill(&m, p);
	tell(&m, p);
	free(m.leaves);
	return store_writer_close(m.w, 60000, e);
}

static const struct program PROGRAM = {
	.name = "plantstore",
	.usage = "DIR [options]",
	.about = "Makes a store of two windows, in the second of which known things are different.",
	.words = 1};

static const struct option OPTIONS[] = {
	{"seed", 0, OPTION_UINT, "N", "of all that is random", OPTION_AT(struct plan, seed)},
	{"at", 0, OPTION_UINT, "UTC_SECONDS", "where the second window ends",
	 OPTION_AT(struct plan, at_s), .max = INT32_MAX},
	{"window", 0, OPTION_UINT, "SECONDS", "how long each is", OPTION_AT(struct plan, window_s),
	 .min = BUCKET_S, .max = INT32_MAX},
	{"steady", 0, OPTION_FLAG, NULL, "nothing is different", OPTION_AT(struct plan, steady)},
	{"bursty", 0, OPTION_FLAG, NULL, "the load wanders by 30 %",
	 OPTION_AT(struct plan, bursty)},
	{0},
};

int main(int argc, char **argv)
{
	struct plan p = {.seed = 1, .at_s = 1795144200, .window_s = 600};
	struct option_words words;
	struct err e = {0};
	int rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &p}, 1, &words,
				 &e);

	if (!rc && !words.n)
		rc = err_set(&e, -EINVAL, EXIT_USAGE, "which folder?");
	if (rc) {
		options_release(NULL, 0, &words);
		return program_end(PROGRAM.name, rc, &e);
	}
	p.dir = words.items[0];
	p.at_s -= p.at_s % BUCKET_S;
	state = (p.seed + 1) * 0x9e3779b97f4a7c15ull;
	for (int i = 0; i < 20; i++)
		uniform();
	rc = make(&p, &e);
	options_release(NULL, 0, &words);
	return program_end(PROGRAM.name, rc, &e);
}
