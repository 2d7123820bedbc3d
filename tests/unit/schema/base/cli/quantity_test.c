/* SPDX-License-Identifier: Apache-2.0 */
/* quantity: what people write is read as they mean it; anything else is refused. */
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cli/quantity.h"
#include "tests/unit/test.h"

TEST(sizes_are_read)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"1", 1},
		    {"2G", 2ull << 30},
		    {"500M", 500ull << 20},
		    {"64 MB", 64ull << 20},
		    {"1.5GiB", 3ull << 29},
		    {"0.5k", 512},
		    {"1048576", 1 << 20},
		    {"3t", 3ull << 40},
		    {"7b", 7}};
	static const char *const bad[] = {
		"",        "G",   "-1",          "0",   "1X",  "1GG",    "1.",
		"1.1234G", "1e3", "9999999999T", "2G ", " 2G", "1.5.5G", "99999999999999999999",
		"\xff"};
	uint64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(quantity_bytes(good[i].text, &v), 0);
		assert_int_equal(v, good[i].bytes);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!quantity_bytes(bad[i], &v))
			fail_msg("'%s' was read as %llu", bad[i], (unsigned long long)v);
}

TEST(times_are_read)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{"14d", 14ll * 86400000000000}, {"1h30m", 5400000000000}, {"500ms", 500000000},
		{"10s", 10000000000},           {"1.5s", 1500000000},     {"15min", 900000000000},
		{"1w", 604800000000000},        {"1m1ms", 60001000000},   {"500us", 500000}};
	static const char *const bad[] = {
		"",    "d",   "0",    "-1s",  "1y",           "1h30",        "999999999d",
		"1 h", "1s1", "\xff", "s",    "0s",           "10x",         "10sm",
		"1.s", "h1",  "10S",  " 10s", "999999999999", "9999999999w", "1h-1m",
		"1ss", "90",  "1.5",  "15m3"};
	int64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(quantity_ns(good[i].text, &v), 0);
		assert_int_equal(v, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!quantity_ns(bad[i], &v))
			fail_msg("'%s' was read as %lld", bad[i], (long long)v);
}

TEST(a_time_without_a_unit_is_told_apart)
{
	static const char *const bare[] = {"15", "1.5", "0.5", "007"};
	static const char *const other[] = {"0", "0.0", "", "15s", "1m5", "-15", "15 ", "x", "1."};

	for (size_t i = 0; i < ARRAY_SIZE(bare); i++)
		assert_true(quantity_lacks_unit(bare[i]));
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(quantity_lacks_unit(other[i]));
}

TEST(what_is_said_is_short)
{
	char buf[32];

	assert_string_equal(quantity_say_ns(14ll * 86400000000000, buf, sizeof(buf)), "14d");
	assert_string_equal(quantity_say_ns(7500000000000, buf, sizeof(buf)), "2h 5m");
	assert_string_equal(quantity_say_ns(12000000000, buf, sizeof(buf)), "12s");
}
