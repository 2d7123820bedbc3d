/* SPDX-License-Identifier: Apache-2.0 */
/* flame_tree, top, related: what a person sees of a fold adds up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tools/fold_sample.h"
#include "tools/flame_tree.h"
#include "tools/related.h"
#include "tools/top.h"

static const char *name_of(const struct flame_tree *t, size_t node)
{
	return t->frames[t->nodes[node].frame].name;
}

static void call_sites_of_one_function_are_one_node_hottest_first(void **state)
{
	static const struct {
		const char *name;
		uint32_t depth;
		uint64_t self, total;
	} want[] = {
		{"all", 0, 0, 75}, {"main", 1, 0, 65}, {"work", 2, 5, 35}, {"small", 3, 30, 30},
		{"libc.so.6+0x1234", 2, 10, 30}, {"do_syscall_64", 3, 20, 20}, {HOSTILE, 1, 7, 7},
		{"[no stack]", 1, 3, 3},
	};
	struct fold f = fold_sample();
	struct flame_tree t;

	(void)state;
	flame_tree_init(&t, &f, 0, false);
	assert_int_equal(t.n_nodes, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_string_equal(name_of(&t, i), want[i].name);
		assert_int_equal(t.nodes[i].depth, want[i].depth);
		assert_int_equal(t.nodes[i].self_samples, want[i].self);
		assert_int_equal(t.nodes[i].total_samples, want[i].total);
		assert_int_equal(t.nodes[i].total_ns, want[i].total * SAMPLE_NS);
		assert_true(!i || t.nodes[i].parent < i);
	}
	assert_int_equal(t.frames[t.nodes[1].frame].line, 0); /* two call sites do not agree on a line */
	assert_int_equal(t.frames[t.nodes[2].frame].line, 20);
	flame_tree_release(&t);
}

static void what_is_left_out_stays_in_the_sum(void **state)
{
	struct fold f = fold_sample();

	(void)state;
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

static void an_empty_fold_is_a_root(void **state)
{
	struct fold_node root = {0};
	struct fold f = {.nodes = &root, .n_nodes = 1};
	struct flame_tree t;
	struct top top;

	(void)state;
	flame_tree_init(&t, &f, 10, false);
	assert_int_equal(t.n_nodes, 1);
	top_init(&top, &t);
	assert_int_equal(top.n_rows, 0);
	top_release(&top);
	flame_tree_release(&t);
}

static void a_recursion_counts_once_in_total(void **state)
{
	struct fold_node nodes[] = {NODE(0, 0, 0, 10), NODE(1, 0, 1, 10), NODE(2, 1, 2, 9), NODE(1, 2, 3, 7), NODE(1, 3, 4, 4)};
	struct fold f = fold_sample();
	struct flame_tree t;
	struct top top;

	(void)state;
	f.nodes = nodes;
	f.n_nodes = COUNT(nodes);
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
}

static void selves_of_the_top_add_up_to_all_samples(void **state)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct top top;
	uint64_t self = 0;

	(void)state;
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
}

static void callers_hold_all_the_time_of_a_function(void **state)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct related r;

	(void)state;
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

static void callees_add_up_to_the_function(void **state)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct related r;
	uint64_t sum = 0;

	(void)state;
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

static void a_function_that_does_not_match_says_so(void **state)
{
	struct fold f = fold_sample();
	struct flame_tree t;
	struct related r;
	struct err e = {0};

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_sites_of_one_function_are_one_node_hottest_first),
		cmocka_unit_test(what_is_left_out_stays_in_the_sum),
		cmocka_unit_test(an_empty_fold_is_a_root),
		cmocka_unit_test(a_recursion_counts_once_in_total),
		cmocka_unit_test(selves_of_the_top_add_up_to_all_samples),
		cmocka_unit_test(callers_hold_all_the_time_of_a_function),
		cmocka_unit_test(callees_add_up_to_the_function),
		cmocka_unit_test(a_function_that_does_not_match_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
