/* SPDX-License-Identifier: Apache-2.0 */
/* units: numbers for people, at the edges where a unit or a digit changes. */
#include "schema/base/array.h"
#include "schema/base/units.h"
#include "tests/unit/test.h"

#define S   1000000000ll
#define MIN (60 * S)
#define H   (60 * MIN)

TEST(durations_have_three_digits_or_two_units)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{-5, "0 s"},
		{0, "0 s"},
		{1, "1 ns"},
		{999, "999 ns"},
		{1240, "1.24 us"},
		{38000000, "38 ms"},
		{250000000, "250 ms"},
		{1004000, "1 ms"},
		{1015000, "1.01 ms"},
		{999499, "999 us"},
		{999700, "1 ms"},
		{999999999, "1 s"},
		{1500 * S / 1000, "1.5 s"},
		{10 * S, "10 s"},
		{99949000000, "99.9 s"},
		{99960000000, "100 s"},
		{90 * S, "90 s"},
		{119 * S, "119 s"},
		{2 * MIN - 1, "2 min"},
		{200 * S, "3 min 20 s"},
		{900 * S, "15 min"},
		{2 * H - 1, "2 h"},
		{3 * H + 4 * MIN, "3 h 4 min"},
		{48 * H - 1, "2 d"},
		{49 * H, "2 d 1 h"},
		{INT64_MAX, "106752 d"},
	};
	char buf[UNITS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(units_ns(cases[i].ns, buf, sizeof(buf)), cases[i].text);
	assert_string_equal(units_seconds(1.5, buf, sizeof(buf)), "1.5 s");
	assert_string_equal(units_seconds(-1, buf, sizeof(buf)), "0 s");
}

TEST(sizes_have_three_digits)
{
	static const struct {
		uint64_t n;
		const char *text;
	} cases[] = {
		{0, "0 B"},         {1023, "1023 B"},      {1024, "1 KiB"},
		{1536, "1.5 KiB"},  {421888, "412 KiB"},   {1047552, "1023 KiB"},
		{1048575, "1 MiB"}, {1835008, "1.75 MiB"}, {UINT64_MAX, "16 EiB"},
	};
	char buf[UNITS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(units_bytes(cases[i].n, buf, sizeof(buf)), cases[i].text);
}

TEST(counts_cores_and_shares_are_printed_for_people)
{
	char b[UNITS_MAX];

	assert_string_equal(units_count(7, b, sizeof(b)), "7");
	assert_string_equal(units_count(7921, b, sizeof(b)), "7 921");
	assert_string_equal(units_count(1234567, b, sizeof(b)), "1 234 567");
	assert_string_equal(units_count(UINT64_MAX, b, sizeof(b)), "18 446 744 073 709 551 615");
	assert_string_equal(units_cores(1.37, b, sizeof(b)), "1.37 cores");
	assert_string_equal(units_cores(0.004, b, sizeof(b)), "0.004 cores");
	assert_string_equal(units_share(1, 3, b, sizeof(b)), "33.3 %");
	assert_string_equal(units_share(1, 0, b, sizeof(b)), "0.0 %");
}

TEST(a_time_has_as_many_digits_as_are_asked_for)
{
	const int64_t ns = 1795893989041007089;
	char b[UNITS_MAX];

	assert_string_equal(units_utc(ns, 0, b, sizeof(b)), "2026-11-28T19:26:29Z");
	assert_string_equal(units_utc(ns, 3, b, sizeof(b)), "2026-11-28T19:26:29.041Z");
	assert_string_equal(units_utc(ns, 6, b, sizeof(b)), "2026-11-28T19:26:29.041007Z");
	assert_string_equal(units_utc(ns, 9, b, sizeof(b)), "2026-11-28T19:26:29.041007089Z");
}
