/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_offsets: how a goroutine is found, by Go's version and by the rows. */
#include <string.h>

#include "loaders/maps/publish/goroutine_offsets.h"
#include "probes/lib/tables.h"
#include "tests/unit/test.h"

/* Two extensions of other kinds and that of morestack behind a page and a rule. */
struct section {
	uint64_t page, rule;
	struct row_ext ext[3];
};

static uint32_t flags(const char *version, int32_t tls, int32_t curg, int32_t bp)
{
	const struct section s = {
		.ext = {{.kind = ROW_EXT_CFA},
			{.kind = ROW_EXT_SWITCH},
			{.kind = ROW_EXT_GO_SCHED, .a = tls, .b = curg, .bp_offset = bp}}};
	const struct unwind_section rows = {
		.elements = &s.page, .page_count = 1, .rule_count = 1, .ext_count = 3};

	return goroutine_offsets_flags(&rows, version);
}

TEST(each_version_has_its_goid_where_its_source_says)
{
	assert_int_equal(flags("go1.19.8", -8, 192, 48), TABLES_GO_MAKE(1, 152 / 8, 192 / 8));
	assert_int_equal(flags("go1.22.1", -8, 192, 48), TABLES_GO_MAKE(1, 152 / 8, 192 / 8));
	assert_int_equal(flags("go1.23.4", -8, 192, 48), TABLES_GO_MAKE(1, 160 / 8, 192 / 8));
	assert_int_equal(flags("go1.24", -32, 192, 48), TABLES_GO_MAKE(4, 160 / 8, 192 / 8));
	assert_int_equal(flags("go1.26.8", -8, 184, 40), TABLES_GO_MAKE(1, 152 / 8, 184 / 8));
	assert_int_equal(flags("devel go1.27-0123456", -8, 184, 40),
			 TABLES_GO_MAKE(1, 152 / 8, 184 / 8));
	assert_int_equal(flags("", -8, 184, 40),
			 TABLES_GO_MAKE(1, 152 / 8, 184 / 8)); /* of no older one */
}

TEST(what_is_not_known_says_that_it_is_go_and_no_more)
{
	const struct unwind_section none = {0};

	assert_int_equal(goroutine_offsets_flags(NULL, "go1.26.8"), TABLES_PROCESS_GO);
	assert_int_equal(goroutine_offsets_flags(&none, "go1.26.8"), TABLES_PROCESS_GO);
	assert_int_equal(flags("", -8, 192, 48), TABLES_PROCESS_GO); /* 1.22 or 1.23 */
	assert_int_equal(flags("go1.26.8", -8, 184, 56), TABLES_PROCESS_GO);
	assert_int_equal(flags("go1.26.8", 8, 184, 40), TABLES_PROCESS_GO);
	assert_int_equal(flags("go1.26.8", -9, 184, 40), TABLES_PROCESS_GO);
	assert_int_equal(flags("go1.26.8", -8 * 65536, 184, 40), TABLES_PROCESS_GO);
	assert_int_equal(flags("go1.26.8", INT32_MIN, 184, 40), TABLES_PROCESS_GO);
	assert_int_equal(flags("go1.26.8", -8, 512, 40), TABLES_PROCESS_GO);
	assert_int_equal(flags("go1.26.8", -8, 0, 40), TABLES_PROCESS_GO);
}

TEST(a_process_with_two_runtimes_is_of_neither)
{
	const uint32_t one = TABLES_GO_MAKE(1, 19, 24), other = TABLES_GO_MAKE(1, 20, 24);

	assert_int_equal(goroutine_offsets_join(0, one), one);
	assert_int_equal(goroutine_offsets_join(one, one), one);
	assert_int_equal(goroutine_offsets_join(one, TABLES_PROCESS_OBJECTS),
			 one | TABLES_PROCESS_OBJECTS);
	assert_int_equal(goroutine_offsets_join(one, other), TABLES_PROCESS_GO);
	assert_int_equal(goroutine_offsets_join(goroutine_offsets_join(one, other), one),
			 TABLES_PROCESS_GO);
}
