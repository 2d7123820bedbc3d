/* SPDX-License-Identifier: Apache-2.0 */
/* What an archive keeps of samples and amounts says of any range what the rows say. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/store/archive/seal.h"
#include "schema/store/files/folder.h"
#include "schema/store/read/reader.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define SECONDS 200
#define BUCKET  10

static void add_wait(struct store_writer *w, uint32_t run, uint32_t pid, int64_t s)
{
	const struct store_process p = {.pid = pid,
					.exec_id = 1,
					.start_ns = T0_S * NS,
					.start_ticks = pid,
					.comm = "app",
					.exe = "/bin/app",
					.args = "app",
					.cgroup = "/",
					.unit = ""};
	const struct store_amount a = {.n = 1 + (uint64_t)(rand() % 5),
				       .value = (uint64_t)rand() % 100000,
				       .n_variance = (uint64_t)(rand() % 3),
				       .value_variance = 1000 * (uint64_t)(rand() % 3)};
	struct store_frame frame = {.offset = 16 * (uint64_t)(rand() % 4)};
	uint32_t id = store_frame(w, &frame), process = store_process(w, &p),
		 stack = store_stack(w, &id, 1);
	const enum store_kind kinds[] = {STORE_KIND_OFFCPU, STORE_KIND_ALLOC, STORE_KIND_INUSE};

	for (int k = 0; k < 3; k++)
		assert_int_equal(
			store_amount(w, store_series(w, run, process, "app", pid, stack, kinds[k]),
				     (T0_S + s) * NS, &a),
			0);
}

/* With `two`, another capture of the same family for some time; with `slower`, of half the rate
 * from then on. */
static void fill(const struct fixture *f, bool two, bool slower)
{
	struct store_writer *w = fixture_writer(f, 0);
	const uint32_t run = fixture_run(w, STORE_SCOPE_HOST, BUCKET, 1000000, T0_S * NS);
	const uint32_t other =
		two ? fixture_run(w, STORE_SCOPE_HOST, 1, 1000000, (T0_S + 50) * NS) : 0;

	srand(46);
	for (int64_t s = 0; s < SECONDS; s += BUCKET) {
		if (slower && s == SECONDS / 2)
			store_run_period(w, run, (T0_S + s) * NS, 2000000);
		for (int k = 0; k < 20; k++)
			fixture_add(w, run, 100 + (uint32_t)(rand() % 5), (uint32_t)(rand() % 6),
				    (T0_S + s) * NS, 1 + (uint64_t)(rand() % 9));
		if (two && s == 60)
			fixture_add(w, other, 101, 1, (T0_S + s) * NS, 7);
		add_wait(w, run, 100 + (uint32_t)(rand() % 5), s);
		store_flush(w);
	}
	store_run_until(w, run, (T0_S + SECONDS) * NS);
	if (two)
		store_run_until(w, other, (T0_S + 90) * NS);
	store_flush(w);
	fixture_close(w);
	/* another boot is another segment, and the newest is not sealed */
	fixture_exec(fixture_segment(f, 0), "UPDATE meta SET value = 'x' WHERE key = 'boot_id'");
	w = fixture_writer(f, 0);
	fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, BUCKET, 1000000, (T0_S + SECONDS) * NS), 1,
		    1, (T0_S + SECONDS) * NS, 1);
	fixture_close(w);
}

static void seal(const struct fixture *f)
{
	struct seal_opts o = {.dir = f->dir};
	struct seal_report r;
	struct err e = {0};

	assert_int_equal(seal_run(&o, &r, &e), 0);
	assert_int_equal(r.segments, 1);
}

#define KEYS 4096
struct sums {
	enum store_by by;
	size_t calls;
	struct {
		uint64_t n, value;
	} of[KEYS]; /* by task and stack; by task; by step and process */
};

static bool odd(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	(void)ctx, (void)thread, (void)tid;
	return p->pid % 2;
}

