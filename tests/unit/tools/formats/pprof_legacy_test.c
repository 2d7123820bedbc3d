/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_legacy: the first lines of files of Go (debug=1 and 2) and gperftools, and of other files.
 */
#include <string.h>

#include "schema/base/array.h"
#include "tests/unit/test.h"
#include "tools/formats/pprof_legacy.h"

static void refused(const void *data, size_t len, const char *what, const char *fix)
{
	struct err e = {0};

	assert_int_not_equal(pprof_legacy_refuse(data, len, "old.txt", &e), 0);
	assert_int_equal(e.exit, EXIT_USAGE);
	if (!strstr(e.what, what) || !strstr(e.fix, fix))
		fail_msg("%s / %s", e.what, e.fix);
}

static void taken(const char *text)
{
	if (pprof_legacy_refuse(text, strlen(text), "x", NULL))
		fail_msg("%s", text);
}

TEST(old_text_is_named_with_what_makes_it_new)
{
	/* clang-format off */
	static const char *const heads[] = {
		"heap profile: 10: 36976 [13: 1880176] @ heap/1048576\n", "goroutine profile: total 8\n", "threadcreate profile: total 4\n",
		"example.com/handles profile: total 1\n", "--- contention:\ncycles/second=2596097378\n", "--- mutex:\nsampling period=1\n",
		"--- symbol\nbinary=/bin/x\n", "--- heapz 1 ---\n",
	};
	/* clang-format on */
	static const char dump[] = "goroutine 1 [running]:\nmain.main()\n";

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		refused(heads[i], strlen(heads[i]), "old text form", "go tool pprof -proto");
	refused(dump, strlen(dump), "text dump", "debug=0");
}

TEST(old_binary_is_of_both_sizes_and_orders)
{
	const uint64_t eight[] = {0, 3, 0, 10000, 0, 1, 1, 0x400000},
		       swapped[] = {0, __builtin_bswap64(3), 0, __builtin_bswap64(10000), 0};
	const uint32_t four[] = {0, 3, 0, 10000, 0, 1},
		       four_swapped[] = {0, __builtin_bswap32(3), 0, __builtin_bswap32(10000), 0};

	const uint64_t of_java[] = {0, 3, 1, 10000, 0};

	refused(eight, sizeof(eight), "old binary form", "-proto");
	refused(of_java, sizeof(of_java), "old binary form", "-proto");
	refused(swapped, sizeof(swapped), "old binary form", "-proto");
	refused(four, sizeof(four), "old binary form", "-proto");
	refused(four_swapped, sizeof(four_swapped), "old binary form", "-proto");
	assert_int_equal(pprof_legacy_refuse(eight, 32, "x", NULL), 0);
	assert_int_equal(
		pprof_legacy_refuse("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, "x", NULL), 0);
}

TEST(what_is_new_or_another_form_is_left_alone)
{
	taken("");
	taken("main;work 3\n");
	taken("--- a;b 3\n");
	taken("heap profile;x 3\n");
	taken("my profile: total;x 3\n");
	taken("goroutine 12/13 [001] 12.5: 10101010 cpu-clock:\n\t 55 work (/x)\n");
	taken("\x0a\x04\x08\x01\x10\x02");
}
