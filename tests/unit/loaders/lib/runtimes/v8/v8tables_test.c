/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as V8 has written them, read out of Node 20 and 24, and what V8 printed of them
 * (--print-bytecode). */
#include "loaders/lib/runtimes/v8/v8tables.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

TEST(a_place_has_the_last_position_at_or_before_it)
{
	static const uint8_t table[] = {0x01, 0x04, 0x03, 0x00, 0x38, 0x2c, 0x07, 0x00, 0x09,
					0x00, 0x43, 0x94, 0x06, 0x04, 0xd8, 0x03, 0x08, 0x20};
	static const struct {
		uint32_t at;
		int64_t position;
	} of_v8[] = {{0, 0},    {27, 0},   {28, 11},  {31, 11},  {35, 11},  {67, 11},
		     {68, 208}, {69, 208}, {70, 326}, {73, 326}, {74, 334}, {1000, 334}};

	for (size_t i = 0; i < ARRAY_SIZE(of_v8); i++)
		assert_int_equal(v8_position_find(V8_SHAPE_13, table, sizeof(table), of_v8[i].at),
				 of_v8[i].position);
	assert_int_equal(v8_position_find(V8_SHAPE_13, table, 0, 3), V8_NOWHERE);
	assert_int_equal(v8_position_find(V8_SHAPE_13, table, 15, 70), V8_NOWHERE); /* cut off */
}

/* Of Node 26: a function of 56 bytes of bytecode. */
TEST(a_place_of_v8_14_is_found_by_its_own_coding)
{
	static const uint8_t table[] = {0x02, 0x2c, 0x07, 0x2c, 0x0f, 0x10, 0x12, 0x20,
					0x16, 0x24, 0x12, 0x3c, 0x26, 0x0f, 0x22, 0x3b,
					0x3e, 0x13, 0x17, 0xec, 0x01, 0x0b, 0x24};
	static const struct {
		uint32_t at;
		int64_t position;
	} of_v8[] = {{0, 21},  {3, 25},  {7, 33},  {11, 33}, {12, 42}, {16, 57},
		     {25, 53}, {33, 38}, {48, 33}, {53, 92}, {55, 101}};

	for (size_t i = 0; i < ARRAY_SIZE(of_v8); i++)
		assert_int_equal(v8_position_find(V8_SHAPE_14, table, sizeof(table), of_v8[i].at),
				 of_v8[i].position);
}

TEST(baseline_code_counts_instructions_of_bytecode)
{
	static const uint8_t table[] = {0x20, 0x00, 0x10, 0x84, 0x01};

	assert_int_equal(v8_baseline_find(table, sizeof(table), 0x20),
			 V8_NOWHERE); /* before the first */
	assert_int_equal(v8_baseline_find(table, sizeof(table), 0x21),
			 1); /* the first has no code */
	assert_int_equal(v8_baseline_find(table, sizeof(table), 0x30), 1);
	assert_int_equal(v8_baseline_find(table, sizeof(table), 0x31), 2);
	assert_int_equal(v8_baseline_find(table, sizeof(table), 0x30 + 132), 2);
	assert_int_equal(v8_baseline_find(table, sizeof(table), 0x31 + 132), V8_NOWHERE);
}

TEST(a_return_address_has_the_entry_that_is_exactly_its_own)
{
	/* Node 24, Maglev: 17 slots, 2 of its 20 entries, 2 bytes a place, 1 an index, 2 registers
	 */
	static const uint8_t table[] = {0x11, 0, 0,    0,    2,    0,    0,    0,    0xa5, 0,    0,
					0,    6, 0,    0,    0,    0x28, 0,    0x0b, 0xa3, 0x0a, 0,
					0,    0, 0x46, 0x02, 0x0c, 0xa7, 0x0a, 0,    0,    0};

	assert_int_equal(v8_safepoint_size(V8_SHAPE_13, true, table), sizeof(table));
	assert_int_equal(v8_safepoint_find(V8_SHAPE_13, true, table, sizeof(table), 0x28), 10);
	assert_int_equal(v8_safepoint_find(V8_SHAPE_13, true, table, sizeof(table), 0x246), 11);
	assert_int_equal(v8_safepoint_find(V8_SHAPE_13, true, table, sizeof(table), 0xaa6),
			 11); /* where it goes to be given up */
	assert_int_equal(v8_safepoint_find(V8_SHAPE_13, true, table, sizeof(table), 0x29),
			 V8_NOWHERE);
	assert_int_equal(v8_safepoint_find(V8_SHAPE_13, true, table, sizeof(table) - 1, 0x28),
			 V8_NOWHERE);
}

TEST(a_translation_says_its_frames_from_the_outermost)
{
	/* 11: two frames, a value; then the same again but for the last frame's place */
	static const uint8_t table[] = {2, 0, 4, 4,  24, 0x0e, 0,  0, 31, 2,    24, 0x04,
					2, 0, 2, 14, 4,  4,    35, 2, 24, 0x20, 2,  0};
	struct v8_inlined out[V8_INLINED_MAX];

	assert_int_equal(v8_translation_read(V8_SHAPE_11, table, sizeof(table), 0, out), 2);
	assert_int_equal(out[0].bytecode, 7);
	assert_int_equal(out[0].literal, 0);
	assert_int_equal(out[1].bytecode, 2);
	assert_int_equal(out[1].literal, 1);
	assert_int_equal(v8_translation_read(V8_SHAPE_11, table, sizeof(table), 14, out), 2);
	assert_int_equal(out[0].bytecode, 7);
	assert_int_equal(out[1].bytecode, 16);
	assert_int_equal(v8_translation_read(V8_SHAPE_11, table, sizeof(table), 4, out), 0);
	assert_int_equal(v8_translation_read(V8_SHAPE_11, table, 9, 0, out), 0);
}
