/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_calls: the one call that a client means is cancelled, no other; the server's end ends all. */
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "serve/mcp_calls.h"
#include "tests/unit/test.h"

static bool ends(const struct mcp_call *x)
{
	struct pollfd p = {.fd = x->end_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

TEST(a_call_is_named_by_session_and_id)
{
	int stop = eventfd(0, EFD_CLOEXEC);
	struct mcp_call a, b, other;
	struct mcp_calls c;

	mcp_calls_init(&c);
	assert_int_equal(mcp_calls_enter(&c, stop, "s", "1", &a), 0);
	assert_int_equal(mcp_calls_enter(&c, stop, "s", "\"1\"", &b), 0);
	assert_int_equal(mcp_calls_enter(&c, stop, "t", "1", &other), 0);
	assert_false(mcp_calls_cancel(&c, "s", "2"));
	assert_false(mcp_calls_cancel(&c, NULL, "1"));
	assert_true(mcp_calls_cancel(&c, "s", "1"));
	assert_true(ends(&a));
	assert_false(ends(&b));
	assert_false(ends(&other));
	assert_true(mcp_calls_leave(&c, &a));
	assert_false(mcp_calls_cancel(&c, "s", "1"));
	assert_false(mcp_calls_leave(&c, &other));
	assert_false(mcp_calls_leave(&c, &b));
	mcp_calls_release(&c);
	close(stop);
}

TEST(without_a_session_an_id_that_two_chose_names_none)
{
	int stop = eventfd(0, EFD_CLOEXEC);
	struct mcp_call a, b;
	struct mcp_calls c;

	mcp_calls_init(&c);
	assert_int_equal(mcp_calls_enter(&c, stop, NULL, "1", &a), 0);
	assert_int_equal(mcp_calls_enter(&c, stop, NULL, "1", &b), 0);
	assert_false(mcp_calls_cancel(&c, NULL, "1"));
	assert_false(mcp_calls_leave(&c, &a));
	assert_true(mcp_calls_cancel(&c, NULL, "1"));
	assert_true(mcp_calls_leave(&c, &b));
	mcp_calls_release(&c);
	close(stop);
}

TEST(the_end_of_the_server_ends_each_call)
{
	int stop = eventfd(0, EFD_CLOEXEC);
	struct mcp_call a;
	struct mcp_calls c;

	mcp_calls_init(&c);
	assert_int_equal(mcp_calls_enter(&c, stop, NULL, "1", &a), 0);
	assert_false(ends(&a));
	eventfd_write(stop, 1);
	assert_true(ends(&a));
	assert_false(mcp_calls_leave(&c, &a));
	mcp_calls_release(&c);
	close(stop);
}

TEST(sessions_differ)
{
	char a[MCP_SESSION], b[MCP_SESSION];

	assert_true(mcp_session_make(a));
	assert_true(mcp_session_make(b));
	assert_int_equal(strlen(a), MCP_SESSION - 1);
	assert_string_not_equal(a, b);
}
