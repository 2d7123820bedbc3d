/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/diskstats, and what /sys says of loop devices. */
#include "loaders/disk/devices.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/test.h"

TEST(a_line_of_any_kernel_has_what_is_needed)
{
	struct devices_line x;

	assert_true(devices_parse("   8       0 sda 100 5 4000 70 200 6 8000 90 3 1234 160\n", &x));
	assert_int_equal(x.major, 8);
	assert_string_equal(x.name, "sda");
	assert_int_equal(x.requests, 300);
	assert_int_equal(x.in_flight, 3);
	assert_int_equal(x.busy_ms, 1234);
	assert_true(
		devices_parse(" 259 1 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", &x));
	assert_int_equal(x.minor, 1);
	assert_int_equal(x.requests, 6);
	assert_int_equal(x.busy_ms, 10);
}

TEST(a_line_that_is_cut_is_none)
{
	const char *whole = "   8       0 sda 100 5 4000 70 200 6 8000 90 3 1234";
	struct devices_line x;
	char cut[64];

	for (size_t n = 0; n + 5 < strlen(whole); n++) {
		snprintf(cut, sizeof(cut), "%.*s", (int)n, whole);
		assert_false(devices_parse(cut, &x));
	}
}

TEST(a_device_that_is_not_there_goes_by_its_number)
{
	struct devices d;
	char name[DEVICES_NAME];

	devices_init(&d);
	assert_string_equal(devices_name(&d, 4095, 77, name), "4095:77");
	devices_release(&d);
}
