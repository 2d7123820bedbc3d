/* SPDX-License-Identifier: Apache-2.0 */
/* targetfeed: the targets that sonded adds and removes, with the stream cut anywhere. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/start/targetfeed.h"
#include "tests/unit/test.h"

TEST(what_is_given_is_there_until_it_is_taken_back)
{
	static const char text[] =
		"+70 18446744073709551615 3\n+71 1000 0\n-70 1 3\nnonsense\n+72 5\n*73 1 1\n+74 1 1 1\n"
		"+75 1 11111111111111111111111111111111111111111111111111111111111111111111\n+76 2 2\n-71 1000 0\n";

	for (size_t step = 1; step < sizeof(text); step++) {
		struct targetfeed *f = targetfeed_new(-1);

		for (size_t i = 0; i < strlen(text); i += step)
			targetfeed_take(f, text + i,
					strlen(text) - i < step ? strlen(text) - i : step);
		assert_true(targetfeed_has(f, 70, UINT64_MAX, 3));
		assert_false(targetfeed_has(f, 70, UINT64_MAX, 4));
		assert_false(targetfeed_has(f, 71, 1000, 0));
		for (uint32_t tgid = 72; tgid < 76; tgid++)
			assert_false(targetfeed_has(f, tgid, 1, 1));
		assert_true(targetfeed_has(f, 76, 2, 2));
		targetfeed_free(f);
	}
}

TEST(how_much_is_to_be_done_is_what_was_said_last)
{
	static const char text[] =
		"=2\n=x\n=3 4\n=\n+7 1 1\n=99999999999999999999999999999999999999999999999999999999999999999999999\n";
	struct targetfeed *f = targetfeed_new(-1);

	assert_int_equal(targetfeed_step(f), 0);
	targetfeed_take(f, text, strlen(text));
	assert_int_equal(targetfeed_step(f), 2);
	assert_true(targetfeed_has(f, 7, 1, 1));
	targetfeed_take(f, "=0\n=1", 5);
	assert_int_equal(targetfeed_step(f), 0);
	targetfeed_free(f);
}

TEST(when_the_giver_has_gone_what_was_given_stays)
{
	struct targetfeed *f;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	f = targetfeed_new(fds[0]);
	targetfeed_read(f); /* nothing there: it does not wait */
	assert_int_equal(write(fds[1], "+70 1 1\n", 8), 8);
	close(fds[1]);
	targetfeed_read(f);
	targetfeed_read(f);
	assert_true(targetfeed_has(f, 70, 1, 1));
	targetfeed_free(f);
}
