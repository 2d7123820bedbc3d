/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that a thread waits for: an epoll's lines, arrays of poll(2), sets of select(2). */
#include <poll.h>

#include "loaders/pstack/wait_fds.h"
#include "tests/unit/test.h"

TEST(a_line_of_an_epoll_names_a_descriptor_and_its_file)
{
	struct wait_fd x = {0};

	assert_true(wait_fds_epoll_line(
		"tfd:        5 events:       19 data:                5  pos:0 ino:3a6f sdev:9\n",
		&x));
	assert_int_equal(x.fd, 5);
	assert_int_equal(x.ino, 0x3a6f);
	assert_true(wait_fds_epoll_line("tfd: 123456 events: 1 data: ffffffffffffffff\n", &x));
	assert_int_equal(x.fd, 123456);
	assert_int_equal(x.ino, 0);
	assert_false(wait_fds_epoll_line("pos:\t0\n", &x));
	assert_false(wait_fds_epoll_line("tfd:\n", &x));
	assert_false(wait_fds_epoll_line("", &x));
}

TEST(negative_entries_of_poll_are_none_and_half_an_entry_too)
{
	const struct pollfd all[] = {{.fd = 3}, {.fd = -1}, {.fd = 70000}};
	struct wait_fds w = {0};

	wait_fds_poll(all, sizeof(all), &w);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.rows[0].fd, 3);
	assert_int_equal(w.rows[1].fd, 70000);
	wait_fds_release(&w);
	wait_fds_poll(all, sizeof(all[0]) - 1, &w);
	assert_int_equal(w.n, 0);
}

TEST(a_set_has_the_descriptors_below_its_end)
{
	const uint8_t set[16] = {[0] = 0x81, [8] = 0x02, [15] = 0x80};
	struct wait_fds w = {0};

	wait_fds_set(set, sizeof(set), 66, &w);
	assert_int_equal(w.n, 3);
	assert_int_equal(w.rows[1].fd, 7);
	assert_int_equal(w.rows[2].fd, 65);
	wait_fds_set(set, 1, 1000, &w); /* what could not be read is not there */
	assert_int_equal(w.n, 5);
	wait_fds_release(&w);
}

TEST(a_thread_with_very_many_is_read_up_to_a_bound)
{
	static uint8_t set[2 * WAIT_FDS_MAX / 8];
	struct wait_fds w = {0};

	for (size_t i = 0; i < sizeof(set); i++)
		set[i] = 0xff;
	wait_fds_set(set, sizeof(set), 2 * WAIT_FDS_MAX, &w);
	assert_int_equal(w.n, WAIT_FDS_MAX);
	wait_fds_release(&w);
}
