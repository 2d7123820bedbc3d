/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that a socket does not take yet wait, and are sent in order. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loaders/l7/outbox.h"
#include "tests/unit/test.h"

#define SIZE 4096
#define MANY 1000 /* more than a socket holds */

TEST(messages_wait_for_a_socket_that_is_full_and_go_in_order)
{
	static char buf[SIZE];
	struct outbox o = {0};
	int pair[2], got = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	for (int i = 0; i < MANY; i++) {
		memset(buf, i & 0xff, sizeof(buf));
		memcpy(buf, &i, sizeof(i));
		outbox_put(&o, buf, sizeof(buf));
		assert_int_equal(outbox_send(&o, pair[0]), 0);
	}
	assert_in_range(o.n, 1, MANY - 1);
	assert_int_equal(o.bytes, o.n * SIZE);
	for (; got < MANY; got++) {
		int i;

		assert_int_equal(read(pair[1], buf, sizeof(buf)), SIZE);
		memcpy(&i, buf, sizeof(i));
		assert_int_equal(i, got);
		assert_int_equal((unsigned char)buf[SIZE - 1], i & 0xff);
		assert_int_equal(outbox_send(&o, pair[0]), 0);
	}
	assert_int_equal(o.n, 0);
	assert_int_equal(o.bytes, 0);
	close(pair[0]);
	close(pair[1]);
}

TEST(one_that_is_gone_is_said_and_what_waited_is_let_go)
{
	static char buf[OUTBOX_BYTES / 4];
	struct outbox o = {0};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	close(pair[1]);
	for (int i = 0; i < 4; i++) {
		assert_false(outbox_full(&o));
		outbox_put(&o, buf, sizeof(buf));
	}
	assert_true(outbox_full(&o));
	assert_true(outbox_send(&o, pair[0]) < 0);
	assert_int_equal(o.n, 4);
	outbox_release(&o);
	assert_null(o.first);
	close(pair[0]);
}
