/* SPDX-License-Identifier: Apache-2.0 */
/* hotfunctions: what one names of a script's stack is the script's line. */
#include "tools/fold/ranking/hotfunctions.h"

#include "schema/base/array.h"
#include "tests/unit/test.h"

/* The function of a stack, root first. */
static const char *named(const struct fold_frame *frames, uint32_t n)
{
	struct fold_node nodes[16] = {{0}};
	const struct fold f = {.frames = (struct fold_frame *)frames,
			       .n_frames = n,
			       .nodes = nodes,
			       .n_nodes = n + 1};
	struct hotfunctions h;
	const char *name;

	for (uint32_t i = 1; i <= n; i++)
		nodes[i] = (struct fold_node){.frame = i - 1, .parent = i - 1};
	hotfunctions_init(&h, &f);
	name = frames[h.frame[h.of[n]]].name;
	hotfunctions_release(&h);
	return name;
}

#define SCRIPT(n, line_)                                                          \
	{                                                                         \
		.name = n, .module = "shop.py", .file = "shop.py", .line = line_, \
		.origin = FOLD_SCRIPT                                             \
	}
#define NATIVE(n, m)                               \
	{                                          \
		.name = n, .module = m, .file = "" \
	}

TEST(a_script_that_ends_in_the_c_library_or_the_kernel_is_named_by_its_own_function)
{
	const struct fold_frame python[] = {NATIVE("main", "python3.11"), SCRIPT("handle", 4),
					    SCRIPT("render", 9), NATIVE("memcpy", "libc.so.6")};
	const struct fold_frame waits[] = {SCRIPT("handle", 4),
					   {.name = "finish_task_switch",
					    .module = "[kernel]",
					    .file = "",
					    .origin = FOLD_KERNEL}};
	const struct fold_frame node[] = {{.name = "onMessage",
					   .module = "chat.js",
					   .file = "chat.js",
					   .origin = FOLD_JIT,
					   .named = true},
					  NATIVE("Builtins_ArrayMap", "node")};

	assert_string_equal(named(python, ARRAY_SIZE(python)), "render");
	assert_string_equal(named(waits, ARRAY_SIZE(waits)), "handle");
	assert_string_equal(named(node, ARRAY_SIZE(node)), "onMessage");
}

TEST(a_native_program_is_named_by_its_leaf)
{
	const struct fold_frame frames[] = {NATIVE("main", "app"), NATIVE("memcpy", "libc.so.6")};

	assert_string_equal(named(frames, ARRAY_SIZE(frames)), "memcpy");
}

TEST(lines_of_one_function_are_one)
{
	const struct fold_frame frames[] = {SCRIPT("handle", 4), SCRIPT("handle", 5)};
	struct fold_node nodes[] = {{0}, {.frame = 0}, {.frame = 1}};
	const struct fold f = {
		.frames = (struct fold_frame *)frames, .n_frames = 2, .nodes = nodes, .n_nodes = 3};
	struct hotfunctions h;

	hotfunctions_init(&h, &f);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.of[1], h.of[2]);
	hotfunctions_release(&h);
}
