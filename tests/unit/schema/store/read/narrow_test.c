/* SPDX-License-Identifier: Apache-2.0 */
/* A dictionary of a range: for the range it says the same as the whole dictionary, stack by stack.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/store/model/kinds.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

struct told {
	const struct store_dict *dict;
	uint64_t rows, n, value, content; /* content: of who and where of all rows, in any order */
};

/* Is there a script's frame below it, in a stack of any time? */
static bool leads_to_script(const struct store_dict *d, uint32_t node)
{
	for (size_t i = node + 1; i < d->n_stacks; i++) {
		const struct store_frame_row *f = &d->frames[d->stack_frame[i]];
		uint32_t up = (uint32_t)i;

		if (f->image >= d->n_images || d->images[f->image].kind < STORE_IMAGE_SCRIPT)
			continue;
		while (up > node)
			up = d->stack_parent[up];
		if (up == node)
			return true;
	}
	return false;
}

static int tell(void *ctx, const struct store_total *t)
{
	struct told *x = ctx;
	const struct store_process_row *p = &x->dict->processes[t->process];
	uint64_t h = hash_u64(hash_str(hash_str(HASH_SEED, p->comm), p->exe), p->pid);

	h = hash_str(hash_str(hash_str(hash_str(h, p->unit), p->args), t->thread), p->container);
	for (uint32_t at = t->stack; at; at = x->dict->stack_parent[at]) {
		const struct store_frame_row *f = &x->dict->frames[x->dict->stack_frame[at]];

		h = hash_u64(hash_str(hash_str(hash_u64(h, leads_to_script(x->dict, at)), f->name),
				      f->file),
			     f->offset);
	}
	x->rows++;
	x->n += t->n;
	x->value += t->value;
	x->content += hash_u64(hash_u64(h, t->n), t->value);
	return 0;
}

static struct told ask(const char *segment, int64_t from_s, int64_t to_s, enum store_kind kind,
		       bool narrow)
{
	struct store_query q = {.from_ns = from_s * NS, .to_ns = to_s * NS, .kind = kind};
	struct told x = {0};
	struct store_segment *s;

	assert_int_equal(store_segment_open(segment, &s, NULL), 0);
	if (narrow)
		store_segment_narrow(s, q.from_ns, q.to_ns);
	assert_int_equal(store_segment_dict(s, &x.dict, NULL), 0);
	assert_int_equal(store_totals(s, &q, tell, &x, NULL), 0);
	x.dict = NULL;
	store_segment_close(s);
	return x;
}

static void same(const char *segment, int64_t from_s, int64_t to_s, enum store_kind kind)
{
	struct told whole = ask(segment, from_s, to_s, kind, false),
		    narrow = ask(segment, from_s, to_s, kind, true);

	assert_memory_equal(&whole, &narrow, sizeof(whole));
}

static void put(struct store_writer *w, uint32_t run, uint32_t pid, uint32_t leaf,
		enum store_kind kind, int64_t at_s, uint64_t value)
{
	char comm[16] = "app";
	struct store_process p = {.pid = pid,
				  .exec_id = 1,
				  .start_ns = T0_S * NS,
				  .start_ticks = pid,
				  .comm = comm,
				  .exe = "/bin/app",
				  .args = "app",
				  .cgroup = "/",
				  .unit = "u"};
	struct store_frame frames[] = {
		{.offset = 1}, {.offset = 16 * (leaf % 7 + 1)}, {.offset = 256 * (leaf + 1)}};
	uint32_t ids[3], series;

	comm[3] = (char)('a' + pid % 20);
	for (int i = 0; i < 3; i++)
		ids[i] = store_frame(w, &frames[i]);
	series =
		store_series(w, run, store_process(w, &p), comm, pid, store_stack(w, ids, 3), kind);
	if (kind == STORE_KIND_CPU)
		assert_int_equal(store_add(w, series, at_s * NS, value), 0);
	else
		assert_int_equal(store_amount(w, series, at_s * NS,
					      &(struct store_amount){.n = 1, .value = value}),
				 0);
}

static uint32_t run_begin(struct store_writer *w, const char *family, enum store_scope scope,
			  uint32_t bucket_s)
{
	struct store_run r = {.family = family,
			      .options = "",
			      .scope = scope,
			      .bucket_s = bucket_s,
			      .period_ns = 1000000,
			      .from_ns = T0_S * NS,
			      .boot_offset_ns = clock_boot_offset_ns()};

	return store_run_begin(w, &r);
}

