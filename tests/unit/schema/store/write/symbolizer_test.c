/* SPDX-License-Identifier: Apache-2.0 */
/* symbolizer: stored frames gain names, lines and inlined functions; those that they have stay. */
#include <errno.h>
#include <string.h>

#include "schema/store/write/symbolizer.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10000000

/* Frames of one file, and one of another kind: unnamed caller, named caller, unnamed leaf, folded
 * leaf, one with a line. */
static uint32_t fill(struct store_writer *w, uint32_t run)
{
	struct store_process p = {.pid = 7,
				  .start_ticks = 1,
				  .comm = "app",
				  .exe = "/bin/app",
				  .args = "",
				  .cgroup = "",
				  .unit = ""};
	uint32_t image = store_image(
		w, &(struct store_image){STORE_IMAGE_ELF, "app", "/bin/app", "ab", "ab-1"});
	uint32_t kernel =
		store_image(w, &(struct store_image){STORE_IMAGE_KERNEL, "[kernel]", "", "", ""});
	struct store_function named = {.name = "named", .image = image, .file = ""},
			      known = {.name = "known", .image = image, .file = "k.c"};
	/* clang-format off */
	struct store_frame frames[] = {
		{.image = image, .offset = 0x100},
		{.image = image, .offset = 0x200, .function = store_function(w, &named)},
		{.image = image, .offset = 0x300, .leaf = true, .exact = true},
		{.image = image, .offset = 0x400, .leaf = true, .function = store_function(w, &named)},
		{.image = image, .offset = 0x500, .function = store_function(w, &known), .line = 50},
		{.image = kernel, .offset = 0x600},
	};
	/* clang-format on */
	uint32_t ids[6], process = store_process(w, &p), both;

	for (int i = 0; i < 6; i++)
		ids[i] = store_frame(w, &frames[i]);
	both = store_series(w, run, process, "app", 7,
			    store_stack(w, (uint32_t[]){ids[4], ids[0], ids[1], ids[2]}, 4),
			    STORE_KIND_CPU);
	assert_int_equal(store_add(w, both, T0_S * NS, 3), 0);
	both = store_series(w, run, process, "app", 7,
			    store_stack(w, (uint32_t[]){ids[0], ids[3]}, 2), STORE_KIND_CPU);
	assert_int_equal(store_add(w, both, T0_S * NS, 2), 0);
	both = store_series(w, run, process, "app", 7,
			    store_stack(w, (uint32_t[]){ids[0], ids[5]}, 2), STORE_KIND_CPU);
	assert_int_equal(store_add(w, both, T0_S * NS, 1), 0);
	return process;
}

static struct symbolizer_want seen;
static int n_seen;

static int want(void *ctx, const struct symbolizer_want *w)
{
	(void)ctx;
	seen = *w;
	n_seen++;
	assert_string_equal(w->path, "/bin/app");
	assert_string_equal(w->build_id, "ab");
	return 0;
}

static size_t know_all(void *ctx, const struct symbolizer_frame *f,
		       struct symbolizer_name out[SYMBOLIZER_MAX])
{
	static const struct symbolizer_name chain[] = {
		{"tiny", "t.h", 3, 0}, {"middle", "t.h", 9, 0}, {"other", "a.c", 21, 20}};

	(void)ctx;
	assert_true(f->offset != 0x500 && f->offset != 0x600);
	assert_int_equal(f->back, f->offset < 0x300);
	assert_int_equal(f->folded, f->offset == 0x400);
	assert_int_equal(f->named, f->offset == 0x200 || f->offset == 0x400);
	if (f->folded) {
		out[0] = (struct symbolizer_name){"other", "a.c", 0, 20};
		return 1;
	}
	memcpy(out, chain, sizeof(chain));
	return 3;
}

static size_t know_nothing(void *ctx, const struct symbolizer_frame *f,
			   struct symbolizer_name out[SYMBOLIZER_MAX])
{
	(void)f;
	(void)out;
	++*(int *)ctx;
	return 0;
}

