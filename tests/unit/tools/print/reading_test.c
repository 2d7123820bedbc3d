/* SPDX-License-Identifier: Apache-2.0 */
/* reading: the notice of a long read appears on a terminal and is erased again; short and quiet
 * reads have none. */
#include <stdbool.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/print/reading.h"

static int master, kept;

static int terminal_open(void **state)
{
	int other;

	(void)state;
	if (openpty(&master, &other, NULL, NULL, NULL))
		return -1;
	kept = dup(STDERR_FILENO);
	dup2(other, STDERR_FILENO);
	return close(other);
}

static int terminal_close(void **state)
{
	(void)state;
	dup2(kept, STDERR_FILENO);
	close(kept);
	return close(master);
}

/* What came, once it holds `part`. */
static void wait_for(const char *part)
{
	char text[1024] = "";
	size_t n = 0;

	while (!strstr(text, part)) {
		ssize_t got = read(master, text + n, sizeof(text) - 1 - n);

		assert_true(got > 0);
		n += (size_t)got;
		text[n] = '\0';
	}
}

static bool is_silent(void)
{
	struct pollfd p = {.fd = master, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

TEST(a_short_reading_is_not_told)
{
	reading_begin(5);
	reading_file(3);
	reading_end();
	assert_true(is_silent());
}

TEST(a_long_one_is_told_and_taken_away)
{
	reading_begin(7);
	reading_file(1);
	reading_begin(9); /* within: part of it */
	reading_file(8);
	wait_for("sonde: reading the store, 1 s, file 2 of 7\033[K");
	reading_end();
	reading_end();
	wait_for("\r\033[K");
	assert_true(is_silent());
}

TEST(quiet_is_silent)
{
	reading_quiet();
	reading_begin(7); /* the first began more than a second ago */
	reading_end();
	assert_true(is_silent());
}

const struct test_group test_group = {terminal_open, terminal_close};