static int add(void *ctx, const struct store_total *t)
{
	struct sums *x = ctx;
	const size_t at = x->by == STORE_BY_THREAD ? t->task : t->task * 64 + t->stack;

	assert_true(at < KEYS);
	x->of[at].n += t->whole_n;
	x->of[at].value += t->whole_value;
	x->calls++;
	return 0;
}

static int add_step(void *ctx, int64_t from_ns, uint32_t process, uint64_t value)
{
	struct sums *x = ctx;
	const size_t at = (size_t)(from_ns / NS - T0_S + 50) / BUCKET * 16 + process;

	assert_true(at < KEYS);
	x->of[at].value += value;
	return 0;
}

/* The archive and its plain copy stay open, and know nothing of the last question: to open them
 * takes longer than to answer. */
static struct store_segment *held[2];
static char held_path[2][PATH_MAX];

static void release_held(void)
{
	for (int i = 0; i < 2; i++) {
		store_segment_close(held[i]);
		held[i] = NULL;
	}
}

static struct store_segment *segment_of(const char *path)
{
	struct err e = {0};
	int i = held[0] && strcmp(held_path[0], path) != 0;

	if (held[i] && strcmp(held_path[i], path) != 0) {
		store_segment_close(held[i]);
		held[i] = NULL;
	}
	if (held[i]) {
		store_segment_rest(held[i]);
		return held[i];
	}
	assert_int_equal(store_segment_open(path, &held[i], &e), 0);
	snprintf(held_path[i], sizeof(held_path[i]), "%s", path);
	return held[i];
}

/* How many calls it took. */
static size_t ask(const char *path, const struct store_query *query, enum store_by by,
		  enum store_by as, struct sums *out)
{
	struct store_query q = *query;
	const struct store_dict *d;
	struct store_segment *s;
	struct err e = {0};

	*out = (struct sums){.by = as};
	q.by = by;
	s = segment_of(path);
	assert_int_equal((by == STORE_BY_SERIES ? store_segment_dict :
			  by == STORE_BY_STACK  ? store_segment_stacks :
						  store_segment_tasks)(s, &d, &e),
			 0);
	assert_int_equal(store_totals(s, &q, add, out, &e), 0);
	return out->calls;
}

static void steps(const char *path, const struct store_query *q, struct sums *out)
{
	struct store_segment *s;
	struct err e = {0};

	*out = (struct sums){0};
	s = segment_of(path);
	assert_int_equal(store_timeline(s, q, BUCKET, add_step, out, &e), 0);
}

/* ---- a range in parts ---- */

#define PARTS_MOST 9
struct told {
	uint32_t first_part; /* of the question */
	size_t n;
	struct store_total of[KEYS];
};

static int tell(void *ctx, const struct store_total *t)
{
	struct told *x = ctx;

	assert_true(x->n < KEYS);
	/* only what outlives the call */
	x->of[x->n++] = (struct store_total){.part = x->first_part + t->part,
					     .series = t->series,
					     .n = t->n,
					     .value = t->value,
					     .whole_n = t->whole_n,
					     .whole_value = t->whole_value,
					     .max = t->max,
					     .n_variance = t->n_variance,
					     .value_variance = t->value_variance};
	return 0;
}

static void ask_series(const char *path, const struct store_query *q, struct told *out)
{
	const struct store_dict *d;
	struct store_segment *s;
	struct err e = {0};

	s = segment_of(path);
	assert_int_equal(store_segment_dict(s, &d, &e), 0);
	assert_int_equal(store_totals(s, q, tell, out, &e), 0);
}