/* Ten minutes; each minute has its own processes and stacks, and some that all minutes share. */
STORE_TEST(a_minute_says_what_it_says_in_the_whole)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t cpu = run_begin(w, "cpu", STORE_SCOPE_HOST, 10),
		 off = run_begin(w, "offcpu", STORE_SCOPE_HOST, 10),
		 heap = run_begin(w, "goheap", STORE_SCOPE_HOST, 10);
	const char *segment;

	for (uint32_t i = 0; i < 60; i++) {
		int64_t at = T0_S + 10 * i;

		put(w, cpu, 1, i % 3, STORE_KIND_CPU, at, i + 1);
		put(w, cpu, 100 + i / 6, 50 + i / 6, STORE_KIND_CPU, at, 3);
		put(w, off, 200 + i / 6, 90 + i / 6, STORE_KIND_OFFCPU, at, 1000 + i);
		if (i % 12 == 0) /* gauges are reported when they change */
			put(w, heap, 300, 120 + i, STORE_KIND_INUSE, at, 500 + i);
	}
	for (uint32_t run = cpu; run <= heap; run++)
		store_run_until(w, run, (T0_S + 600) * NS);
	fixture_close(w);
	segment = fixture_segment(f, 0);
	for (int64_t from = T0_S; from < T0_S + 600; from += 60) {
		same(segment, from, from + 60, STORE_KIND_CPU);
		same(segment, from, from + 60, STORE_KIND_OFFCPU);
		same(segment, from, from + 60, STORE_KIND_INUSE);
	}
	assert_int_equal(ask(segment, T0_S + 60, T0_S + 120, STORE_KIND_CPU, true).n,
			 7 + 8 + 9 + 10 + 11 + 12 + 18);
	assert_int_equal(ask(segment, T0_S + 480, T0_S + 540, STORE_KIND_INUSE, true).rows, 5);
	same(segment, T0_S + 700, T0_S + 760, STORE_KIND_CPU);
}

/* A finer run of some processes hides the coarse one of these, also where it has no row. */
STORE_TEST(a_run_of_some_processes_covers_them_as_in_the_whole)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t coarse = run_begin(w, "cpu", STORE_SCOPE_HOST, 10),
		 fine = run_begin(w, "cpu", STORE_SCOPE_NARROW, 1);

	for (uint32_t i = 0; i < 12; i++)
		for (uint32_t pid = 1; pid < 4; pid++)
			put(w, coarse, pid, pid, STORE_KIND_CPU, T0_S + 10 * i, 5);
	put(w, fine, 2, 2, STORE_KIND_CPU, T0_S + 1, 9); /* and no more */
	store_run_until(w, coarse, (T0_S + 120) * NS);
	store_run_until(w, fine, (T0_S + 120) * NS);
	fixture_close(w);
	same(fixture_segment(f, 0), T0_S, T0_S + 60, STORE_KIND_CPU);
	same(fixture_segment(f, 0), T0_S + 60, T0_S + 120, STORE_KIND_CPU);
	assert_int_equal(ask(fixture_segment(f, 0), T0_S + 60, T0_S + 120, STORE_KIND_CPU, true).n,
			 60);
}

/* An interpreter's frames by themselves in one minute, with scripts below some of them in another.
 */
STORE_TEST(what_scripts_an_interpreter_called_at_any_time_is_known_of_a_minute)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = run_begin(w, "cpu", STORE_SCOPE_HOST, 10);
	uint32_t python = store_image(w, &(struct store_image){.kind = STORE_IMAGE_ELF,
							       .name = "python",
							       .path = "/python",
							       .build_id = "",
							       .key = ""});
	uint32_t script = store_image(w, &(struct store_image){.kind = STORE_IMAGE_SCRIPT,
							       .name = "app.py",
							       .path = "/app.py",
							       .build_id = "",
							       .key = ""});
	uint32_t app = store_process(w, &(struct store_process){.pid = 1,
								.exec_id = 1,
								.start_ns = T0_S * NS,
								.start_ticks = 1,
								.comm = "app",
								.exe = "/python",
								.args = "app",
								.cgroup = "/",
								.unit = "u"});
	const char *segment;

	for (uint32_t minute = 0; minute < 4; minute++)
		for (uint32_t i = 0; i < 8; i++) {
			struct store_frame frames[] = {
				{.image = python, .offset = 1},
				{.image = python, .offset = 16 * (i % 5 + 2)},
				{.image = python, .offset = 4096 + i},
				{.image = script, .offset = i % 2}};
			uint32_t ids[4], n = minute == 3 && i % 3 ? 4 : minute == 1 ? 2 : 3;

			for (uint32_t k = 0; k < n; k++)
				ids[k] = store_frame(w, &frames[k]);
			assert_int_equal(
				store_add(w,
					  store_series(w, run, app, "app", 1,
						       store_stack(w, ids, n), STORE_KIND_CPU),
					  (T0_S + 60 * minute + i) * NS, 1),
				0);
		}
	store_run_until(w, run, (T0_S + 240) * NS);
	fixture_close(w);
	segment = fixture_segment(f, 0);
	for (int64_t from = T0_S; from < T0_S + 240; from += 60)
		same(segment, from, from + 60, STORE_KIND_CPU);
}

TEST(the_kinds_that_stand_are_those_that_are_looked_at)
{
	static const int standing[] = {5, 8, 9, 13, 19, 23}; /* as dict_some.c has them */
	size_t n = 0;

	for (int kind = 1; kind < STORE_KINDS; kind++) {
		const struct store_kind_info *k = store_kind_info((enum store_kind)kind);

		if (k && k->class == STORE_GAUGE)
			assert_true(n < ARRAY_SIZE(standing) && standing[n++] == kind);
	}
	assert_int_equal(n, ARRAY_SIZE(standing));
}
