/* SPDX-License-Identifier: Apache-2.0 */
/* flame_tree, top, related: the numbers shown for a fold add up. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tests/unit/test.h"
#include "tests/unit/tools/fold/fold_sample.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/ranking/related.h"
#include "tools/fold/fold_build.h"
#include "tools/fold/ranking/top.h"

static const char *name_of(const struct flame_tree *t, size_t node)
{
	return t->frames[t->nodes[node].frame].name;
}

TEST(call_sites_of_one_function_are_one_node_hottest_first)
{
	static const struct {
		const char *name;
		uint32_t depth;
		uint64_t self, total;
	} want[] = {
		{"all", 0, 0, 75},
		{"main", 1, 0, 65},
		{"work", 2, 5, 35},
		{"small", 3, 30, 30},
		{"libc.so.6+0x1234", 2, 10, 30},
		{"do_syscall_64", 3, 20, 20},
		{HOSTILE, 1, 7, 7},
		{"[no stack]", 1, 3, 3},
	};
	struct fold f = fold_sample();
	struct flame_tree t;

	flame_tree_init(&t, &f, 0, false);
	assert_int_equal(t.n_nodes, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_string_equal(name_of(&t, i), want[i].name);
		assert_int_equal(t.nodes[i].depth, want[i].depth);
		assert_int_equal(t.nodes[i].self_samples, want[i].self);
		assert_int_equal(t.nodes[i].total_samples, want[i].total);
		assert_int_equal(t.nodes[i].total_ns, want[i].total * SAMPLE_NS);
		assert_true(!i || t.nodes[i].parent < i);
	}
	assert_int_equal(t.frames[t.nodes[1].frame].line,
			 0); /* two call sites do not agree on a line */
	assert_int_equal(t.frames[t.nodes[2].frame].line, 20);
	flame_tree_release(&t);
}

TEST(what_is_left_out_stays_in_the_sum)
{
	struct fold f = fold_sample();

	for (size_t max = 1; max < 9; max++) {
		struct flame_tree t;
		uint64_t self = 0;

		flame_tree_init(&t, &f, max, false);
		for (size_t i = 0; i < t.n_nodes; i++)
			self += t.nodes[i].self_samples;
		assert_int_equal(self, 75);
		assert_int_equal(t.nodes[0].total_samples, 75);
		assert_true(max < 8 ? t.elided > 0 && t.elided >= 8 - max : t.elided == 0);
		flame_tree_release(&t);
	}
}

enum { MADE = 400, LOOKS = 5 };

/* Frames 1 to 3 x LOOKS: three places that look alike each. Paths are numbers in base LOOKS + 1. */
static struct fold made_fold(struct fold_node *nodes, struct fold_frame *frames, uint64_t *path,
			     uint32_t seed)
{
	static const char *const names[LOOKS] = {"a", "b", "c", "d", "e"};
	struct fold f = {
		.nodes = nodes, .n_nodes = MADE, .frames = frames, .n_frames = 3 * LOOKS + 1};

	memset(nodes, 0, MADE * sizeof(*nodes));
	for (uint32_t i = 0; i <= 3 * LOOKS; i++)
		frames[i] = (struct fold_frame){.name = names[i % LOOKS],
						.module = "m",
						.module_path = "",
						.build_id = "",
						.file = "",
						.offset = i,
						.named = true};
	path[0] = 0;
	for (uint32_t i = 1; i < MADE; i++) {
		uint32_t dice = (seed = seed * 1664525u + 1013904223u) >> 8;

		nodes[i].parent = i < 4 ? 0 : (uint32_t)(i - 1 - dice % (i < 12 ? i : 12));
		if (path[nodes[i].parent] > UINT64_MAX / 64)
			nodes[i].parent = 0;
		nodes[i].frame = 1 + dice / 16 % (3 * LOOKS);
		nodes[i].self_samples = nodes[i].self_ns = 1 + dice / 1024 % 7;
		path[i] = path[nodes[i].parent] * (LOOKS + 1) + 1 + nodes[i].frame % LOOKS;
	}
	return f;
}

static uint64_t path_in(const struct flame_tree *t, size_t i)
{
	uint64_t path = 0, unit = 1;

	for (; i; i = t->nodes[i].parent, unit *= LOOKS + 1)
		path += unit * (uint64_t)(1 + *name_of(t, i) - 'a');
	return path;
}

TEST(every_path_is_one_node_with_the_sum_of_all_that_look_so)
{
	static struct fold_node nodes[MADE];
	static struct fold_frame frames[3 * LOOKS + 1];
	static uint64_t path[MADE];

	for (uint32_t seed = 1; seed < 40; seed++) {
		struct fold f = made_fold(nodes, frames, path, seed);
		struct flame_tree t;

		flame_tree_init(&t, &f, 0, false);
		for (size_t i = 0; i < t.n_nodes; i++) {
			uint64_t sum = 0, here = path_in(&t, i);

			for (size_t k = 0; k < MADE; k++)
				sum += path[k] == here ? nodes[k].self_ns : 0;
			assert_int_equal(t.nodes[i].self_ns, sum);
			for (size_t k = 0; k < i; k++)
				assert_true(path_in(&t, k) != here);
		}
		for (size_t k = 0; k < MADE; k++)
			assert_int_equal(path_in(&t, t.node_of[k]), path[k]);
		flame_tree_release(&t);
	}
}