/* One walk over all parts tells what a question for each of them does. */
static void assert_parts(const char *path, const struct store_query *whole)
{
	static struct told at_once, each;
	struct store_query q = *whole, part = *whole;
	int64_t ends[PARTS_MOST];
	size_t n = 1 + (size_t)(rand() % PARTS_MOST);

	at_once = each = (struct told){0};
	for (size_t i = 0; i < n; i++)
		ends[i] = q.from_ns + (q.to_ns - q.from_ns) / (int64_t)n * (int64_t)(i + 1);
	ends[n - 1] = q.to_ns;
	q.part_to_ns = ends;
	q.n_parts = n;
	ask_series(path, &q, &at_once);
	part.whole_from_ns = q.from_ns;
	part.whole_to_ns = q.to_ns;
	for (; each.first_part < n; each.first_part++) {
		part.to_ns = ends[each.first_part];
		ask_series(path, &part, &each);
		part.from_ns = part.to_ns;
	}
	assert_int_equal(at_once.n, each.n);
	assert_memory_equal(at_once.of, each.of, each.n * sizeof(*each.of));
}

static const enum store_kind KINDS[] = {STORE_KIND_CPU, STORE_KIND_OFFCPU, STORE_KIND_ALLOC,
					STORE_KIND_INUSE};

static void assert_range(const char *path, const char *plain, const struct store_query *q)
{
	static struct sums a, b;

	ask(path, q, STORE_BY_SERIES, STORE_BY_STACK, &a);
	ask(path, q, STORE_BY_STACK, STORE_BY_STACK, &b);
	assert_memory_equal(a.of, b.of, sizeof(a.of));
	ask(path, q, STORE_BY_SERIES, STORE_BY_THREAD, &a);
	ask(path, q, STORE_BY_THREAD, STORE_BY_THREAD, &b);
	assert_memory_equal(a.of, b.of, sizeof(a.of));
	steps(plain, q, &a);
	steps(path, q, &b);
	assert_memory_equal(a.of, b.of, sizeof(a.of));
}

/* Before it is sealed it is copied. */
static void assert_all_ranges(const struct fixture *f)
{
	char plain[PATH_MAX + 16];
	int fd;

	snprintf(plain, sizeof(plain), "%s-copy.db", f->dir);
	fd = open(plain, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(folder_copy(fixture_segment(f, 0), fd), 0);
	close(fd);
	seal(f);
	for (int k = 0; k < 28; k++) {
		const int64_t first = T0_S - 40 + rand() % (SECONDS + 40);
		const struct store_query q = {
			.from_ns = k < 8 ? T0_S * NS - k : first * NS + rand() % NS,
			.to_ns = k < 8 ? (T0_S + SECONDS + k) * NS :
					 (first + rand() % SECONDS) * NS + rand() % NS,
			.kind = KINDS[k % 4],
			.no_hist = true,
			.want = k % 8 < 4 ? NULL : odd};

		assert_range(fixture_segment(f, 0), plain, &q);
		if (k % 5 == 0 && q.to_ns > q.from_ns) {
			assert_parts(fixture_segment(f, 0), &q);
			assert_parts(plain, &q);
		}
	}
	release_held();
	unlink(plain);
}

STORE_TEST(kept_sums_are_those_of_the_rows)
{
	const struct store_query whole = {.from_ns = T0_S * NS,
					  .to_ns = (T0_S + SECONDS) * NS,
					  .kind = STORE_KIND_OFFCPU,
					  .no_hist = true};
	static struct sums x;
	struct fixture *f = *state;

	fill(f, false, false);
	assert_all_ranges(f);
	/* and they are what was read: by series it takes more calls */
	assert_int_equal(ask(fixture_segment(f, 0), &whole, STORE_BY_THREAD, STORE_BY_THREAD, &x),
			 5);
	assert_true(ask(fixture_segment(f, 0), &whole, STORE_BY_SERIES, STORE_BY_THREAD, &x) > 5);
	release_held();
}

STORE_TEST(rows_are_read_where_the_period_changed)
{
	struct fixture *f = *state;

	fill(f, false, true);
	assert_all_ranges(f);
}

STORE_TEST(rows_are_read_where_two_captures_ran_at_once)
{
	struct fixture *f = *state;

	fill(f, true, false);
	assert_all_ranges(f);
}
