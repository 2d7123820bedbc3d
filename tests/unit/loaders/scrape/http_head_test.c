/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP answer, whole and in pieces, and the page of net/http/pprof. */
#include <string.h>

#include "loaders/scrape/http_head.h"
#include "tests/unit/test.h"

static enum http_head_state head(const char *text, struct http_head *a)
{
	return http_head_head(text, strlen(text), a);
}

TEST(a_head_is_read_once_it_has_ended)
{
	static const char text[] =
		"HTTP/1.0 200 OK\r\nContent-Type: x\r\ncontent-length:  12\r\n\r\nbody";
	struct http_head a;

	for (size_t n = 0; n < sizeof(text) - 5; n++)
		assert_int_equal(http_head_head(text, n, &a), ANSWER_MORE);
	assert_int_equal(head(text, &a), ANSWER_OK);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.length, 12);
	assert_string_equal(text + a.body, "body");
	assert_int_equal(head("HTTP/1.1 404 Not Found\n\n", &a), ANSWER_OK);
	assert_true(a.status == 404 && a.length == UINT64_MAX);
}

TEST(what_is_no_http_is_told)
{
	static char endless[HTTP_HEAD_MAX * 2];
	struct http_head a;

	assert_int_equal(head("220 what is it?\r\n", &a), ANSWER_NO_HTTP);
	assert_int_equal(head("HTTP/1.0 2x0 OK\r\n\r\n", &a), ANSWER_NO_HTTP);
	assert_int_equal(head("HTTP/2.0 200 OK\r\n\r\n", &a), ANSWER_NO_HTTP);
	assert_int_equal(head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &a),
			 ANSWER_CHUNKED);
	memset(endless, 'a', sizeof(endless));
	memcpy(endless, "HTTP/1.0 200 OK\r\n", 17);
	assert_int_equal(http_head_head(endless, sizeof(endless), &a), ANSWER_NO_HTTP);
}

TEST(a_server_that_wants_tls_is_known)
{
	struct http_head a;

	assert_int_equal(
		head("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
		     &a),
		ANSWER_OK);
	assert_true(a.tls);
	assert_int_equal(head("HTTP/1.0 400 Bad Request\r\n\r\nno\n", &a), ANSWER_OK);
	assert_false(a.tls);
}

TEST(the_page_says_how_many_goroutines_there_are)
{
	static const char new[] =
		"<title>/debug/pprof/</title><tr><td>5</td><td><a href='block?debug=1'>block</a></td></tr>"
		"<tr><td>23</td><td><a href='goroutine?debug=1'>goroutine</a></td></tr>";
	static const char old[] =
		"<title>/debug/pprof/</title><tr><td align=right>107<td><a href=\"goroutine?debug=1\">goroutine</a>";
	uint64_t n;

	assert_true(http_head_index(new, strlen(new), &n));
	assert_int_equal(n, 23);
	assert_true(http_head_index(old, strlen(old), &n));
	assert_int_equal(n, 107);
	assert_false(http_head_index("<title>my page</title>", 22, &n));
	assert_false(http_head_index("/debug/pprof/ <a href=goroutine?debug=1>", 40, &n));
}
