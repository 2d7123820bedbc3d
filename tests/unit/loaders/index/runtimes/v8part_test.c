/* SPDX-License-Identifier: Apache-2.0 */
/* V8 in a file: the text of its version, and the symbols that identify it. */
#include <string.h>

#include "loaders/index/runtimes/v8part.h"
#include "tests/unit/test.h"

static uint32_t version(const char *text)
{
	return v8part_version(text, strlen(text));
}

TEST(a_version_is_its_first_two_numbers)
{
	assert_int_equal(version("11.3.244.8-node.38"), 0x0b03);
	assert_int_equal(version("9.4.146.26-node.26"), 0x0904);
	assert_int_equal(version("13.6."), 0x0d06);
	assert_int_equal(version("13.6"), 0); /* it may be cut off */
	assert_int_equal(version("11"), 0);
	assert_int_equal(version(".3.1"), 0);
	assert_int_equal(version("300.1.2"), 0);
	assert_int_equal(version("99999999999.1.2"), 0);
	assert_int_equal(version(""), 0);
}

TEST(a_number_is_found_by_each_name_that_versions_give_it)
{
	struct v8_symbols s = {0};

	v8_symbols_note(&s, "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
			0x10, 4);
	assert_int_equal(s.at[V8_SHARED_SCRIPT], 0x10);
	v8_symbols_note(&s, "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", 0x20, 4);
	assert_int_equal(s.at[V8_SHARED_SCRIPT], 0x20);
	v8_symbols_note(&s, "v8dbg_class_SharedFunctionInfo", 0x30, 4);
	v8_symbols_note(&s, "_ZN2v82V810GetVersionEv", 0x40, 8);
	v8_symbols_note(&s, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE", 0x50, 591);
	assert_int_equal(s.at[V8_SHARED_SCRIPT], 0x20);
	assert_int_equal(s.code[V8_SYMBOL_VERSION], 0x40);
	assert_int_equal(s.bytecodes_size, 591);
}
