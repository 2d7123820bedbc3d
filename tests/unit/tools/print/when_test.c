/* SPDX-License-Identifier: Apache-2.0 */
/* when: every form of a time means what it says, and nothing else is a time. The oracle is date(1)
 * by hand: NOW is 2026-11-20 14:10:03 UTC; local times are tried in UTC and in Berlin (UTC+1 then,
 * +2 in summer). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"
#include "tools/print/when.h"

#define S     NSEC_PER_SEC
#define NOW   (1795183803ll * S)
#define TODAY 1795132800ll /* 2026-11-20T00:00:00Z */

struct form {
	const char *text;
	int64_t ns;
};

static void set_zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static void check_forms(const struct form *forms, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t got = -1;

		if (when_parse(forms[i].text, NOW, &got) || got != forms[i].ns)
			fail_msg("'%s': %lld, wanted %lld", forms[i].text, (long long)got,
				 (long long)forms[i].ns);
	}
}

TEST(every_form_of_a_time_is_understood)
{
	static const struct form forms[] = {
		{"now", NOW},
		{"2026-11-20T03:10:00Z", (TODAY + 11400) * S},
		{"2026-11-20t03:10:00z", (TODAY + 11400) * S},
		{"2026-11-20T03:10:00+01:00", (TODAY + 7800) * S},
		{"2026-11-20T03:10:00-05:30", (TODAY + 31200) * S},
		{"2026-11-20T03:10:00.250Z", (TODAY + 11400) * S + S / 4},
		{"2026-11-20 03:10:00Z", (TODAY + 11400) * S},
		{"2026-11-20 03:10", (TODAY + 11400) * S},
		{"2026-11-20T03:10", (TODAY + 11400) * S},
		{"2026-11-20 03:10:07", (TODAY + 11407) * S},
		{"2026-11-20 03:10:07.5", (TODAY + 11407) * S + S / 2},
		{"2026-11-20", TODAY * S},
		{"03:10", (TODAY + 11400) * S},
		{"03:10:07", (TODAY + 11407) * S},
		{"14:10", (TODAY + 51000) * S},
		{"14:11", (TODAY + 51060 - 86400) * S},
		{"today 23:00", (TODAY + 82800) * S},
		{"yesterday 03:10", (TODAY + 11400 - 86400) * S},
		{"yesterday", (TODAY - 86400) * S},
		{"today", TODAY * S},
		{"-2h", NOW - 7200 * S},
		{"-1h30m", NOW - 5400 * S},
		{"-90s", NOW - 90 * S},
		{"-250ms", NOW - S / 4},
		{"-1w2d", NOW - 9 * 86400 * S},
		{"1795144200", 1795144200 * S},
		{"1795144200.25", 1795144200 * S + S / 4},
		{"1795144200250", 1795144200 * S + S / 4},
		{"2024-02-29", 1709164800 * S},
	};

	set_zone("UTC");
	check_forms(forms, ARRAY_SIZE(forms));
}

TEST(times_without_a_zone_are_local)
{
	static const struct form forms[] = {
		{"2026-11-20 03:10", (TODAY + 7800) * S},
		{"2026-11-20T03:10:00Z", (TODAY + 11400) * S},
		{"2026-07-01 12:00", 1782900000 * S},
		{"15:10", (TODAY + 51000) * S},
		{"15:11", (TODAY + 51060 - 86400) * S},
		{"yesterday", (TODAY - 86400 - 3600) * S},
	};

	set_zone("Europe/Berlin");
	check_forms(forms, ARRAY_SIZE(forms));
	set_zone("UTC");
}

TEST(the_day_before_a_change_of_the_clocks_is_found)
{
	int64_t got, monday = 1774814400ll *
			      S; /* 2026-03-29T20:00Z, the day Berlin went to summer time */

	set_zone("Europe/Berlin");
	assert_int_equal(when_parse("yesterday 12:00", monday, &got), 0);
	assert_int_equal(got, 1774695600ll * S); /* 2026-03-28T11:00Z */
	set_zone("UTC");
}

TEST(what_is_no_time_is_refused)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", " ", "tomorrow", "3:10", "03:1", "24:00", "03:60", "03:10:61", "2026-13-01", "2026-02-30",
		"2026-11-31", "2026-11-20T", "2026-11-20 03", "2026-11-20T03:10:00+1", "2026-11-20T03:10:00Z ",
		"2026-11-20x", "1969-12-31", "9999-01-01", "yesterdayx", "yesterday  03:10", "-", "-x", "-2x", "-90", "-2h ",
		"2h", "123", "12345678", "123456789012345", "1795144200x", "99999999999999999999", "-99999999999999d",
		"03:10:07.", "now ", "0x10", "-1e9", "-20000w",
		"11250795144205",
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int64_t got = 77;

		if (!when_parse(bad[i], NOW, &got))
			fail_msg("'%s' was taken for %lld", bad[i], (long long)got);
		assert_int_equal(got, 77);
	}
}

TEST(times_are_printed_as_people_and_machines_read_them)
{
	char buf[32];

	set_zone("Europe/Berlin");
	assert_string_equal(when_utc(NOW, buf, sizeof(buf)), "2026-11-20T14:10:03Z");
	assert_string_equal(when_utc(NOW + S / 4, buf, sizeof(buf)), "2026-11-20T14:10:03.250Z");
	assert_string_equal(when_local(NOW, NOW, buf, sizeof(buf)), "15:10:03");
	assert_string_equal(when_local(NOW - 86400 * S, NOW, buf, sizeof(buf)),
			    "2026-11-19 15:10:03");
	set_zone("UTC");
}