TEST(frames_that_all_look_different_are_nodes_as_they_stand)
{
	static const struct {
		const char *name;
		uint32_t depth;
		uint64_t self, total;
	} want[] = {{"all", 0, 0, 15}, {"a", 1, 1, 8}, {"c", 2, 4, 4},
		    {"b", 2, 3, 3},    {"b", 1, 5, 5}, {"[no stack]", 1, 2, 2}};
	static const uint32_t node_of[] = {5, 1, 3, 2, 4};
	struct fold_frame frames[] = {{.name = ""},
				      {.name = "a", .line = 7, .named = true},
				      {.name = "b", .named = true},
				      {.name = "c", .named = true}};
	/* clang-format off */
	struct fold_node nodes[] = {
		{.self_samples = 2, .self_ns = 2, .total_samples = 15, .total_ns = 15},
		{.frame = 1, .self_samples = 1, .self_ns = 1, .total_samples = 8, .total_ns = 8},
		{.frame = 2, .parent = 1, .self_samples = 3, .self_ns = 3, .total_samples = 3, .total_ns = 3},
		{.frame = 3, .parent = 1, .self_samples = 4, .self_ns = 4, .total_samples = 4, .total_ns = 4},
		{.frame = 2, .self_samples = 5, .self_ns = 5, .total_samples = 5, .total_ns = 5},
	};
	/* clang-format on */
	struct fold f = {.nodes = nodes,
			 .n_nodes = ARRAY_SIZE(nodes),
			 .frames = frames,
			 .n_frames = ARRAY_SIZE(frames)};
	struct flame_tree t;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i].module = frames[i].module_path = frames[i].build_id = frames[i].file = "";
	flame_tree_init(&t, &f, 0, false);
	assert_int_equal(t.n_nodes, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_string_equal(name_of(&t, i), want[i].name);
		assert_int_equal(t.nodes[i].depth, want[i].depth);
		assert_int_equal(t.nodes[i].self_samples, want[i].self);
		assert_int_equal(t.nodes[i].total_samples, want[i].total);
	}
	assert_int_equal(t.frames[t.nodes[1].frame].line, 7);
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		assert_int_equal(t.node_of[i], node_of[i]);
	flame_tree_release(&t);
}

static int larger_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

TEST(the_largest_are_kept)
{
	static struct fold_node nodes[MADE];
	static struct fold_frame frames[3 * LOOKS + 1];
	static uint64_t path[MADE], totals[MADE];
	struct fold f = made_fold(nodes, frames, path, 7);
	struct flame_tree all;

	flame_tree_init(&all, &f, 0, false);
	for (size_t i = 0; i < all.n_nodes; i++)
		totals[i] = all.nodes[i].total_ns;
	qsort(totals, all.n_nodes, sizeof(*totals), larger_first);
	for (size_t max = 1; max < all.n_nodes; max += 7) {
		struct flame_tree t;
		size_t above = 0;

		while (totals[above] > totals[max])
			above++;
		flame_tree_init(&t, &f, max, false);
		assert_int_equal(t.elided, all.n_nodes - above);
		flame_tree_release(&t);
	}
	flame_tree_release(&all);
}

/* What the nodes of a fold have, by function. To be freed (fold_free). */
static struct fold *flat_of(const struct fold *f)
{
	struct fold_build *b = fold_begin();

	b->pub.flat = mem_array(f->n_frames + 1, sizeof(*b->pub.flat));
	for (uint32_t i = 0; i < f->n_nodes; i++) {
		const struct fold_node *n = &f->nodes[i];
		bool seen[64] = {false};
		uint32_t last = 0;

		for (uint32_t at = i; at && (n->self_ns || n->self_samples);
		     at = f->nodes[at].parent) {
			struct fold_frame fr = fold_frame_from(b, &f->frames[f->nodes[at].frame]);
			const uint32_t frame = fold_add_named(b, &fr);

			last = last ? last : frame;
			b->pub.flat[frame].total_ns += seen[frame] ? 0 : n->self_ns;
			b->pub.flat[frame].total_samples += seen[frame] ? 0 : n->self_samples;
			seen[frame] = true;
		}
		b->pub.flat[last].self_ns += n->self_ns;
		b->pub.flat[last].self_samples += n->self_samples;
		b->pub.flat[0].total_ns += last ? 0 : n->self_ns;
		b->pub.flat[0].total_samples += last ? 0 : n->self_samples;
	}
	return fold_end(b);
}