STORE_TEST(frames_gain_and_never_lose)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	struct symbolizer_gain g = {0};
	struct symbolizer *r;
	const char *seg;
	int asked = 0;

	fill(w, fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS));
	fixture_close(w);
	seg = fixture_segment(f, 0);
	n_seen = 0;
	assert_int_equal(symbolizer_open(f->dir, seg, &r, NULL), 0);
	assert_int_equal(symbolizer_wants(r, want, NULL, NULL), 0);
	assert_int_equal(n_seen, 1);
	assert_int_equal(seen.unnamed, 2);
	assert_int_equal(seen.lineless, 1);
	assert_int_equal(symbolizer_image(r, seen.image, know_all, NULL, &g, NULL), 0);
	assert_int_equal(g.names, 2);
	assert_int_equal(g.lines, 3);
	assert_int_equal(g.inlined, 3);
	n_seen = 0;
	assert_int_equal(symbolizer_wants(r, want, NULL, NULL), 0);
	assert_int_equal(n_seen, 0); /* nothing is left to ask for */
	assert_int_equal(symbolizer_image(r, 1, know_nothing, &asked, &g, NULL), 0);
	assert_int_equal(asked, 0);
	symbolizer_close(r);
	/* the physical function keeps its name, what was inlined is new, a line that was there
	 * stays */
	assert_int_equal(
		fixture_sql(seg, "SELECT count(*) FROM stacks WHERE folded ="
				 " 'known;other;middle;tiny;named;middle;tiny;other;middle;tiny'"),
		1);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT count(*) FROM stacks WHERE folded = 'other;middle;tiny;named'"),
		1);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT sum(samples) FROM cpu_samples WHERE function = 'tiny' AND line = 3"
			" AND file = 't.h'"),
		3);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT sum(samples) FROM cpu_samples WHERE function = 'named' AND line = 0"
			" AND file = 'a.c'"),
		2);
	assert_int_equal(fixture_sql(seg, "SELECT line FROM stack_frames WHERE function = 'known'"),
			 50);
	assert_int_equal(fixture_sql(seg, "SELECT sum(samples) FROM cpu_samples"), 6);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
		0);
}

STORE_TEST(a_segment_that_is_written_gains_too)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS),
		 process = fill(w, run);
	struct store_frame new = {.offset = 0x700};
	struct symbolizer_gain g = {0};
	struct symbolizer *r;
	const char *seg;
	uint32_t id;

	store_flush(w);
	assert_true(fixture_wait_stored(w, 6));
	seg = fixture_segment(f, 0);
	assert_int_equal(symbolizer_open(f->dir, seg, &r, NULL), 0);
	assert_int_equal(symbolizer_wants(r, want, NULL, NULL), 0);
	assert_int_equal(symbolizer_image(r, seen.image, know_all, NULL, &g, NULL), 0);
	symbolizer_close(r);
	/* the writer goes on with the ids that it knows */
	id = store_frame(w, &new);
	fill(w, run);
	assert_int_equal(store_add(w,
				   store_series(w, run, process, "app", 7, store_stack(w, &id, 1),
						STORE_KIND_CPU),
				   T0_S * NS, 4),
			 0);
	fixture_close(w);
	assert_int_equal(fixture_files(f->dir, ".db"), 1);
	assert_int_equal(fixture_sql(seg, "SELECT sum(samples) FROM cpu_samples"), 16);
	assert_int_equal(
		fixture_sql(seg, "SELECT sum(samples) FROM cpu_samples WHERE function = 'tiny'"),
		6);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT sum(samples) FROM cpu_samples WHERE function = '[unknown]+0x700'"),
		4);
}

STORE_TEST(a_newer_schema_is_left_alone)
{
	struct fixture *f = *state;
	struct symbolizer *r = NULL;
	struct err e = {0};

	fixture_close(fixture_writer(f, 0));
	fixture_exec(fixture_segment(f, 0),
		     "UPDATE meta SET value = 999 WHERE key = 'schema_version'");
	assert_true(symbolizer_open(f->dir, fixture_segment(f, 0), &r, &e) < 0);
	assert_int_equal(e.exit, EXIT_STORE);
	assert_null(r);
}
