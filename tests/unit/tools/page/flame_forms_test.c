/* SPDX-License-Identifier: Apache-2.0 */
/* flame_rows, flame_text, flame_svg: the contents of the page, the terminal's graph and the
 * picture. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"
#include "tests/unit/tools/fold/fold_sample.h"
#include "tools/fold/flame/flame_rows.h"
#include "tools/formats/flame_text.h"
#include "tools/page/flame_svg.h"
#include "tools/page/svg.h"
#include "tools/print/term.h"

static char *text_of(unsigned width, bool unicode)
{
	struct fold f = fold_sample();
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	flame_text_write(&f, out, width, unicode);
	fclose(out);
	return text;
}

TEST(the_drawing_is_this)
{
	char *text = text_of(0, false);

	assert_string_equal(
		text,
		" SHARE     CORES            FUNCTION\n"
		"100.0%      0.75 ########   all\n"
		" 86.7%      0.65 #######  > + main  app\n"
		" 46.7%      0.35 ####     >   + work  app\n"
		" 40.0%      0.30 ###      >     small  app\n"
		" 40.0%      0.30 ###          + libc.so.6+0x1234  libc.so.6\n"
		" 26.7%      0.20 ##             do_syscall_64  [kernel]\n"
		"  9.3%      0.07 #          + </script><img src=x onerror=alert(1)>;\"&'\xf0\x9f\x94\xa5  ev<il>\n"
		"  4.0%      0.03            + [no stack]\n");
	free(text);
}

TEST(lines_fit_the_terminal)
{
	for (unsigned width = 50; width <= 80; width += 15) {
		char *text = text_of(width, true), *rest = text, *line;

		while ((line = strsep(&rest, "\n")) && *line)
			assert_true(term_columns(line) <= width);
		free(text);
	}
}

TEST(the_picture_holds_every_frame_and_no_markup_of_theirs)
{
	struct fold f = fold_sample();
	const struct fold *const folds[] = {&f};
	struct flame_page p = {.folds = folds,
			       .n_folds = 1,
			       .what = "",
			       .range = "rec <1>",
			       .filters = "",
			       .group = ""};
	char *text = NULL;
	size_t len, frames = 0;
	FILE *out = open_memstream(&text, &len);

	flame_svg_write(&p, SVG_WIDTH, out);
	fclose(out);
	for (const char *at = text; (at = strstr(at, "<g><title>")); at++)
		frames++;
	assert_int_equal(frames, 8);
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "<img"));
	assert_non_null(strstr(text, "<title>small, app: 40.00 %, "));
	assert_non_null(strstr(text, "width=\"479.50\"")); /* 30 of 75 of 1200 points, and a gap */
	assert_non_null(strstr(text, "rec &#60;1&#62;"));
	free(text);
}

static void slice(struct fold *f, struct fold_slice *slices, size_t n)
{
	for (size_t i = 0; i < n; i++)
		slices[i] = (struct fold_slice){(int64_t)i * 1000, (int64_t)(i + 1) * 1000, 1000};
	f->slices = slices;
	f->n_slices = n;
	f->slice_ns = 1000;
}

TEST(rows_are_leaves_by_place_and_nothing_is_lost)
{
	struct fold f = fold_sample();
	struct fold_slice slices[8];
	struct fold_leaf leaves[ARRAY_SIZE(sample_leaves)];
	struct flame_tree t;
	struct flame_rows r;
	uint64_t n = 0;

	memcpy(leaves, sample_leaves, sizeof(leaves));
	for (size_t i = 0; i < ARRAY_SIZE(leaves); i++)
		leaves[i].slice = (uint32_t)i;
	f.leaves = leaves;
	slice(&f, slices, 8);
	slices[0].from_ns = -300; /* the range begins within a bucket */
	flame_tree_init(&t, &f, 0, true);
	flame_rows_begin(&r, &f);
	flame_rows_end(&r, &t, 100);
	assert_int_equal(r.n_rows, ARRAY_SIZE(leaves));
	assert_int_equal(r.n_owners, 3); /* other, app, w1 */
	assert_int_equal(r.n_slots, 8);
	assert_int_equal(r.slots_from_ns, 0);
	assert_int_equal(r.slot_ns, 1000);
	for (size_t i = 0; i < r.n_rows; i++) {
		assert_true(!i || r.rows[i].node >= r.rows[i - 1].node);
		n += r.rows[i].n;
	}
	assert_int_equal(n, 75);
	flame_rows_release(&r);
	flame_tree_release(&t);
}

TEST(too_many_rows_join_their_slots)
{
	struct fold f = fold_sample();
	struct fold_slice slices[8];
	struct fold_leaf leaves[64];
	struct flame_tree t;
	struct flame_rows r;

	for (uint32_t i = 0; i < 64; i++)
		leaves[i] = (struct fold_leaf){.node = 3,
					       .process = 1,
					       .thread = "app",
					       .tid = 812,
					       .slice = i % 8,
					       .samples = 2,
					       .ns = 2 * SAMPLE_NS};
	f.leaves = leaves;
	f.n_leaves = 64;
	slice(&f, slices, 8);
	flame_tree_init(&t, &f, 0, true);
	flame_rows_begin(&r, &f);
	flame_rows_end(&r, &t, 3);
	assert_int_equal(r.n_slots, 2);
	assert_int_equal(r.slot_ns, 4000);
	assert_int_equal(r.n_rows, 2);
	assert_int_equal(r.rows[0].n + r.rows[1].n, 128);
	assert_int_equal(r.rows[0].value, 64 * SAMPLE_NS);
	flame_rows_release(&r);
	flame_tree_release(&t);
}
