/* SPDX-License-Identifier: Apache-2.0 */
/* conn: the times and bytes of messages, what an end cuts off, and what is left when nobody looks
 * any more. */
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

#define OK  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define GET "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"

#define INFO "INFO {\"server_id\":\"x\"}\r\n"

static void say(struct talk *t, char from, const char *text, int64_t at_ns)
{
	t->now_ns = at_ns;
	talk_say(t, from, text, strlen(text), SIZE_MAX);
}

TEST(a_pushed_message_has_the_time_and_bytes_of_its_own)
{
	struct talk t;

	talk_begin(&t, true, false, 0, PROTO_MASKED);
	say(&t, 's', INFO, 100);
	say(&t, 'c', "CONNECT {}\r\nSUB FOO 1\r\n", 200);
	say(&t, 's', "MSG FOO 1 2\r\nhi\r\n", 5000);
	assert_string_equal(t.heard.text, "MSG FOO one-way\n");
	assert_int_equal(t.heard.begin_ns, 5000);
	assert_int_equal(t.heard.response_bytes, 17);
	say(&t, 's', "MSG FOO 1 12\r\nhe", 6000);
	say(&t, 's', "llo, world\r\n", 7000);
	assert_int_equal(t.heard.begin_ns, 6000);
	assert_int_equal(t.heard.response_bytes, 28);
	say(&t, 'c', "PUB FOO 2\r\nhi\r\n", 8000);
	assert_string_equal(t.heard.text, "MSG FOO one-way\nMSG FOO one-way\nPUB FOO one-way\n");
	assert_int_equal(t.heard.begin_ns, 8000);
	assert_int_equal(t.heard.request_bytes, 15);
	talk_end(&t, true);
}

#define PROXY_2                              \
	"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" \
	"123456789012"

static const char *proxied(const char *head, size_t len, const char *rest)
{
	static struct talk t;

	talk_begin(&t, true, false, 0, PROTO_MASKED);
	talk_say(&t, 'c', head, len, SIZE_MAX);
	say(&t, 'c', rest, 100);
	say(&t, 's', OK, 200);
	talk_end(&t, true);
	return t.heard.text;
}

TEST(a_balancers_head_before_a_request_is_none_of_it)
{
	static const char one[] = "PROXY TCP4 1.2.3.4 5.6.7.8 50000 80\r\n";

	assert_string_equal(proxied(one, strlen(one), GET), "GET x/a ok 200\n");
	assert_string_equal(proxied(PROXY_2, sizeof(PROXY_2) - 1, GET), "GET x/a ok 200\n");
	assert_string_equal(proxied("PROXY UNKNOWN\r\n" GET, strlen("PROXY UNKNOWN\r\n" GET), GET),
			    "GET x/a ok 200\nGET x/a no-answer\n");
	for (size_t n = 1; n < sizeof(PROXY_2) - 1; n++) /* no read beyond it */
		(void)proxied(PROXY_2, n, GET);
	for (size_t n = 1; n < strlen(one); n++)
		(void)proxied(one, n, GET);
}

static const char *after_end(const char *answer, bool reset)
{
	static struct talk t;

	talk_begin(&t, true, false, 0, PROTO_MASKED);
	say(&t, 'c', GET, 100);
	say(&t, 's', answer, 200);
	if (reset)
		proto_conn_reset(t.conn, 300);
	else
		proto_conn_close(t.conn, 300);
	talk_end(&t, false);
	return t.heard.text;
}

TEST(an_answer_that_is_cut_off_is_none)
{
	static const char *const cut[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n",
		"HTTP/1.1 200 OK\r\nContent-Le",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cut); i++) {
		assert_string_equal(after_end(cut[i], false), "GET x/a no-answer cut\n");
		assert_string_equal(after_end(cut[i], true), "GET x/a no-answer cut\n");
	}
	assert_string_equal(after_end("HTTP/1.1 503 No\r\nContent-Length: 50\r\n\r\nhi", true),
			    "GET x/a error 503\n");
	assert_string_equal(after_end(OK, true), "GET x/a ok 200\n");
}

TEST(what_ends_with_its_connection_is_cut_by_a_reset_alone)
{
	assert_string_equal(after_end("HTTP/1.0 200 OK\r\n\r\nhi", false), "GET x/a ok 200\n");
	assert_string_equal(after_end("HTTP/1.0 200 OK\r\n\r\nhi", true),
			    "GET x/a no-answer cut\n");
}

static const char *after_stop(const char *one, const char *other, bool begun, size_t open)
{
	static struct talk t;

	talk_begin(&t, begun, false, 0, PROTO_MASKED);
	say(&t, 'c', one, 100);
	if (other)
		say(&t, 's', other, 200);
	assert_int_equal(proto_conn_stop(t.conn, 300), open);
	assert_int_equal(proto_conn_stop(t.conn, 300), 0);
	talk_end(&t, false);
	return t.heard.text;
}

TEST(what_has_no_answer_when_nobody_looks_any_more_is_blind)
{
	assert_string_equal(after_stop(GET, NULL, true, 1), "GET x/a blind\n");
	assert_string_equal(after_stop(GET GET, OK, true, 1), "GET x/a ok 200\nGET x/a blind\n");
	assert_string_equal(
		after_stop(GET, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nhi", true, 1),
		"GET x/a blind\n");
	assert_string_equal(after_stop("GET /a HTTP/1.1\r\nHost: x\r\nAcc", NULL, true, 1),
			    "GET x/a blind\n");
	/* joined in the middle: the answer may be another question's */
	assert_string_equal(after_stop(GET, OK, false, 1), "GET x/a blind\n");
}

TEST(a_message_of_several_frames_begins_with_the_first)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
			  first[] = "\0\0\1\1\1\0\0\0\1\x82",
			  second[] = "\0\0\2\x9\4\0\0\0\1\x86\x84",
			  answer[] = "\0\0\1\1\5\0\0\0\1\x88";
	struct talk t;

	talk_begin(&t, true, false, 0, PROTO_MASKED);
	talk_say(&t, 'c', preface, sizeof(preface) - 1, SIZE_MAX);
	t.now_ns = 5000;
	talk_say(&t, 'c', first, sizeof(first) - 1, SIZE_MAX);
	t.now_ns = 6000;
	talk_say(&t, 'c', second, sizeof(second) - 1, SIZE_MAX);
	t.now_ns = 7000;
	talk_say(&t, 's', answer, sizeof(answer) - 1, SIZE_MAX);
	assert_string_equal(t.heard.text, "GET / ok 200\n");
	assert_int_equal(t.heard.begin_ns, 5000);
	assert_int_equal(t.heard.latency_ns, 2000);
	assert_int_equal(t.heard.request_bytes, sizeof(first) - 1 + sizeof(second) - 1);
	talk_end(&t, true);
}