/* The top of a fold's sums is that of its tree. */
static void assert_same_top(const struct fold *f)
{
	struct flame_tree t, only_frames = {0};
	struct fold *flat = flat_of(f);
	struct top a, b;

	flame_tree_init(&t, f, 0, false);
	top_init(&a, &t);
	top_of_flat(&b, &only_frames, flat);
	assert_int_equal(b.n_rows, a.n_rows);
	for (size_t i = 0; i < a.n_rows; i++) {
		assert_string_equal(only_frames.frames[b.rows[i].frame].name,
				    t.frames[a.rows[i].frame].name);
		assert_int_equal(b.rows[i].self_ns, a.rows[i].self_ns);
		assert_int_equal(b.rows[i].total_ns, a.rows[i].total_ns);
		assert_int_equal(b.rows[i].self_samples, a.rows[i].self_samples);
		assert_int_equal(b.rows[i].total_samples, a.rows[i].total_samples);
		assert_int_equal(b.rows[i].inlined, a.rows[i].inlined);
		assert_int_equal(b.row_of[b.rows[i].frame], i);
	}
	top_release(&a);
	top_release(&b);
	flame_tree_release(&t);
	flame_tree_release(&only_frames);
	fold_free(flat);
}

TEST(an_empty_fold_is_a_root)
{
	struct fold_node root = {0};
	struct fold f = {.nodes = &root, .n_nodes = 1};
	struct flame_tree t;
	struct top top;

	flame_tree_init(&t, &f, 10, false);
	assert_int_equal(t.n_nodes, 1);
	top_init(&top, &t);
	assert_int_equal(top.n_rows, 0);
	top_release(&top);
	flame_tree_release(&t);
	assert_same_top(&f);
}

TEST(a_recursion_counts_once_in_total)
{
	struct fold_node nodes[] = {NODE(0, 0, 0, 10), NODE(1, 0, 1, 10), NODE(2, 1, 2, 9),
				    NODE(1, 2, 3, 7), NODE(1, 3, 4, 4)};
	struct fold f = fold_sample();
	struct flame_tree t;
	struct top top;

	f.nodes = nodes;
	f.n_nodes = ARRAY_SIZE(nodes);
	flame_tree_init(&t, &f, 0, false);
	top_init(&top, &t);
	assert_int_equal(top.n_rows, 2);
	assert_string_equal(t.frames[top.rows[0].frame].name, "main");
	assert_int_equal(top.rows[0].self_samples, 8);
	assert_int_equal(top.rows[0].total_samples, 10);
	assert_int_equal(top.rows[1].self_samples, 2);
	assert_int_equal(top.rows[1].total_samples, 9);
	top_release(&top);
	flame_tree_release(&t);
	assert_same_top(&f);
}

TEST(selves_of_the_top_add_up_to_all_samples)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct top top;
	uint64_t self = 0;

	flame_tree_init(&t, &f, 0, false);
	top_init(&top, &t);
	for (size_t i = 0; i < top.n_rows; i++) {
		self += top.rows[i].self_samples;
		assert_int_equal(top.row_of[top.rows[i].frame], i);
	}
	assert_int_equal(self, 75);
	assert_string_equal(t.frames[top.rows[0].frame].name, "small");
	top_release(&top);
	flame_tree_release(&t);
	assert_same_top(&f);
}

TEST(callers_hold_all_the_time_of_a_function)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct related r;

	flame_tree_init(&t, &f, 0, false);
	assert_int_equal(related_init(&r, &t, "work", RELATED_CALLERS, NULL), 0);
	assert_int_equal(r.n_functions, 1);
	assert_int_equal(r.samples, 35);
	assert_int_equal(r.n_paths, 1);
	assert_int_equal(r.paths[0].n, 2);
	assert_string_equal(t.frames[r.paths[0].frames[0]].name, "main");
	assert_string_equal(t.frames[r.paths[0].frames[1]].name, "work");
	assert_int_equal(r.paths[0].samples, 35);
	related_release(&r);
	flame_tree_release(&t);
}

TEST(callees_add_up_to_the_function)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct related r;
	uint64_t sum = 0;

	flame_tree_init(&t, &f, 0, false);
	assert_int_equal(related_init(&r, &t, "main", RELATED_CALLEES, NULL), 0);
	for (size_t i = 0; i < r.n_paths; i++) {
		sum += r.paths[i].samples;
		assert_string_equal(t.frames[r.paths[i].frames[0]].name, "main");
		assert_true(!i || r.paths[i].ns <= r.paths[i - 1].ns);
	}
	assert_int_equal(r.samples, 65);
	assert_int_equal(sum, 65);
	related_release(&r);
	flame_tree_release(&t);
}

TEST(a_function_that_does_not_match_says_so)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct related r;
	struct err e = {0};

	flame_tree_init(&t, &f, 0, false);
	assert_int_equal(related_init(&r, &t, "^(main|work)$", RELATED_CALLERS, &e), 0);
	assert_int_equal(r.n_functions, 2);
	assert_int_equal(r.samples, 65); /* work is within main: the outermost counts */
	related_release(&r);
	assert_true(related_init(&r, &t, "nobody", RELATED_CALLERS, &e) < 0);
	assert_int_equal(e.exit, EXIT_NOTHING);
	assert_true(related_init(&r, &t, "a(", RELATED_CALLERS, &e) < 0);
	assert_int_equal(e.exit, EXIT_USAGE);
	flame_tree_release(&t);
}
