/* SPDX-License-Identifier: Apache-2.0 */
/* unnamed: reports the file that lacks most names, and only if that is much. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"
#include "tools/record/unnamed.h"

#define FILE_OF(m) .module = m, .module_path = "/usr/bin/" m

static struct fold_frame frames[] = {
	{.name = "-", .module = "", .module_path = ""},
	{.name = "main", FILE_OF("app"), .named = true},
	{.name = "app+0x10", FILE_OF("app")},
	{.name = "app+0x20", FILE_OF("app")},
	{.name = "lib+0x30", FILE_OF("lib")},
	{.name = "[kernel]+0x1", .module = "[kernel]", .module_path = "", .origin = FOLD_KERNEL},
	{.name = "[jit]+0x1", .module = "[jit]", .module_path = "", .origin = FOLD_JIT},
	{.name = "[anon]+0x1", .module = "[anon]", .module_path = "", .origin = FOLD_NATIVE},
};
static struct fold_node nodes[] = {{0},          {.frame = 1}, {.frame = 2}, {.frame = 3},
				   {.frame = 4}, {.frame = 5}, {.frame = 6}, {.frame = 7}};
static struct fold_process processes[] = {{.comm = "app"}, {.comm = "sonde-cpu", .self = true}};

/* Used in each frame of `frames`, by the app; then sonde itself, all in lib. */
static struct fold host(struct fold_leaf *leaves, const uint64_t used[8])
{
	for (uint32_t i = 0; i < 8; i++)
		leaves[i] = (struct fold_leaf){.node = i, .ns = used[i]};
	leaves[8] = (struct fold_leaf){.node = 4, .process = 1, .ns = 1000000};
	return (struct fold){.frames = frames,
			     .n_frames = 8,
			     .nodes = nodes,
			     .n_nodes = 8,
			     .processes = processes,
			     .n_processes = 2,
			     .leaves = leaves,
			     .n_leaves = 9};
}

static char *said(const uint64_t used[8])
{
	struct fold_leaf leaves[9];
	struct fold f = host(leaves, used);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	unnamed_print(&f, out);
	fclose(out);
	return text;
}

TEST(the_file_with_most_is_told_with_its_share_of_all)
{
	const uint64_t used[8] = {10, 30, 20, 20, 20};
	char *text = said(used);

	assert_memory_equal(text, "40 % of the time is in functions of app that have no name", 57);
	assert_non_null(strstr(text, "fix: install its debug symbols"));
	free(text);
}

TEST(a_little_is_not_worth_a_word_and_what_is_no_file_is_left_out)
{
	const uint64_t little[8] = {0, 90, 5, 5}, others[8] = {0, 10, 0, 0, 0, 30, 20, 40},
		       none[8] = {0};
	char *a = said(little), *b = said(others), *c = said(none);

	assert_string_equal(a, "");
	assert_string_equal(b, "");
	assert_string_equal(c, "");
	free(a);
	free(b);
	free(c);
}

TEST(an_empty_profile_has_none)
{
	struct fold f = {0};
	double share;

	assert_int_equal(unnamed_most(&f, &share), UINT32_MAX);
	assert_true(share == 0);
}
