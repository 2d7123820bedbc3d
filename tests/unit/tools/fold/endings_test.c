/* SPDX-License-Identifier: Apache-2.0 */
/* endings: sums over segments by program; the program with the most cut stacks first, with its
 * first cause. */
#include <string.h>

#include "schema/base/cleanup.h"
#include "tests/unit/test.h"
#include "tools/fold/endings.h"

static void add(struct endings *x, const char *executable, const char *module, const char *reason,
		uint64_t n)
{
	endings_add(x, &(struct store_ending_row){.executable = executable,
						  .module = module,
						  .reason = reason,
						  .complete = !strcmp(reason, "complete"),
						  .n = n});
}

TEST(programs_are_told_by_how_many_of_their_stacks_are_cut_short)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	struct endings x = {0};
	json_t *list, *first;

	assert_true(endings_share(&x) == 0);
	add(&x, "/bin/good", "", "complete", 700);
	add(&x, "/usr/bin/node", "", "complete", 190);
	add(&x, "/usr/bin/node", "[anon]", "pointers", 3);
	add(&x, "/usr/bin/node", "libc.so.6", "rule", 4);
	add(&x, "/usr/bin/node", "[anon]", "pointers", 3); /* the next segment */
	add(&x, "", "/", "no process", 100);               /* a file without a name */
	endings_add(&x, &(struct store_ending_row){.executable = "/bin/true",
						   .module = "",
						   .reason = "gone",
						   .gone = true,
						   .n = 50});
	endings_sort(&x);
	assert_int_equal(x.n, 1000);
	assert_true(endings_share(&x) == 0.89);
	endings_say(&x, 0, &s);
	assert_string_equal(strbuf_str(&s),
			    "an unknown program, where 100.0 % end early: no process");
	strbuf_reset(&s);
	endings_say(&x, 1, &s);
	assert_string_equal(strbuf_str(&s), "node, where 5.0 % end early, in [anon]: pointers");
	list = endings_json(&x, 20);
	assert_int_equal(json_array_size(list), 2); /* the good one has nothing to tell */
	first = json_array_get(list, 1);
	assert_string_equal(json_string_value(json_object_get(first, "executable")),
			    "/usr/bin/node");
	assert_true(json_real_value(json_object_get(first, "complete_share")) == 0.95);
	assert_int_equal(json_array_size(json_object_get(first, "cuts")), 2);
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(first, "cuts"), 0), "samples")),
			 6);
	json_decref(list);
	endings_release(&x);
}
