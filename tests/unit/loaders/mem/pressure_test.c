/* SPDX-License-Identifier: Apache-2.0 */
/* pressure: what the kernel's account of waits for memory says. */
#include <errno.h>
#include <string.h>

#include "loaders/mem/pressure.h"
#include "tests/unit/test.h"

static int parsed(const char *text, uint64_t *us)
{
	return pressure_parse(text, strlen(text), us);
}

TEST(the_account_is_of_some_thread_that_waited)
{
	uint64_t us = 7;

	assert_int_equal(parsed("some avg10=0.00 avg60=0.12 avg300=0.00 total=123456\n"
				"full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n",
				&us),
			 0);
	assert_int_equal(us, 123456);
}

TEST(what_is_no_account_is_refused)
{
	static const char *const texts[] = {"", "some ", "full avg10=0.00 total=9\n",
					    "some avg10=0.00 total=\n", "some total=x"};
	char large[600];
	uint64_t us = 7;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(parsed(texts[i], &us), -EBADMSG);
	memset(large, ' ', sizeof(large));
	assert_int_equal(pressure_parse(large, sizeof(large), &us), -EBADMSG);
	assert_int_equal(us, 7);
}
