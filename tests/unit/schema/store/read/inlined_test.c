/* SPDX-License-Identifier: Apache-2.0 */
/* inlined: functions inlined at a place, and lines, from the writer to the reader and to the views.
 */
#include <string.h>

#include "schema/base/strbuf.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10000000

static uint32_t image_of(struct store_writer *w)
{
	return store_image(w,
			   &(struct store_image){STORE_IMAGE_ELF, "app", "/bin/app", "ab", "ab-1"});
}

static uint32_t frame_at(struct store_writer *w, uint64_t offset, const char *name,
			 const char *file, uint32_t line, uint32_t outer, bool leaf)
{
	struct store_function fn = {.name = name, .image = image_of(w), .file = file, .line = 3};
	struct store_frame f = {.image = fn.image,
				.offset = offset,
				.function = store_function(w, &fn),
				.line = line,
				.outer = outer,
				.leaf = leaf};

	return store_frame(w, &f);
}

/* main calls work, into which step was inlined, and into that add: one sample at add's line 7. */
static uint32_t deep_stack(struct store_writer *w)
{
	uint32_t root = frame_at(w, 0x100, "main", "/src/main.c", 40, 0, false);
	uint32_t work = frame_at(w, 0x200, "work", "/src/main.c", 20, 0, true);
	uint32_t step = frame_at(w, 0x200, "step", "/src/step.h", 11, work, true);
	uint32_t add = frame_at(w, 0x200, "add", "/src/step.h", 7, step, true);

	return store_stack(w, (uint32_t[]){root, add}, 2);
}

static struct store_writer *begin(struct fixture *f, uint32_t *run, uint32_t *process)
{
	struct store_writer *w = fixture_writer(f, 0);
	struct store_process p = {.pid = 7,
				  .start_ticks = 1,
				  .comm = "app",
				  .exe = "/bin/app",
				  .args = "",
				  .cgroup = "",
				  .unit = ""};

	*run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	*process = store_process(w, &p);
	return w;
}

static const char *path_of(const struct store_dict *d, uint32_t node, struct strbuf *s)
{
	const struct store_frame_row *fr = &d->frames[d->stack_frame[node]];

	if (!node)
		return strbuf_str(s);
	path_of(d, d->stack_parent[node], s);
	strbuf_addf(s, "%s%s%s:%u", s->len ? " " : "", fr->inlined ? "~" : "", fr->name, fr->line);
	return strbuf_str(s);
}

static int keep_stack(void *ctx, const struct store_total *t)
{
	*(uint32_t *)ctx = t->stack;
	return 0;
}

STORE_TEST(inlined_functions_are_frames_of_their_own_to_the_reader_and_in_sql)
{
	struct store_query q = {.to_ns = INT64_MAX, .kind = STORE_KIND_CPU};
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct store_segment *s = NULL;
	const struct store_dict *d;
	uint32_t run, process, stack = 0;
	struct store_writer *w = begin(*state, &run, &process);
	const char *seg = fixture_segment(*state, 0);

	assert_int_equal(
		store_add(w, store_series(w, run, process, "app", 7, deep_stack(w), STORE_KIND_CPU),
			  T0_S * NS, 5),
		0);
	fixture_close(w);
	assert_int_equal(store_segment_open(seg, &s, NULL), 0);
	assert_int_equal(store_segment_dict(s, &d, NULL), 0);
	assert_int_equal(store_totals(s, &q, keep_stack, &stack, NULL), 0);
	assert_string_equal(path_of(d, stack, &path), "main:40 work:20 ~step:11 ~add:7");
	assert_string_equal(d->frames[d->stack_frame[stack]].file, "/src/step.h");
	assert_int_equal(d->frames[d->stack_frame[stack]].function_line, 3);
	store_segment_close(s);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT samples FROM cpu_samples WHERE function = 'add' AND line = 7"
			    " AND file = '/src/step.h'"),
		5);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT count(*) FROM stacks WHERE folded = 'main;work;step;add' AND depth = 4"),
		1);
	assert_int_equal(
		fixture_sql(
			seg,
			"SELECT depth FROM stack_frames WHERE function = 'step' AND inlined AND line = 11"),
		2);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT self FROM functions_top WHERE function = 'add' AND total = 5"),
		5);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT self FROM functions_top WHERE function = 'work' AND total = 5"),
		0);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT total FROM lines_top WHERE function = 'work' AND line = 20"),
		5);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT self FROM lines_top WHERE file = '/src/step.h' AND line = 7"),
		5);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM source"), 2);
}

STORE_TEST(a_frame_named_later_may_turn_out_to_be_inlined)
{
	uint32_t run, process, series, frame, outer;
	struct store_writer *w = begin(*state, &run, &process);
	struct store_frame plain = {.image = image_of(w), .offset = 0x300};
	struct store_function fn = {.name = "tiny", .image = plain.image, .file = "/src/t.h"};
	const char *seg;

	frame = store_frame(w, &plain);
	series = store_series(w, run, process, "app", 7, store_stack(w, &frame, 1), STORE_KIND_CPU);
	assert_int_equal(store_add(w, series, T0_S * NS, 1), 0);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 1));
	seg = fixture_segment(*state, 0);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM stacks WHERE folded = 'app+0x300'"),
			 1);
	outer = frame_at(w, 0x300, "large", "/src/main.c", 9, 0, false);
	store_frame_name(w, frame, store_function(w, &fn), 2, outer);
	store_frame_name(w, frame, store_function(w, &fn), 8, 0); /* once only */
	assert_int_equal(store_add(w, series, T0_S * NS, 1), 0);
	fixture_close(w);
	assert_int_equal(
		fixture_sql(seg, "SELECT count(*) FROM stacks WHERE folded = 'large;tiny'"), 1);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT line FROM stack_frames WHERE function = 'tiny' AND inlined"),
		2);
}

STORE_TEST(a_file_whose_frames_are_inlined_into_each_other_is_still_read)
{
	struct store_segment *s = NULL;
	const struct store_dict *d;
	uint32_t run, process;
	struct store_writer *w = begin(*state, &run, &process);
	const char *seg = fixture_segment(*state, 0);

	assert_int_equal(
		store_add(w, store_series(w, run, process, "app", 7, deep_stack(w), STORE_KIND_CPU),
			  T0_S * NS, 5),
		0);
	fixture_close(w);
	fixture_exec(seg, "UPDATE frame SET outer = (SELECT max(id) FROM frame)");
	assert_int_equal(store_segment_open(seg, &s, NULL), 0);
	assert_int_equal(store_segment_dict(s, &d, NULL), 0);
	assert_true(d->n_stacks < 200);
	store_segment_close(s);
	fixture_exec(seg, "UPDATE frame SET outer = 1 << 40");
	assert_int_equal(store_segment_open(seg, &s, NULL), 0);
	assert_int_equal(store_segment_dict(s, &d, NULL), 0);
	store_segment_close(s);
	assert_true(fixture_sql(seg, "SELECT count(*) FROM stack_frames") >= 2);
}
