/* SPDX-License-Identifier: Apache-2.0 */
/* http: bytes from RFC 9112 and RFC 6455, in every cut. */
#include "loaders/lib/protocols/grpcweb.h"
#include "loaders/lib/protocols/route.h"
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

#include <string.h>

TEST(a_body_ends_where_its_length_says)
{
	static const struct turn turns[] = {
		C("POST /user/123/photo?size=3 HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"), C("GET / HTTP/1.0\r\n\r\n"),
		S("HTTP/1.0 503 Busy\r\ncontent-length:0\r\n\r\n"), END};

	talk_expect(turns, "http", "POST example.com/user/{id}/photo ok 200\nGET / error 503\n");
}

TEST(pipelined_requests_are_answered_in_order)
{
	static const struct turn turns[] = {
		C("GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /b HTTP/1.1\r\nHost: h\r\n\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHTHTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: "
		  "7\r\n\r\n"),
		END};

	talk_expect(turns, "http", "GET h/a ok 200\nHEAD h/b ok 200\nGET h/c ok 304\n");
}

TEST(chunks_and_trailers_are_passed_over)
{
	static const struct turn turns[] = {
		C("POST /up HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;a=b\r\nhello\r\n1B\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n\r\n0\r\nX: y\r\n"
		  "\r\nGET /next HTTP/1.1\r\n\r\n"),
		S("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1 404 No\r\n"
		  "Content-Length: 0\r\n\r\n"),
		END};

	talk_expect(turns, "http", "POST h/up ok 201\nGET /next ok 404\n");
}

TEST(a_host_that_is_an_address_is_not_told_again)
{
	static const struct turn turns[] = {
		C("GET /a HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\nGET /b HTTP/1.1\r\nHost: [::1]:80\r\n\r\nGET /c HTTP/1.1\r\nHost: localhost\r\n\r\n"
		  "GET /d HTTP/1.1\r\nHost: localhost:81\r\n\r\nGET /e HTTP/1.1\r\nHost: localhosts\r\n\r\nGET /f HTTP/1.1\r\nHost: 1.2.3.example\r\n\r\n"),
		S("HTTP/1.1 204 A\r\n\r\nHTTP/1.1 204 B\r\n\r\nHTTP/1.1 204 C\r\n\r\nHTTP/1.1 204 D\r\n\r\nHTTP/1.1 204 E\r\n\r\nHTTP/1.1 204 F\r\n\r\n"),
		END};

	talk_expect(
		turns, "http",
		"GET /a ok 204\nGET /b ok 204\nGET /c ok 204\nGET /d ok 204\nGET localhosts/e ok 204\nGET 1.2.3.example/f ok 204\n");
}

TEST(a_body_that_the_client_waits_to_send_may_never_come)
{
	static const struct turn turns[] = {
		C("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n"),
		S("HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n"),
		C("GET /next HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		C("POST /b HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
		S("HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n"),
		C("helloGET /c HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("POST /d HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"),
		S("HTTP/1.1 100 Go\r\n\r\n"),
		C("GET "),
		S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		END};

	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_play(t, turns, SIZE_MAX / 2, SIZE_MAX); /* a request line in parts may be a body */
	proto_conn_close(t->conn, t->now_ns);
	assert_string_equal(
		t->heard.text,
		"POST h/a ok 401\nGET h/next ok 200\nPOST h/b ok 413\nGET h/c ok 204\nPOST h/d ok 200\n");
	assert_int_equal(proto_conn_blind_bytes(t->conn), 0);
	talk_end(t, false);
	free(t);
}

#define CH_HEAD "X-ClickHouse-Query-Id: 1\r\nContent-Length: 2\r\n\r\n1\n"

TEST(a_body_in_chunks_that_the_client_waits_to_send_may_never_come)
{
#define WAITS " HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
	static const struct turn turns[] = {
		C("POST /a" WAITS),
		S("HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n"),
		C("DELETE /next HTTP/1.1\r\nHost: h\r\n\r\n"), /* DE is a number, too */
		S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		C("PUT /b" WAITS),
		S("HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n"),
		C("5\r\nhello\r\n0\r\n\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("POST /d" WAITS),
		S("HTTP/1.1 100 Go\r\n\r\n"),
		C("4\r\nGET \r\n0\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		C("POST /e" WAITS),
		S("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"),
		C("\r\nPOST /f" WAITS),
		C("0\r\n\r\n"), /* it waits no longer */
		S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		END};
#undef WAITS

	talk_expect(
		turns, "http",
		"POST h/a ok 401\nDELETE h/next ok 200\nPUT h/b ok 413\nGET h/c ok 204\nPOST h/d ok "
		"200\nPOST h/e ok 417\nPOST h/f ok 200\n");
}

TEST(a_statement_of_clickhouse_is_its_operation)
{
	static const struct turn turns[] = {
		C("GET /?query=SELECT%20count()+FROM%20t%20WHERE%20a%3D%27x%2By%27&database=d HTTP/1.1\r\nHost: h:8123\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\n" CH_HEAD),
		C("POST /?database=d HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\nSELECT a / 7 AS b"),
		S("HTTP/1.1 200 OK\r\n" CH_HEAD),
		C("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nSELECT 1\r\n0\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\n" CH_HEAD),
		C("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60\r\n\r\n/* by me */ insert into `t` (a) format CSV\n1,secret,secret,x\n"),
		S("HTTP/1.1 500 No\r\nX-ClickHouse-Exception-Code: 241\r\nX-ClickHouse-Format: CSV\r\nContent-Length: 0\r\n\r\n"),
		C("GET /ping HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nOk.\n"),
		C("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nSELECT x"),
		S("HTTP/1.1 404 No\r\nX-ClickHouse-Server-Display-Name: old\r\nContent-Length: 0\r\n\r\n"),
		C("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
		END};

	talk_expect(
		turns, "http",
		"SELECT count() FROM t WHERE a=? ok 200\nSELECT a / ? AS b ok 200\nSELECT ? ok 200\n"
		"insert into `t` (a) format CSV error 241\nGET h/ping ok 200\nSELECT x error 404\nGET h/nothing ok 404\n");
}

TEST(a_statement_to_who_is_not_clickhouse_is_a_part_of_a_request)
{
	static const struct turn turns[] = {
		C("GET /?query=SELECT+1 HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
		C("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nSELECT 1"),
		S("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), END};

	talk_expect(turns, "http", "GET h/ ok 200\nPOST h/ error 503\n");
}

TEST(a_request_with_clickhouses_headers_is_one_before_it_is_answered)
{
	static const struct turn turns[] = {
		C("POST / HTTP/1.1\r\nHost: h\r\nX-ClickHouse-User: u\r\nContent-Length: 8\r\n\r\n"),
		C("SELECT 1"), END};

	talk_expect(turns, "http", "SELECT ? no-answer\n");
}

TEST(a_body_without_length_ends_with_the_connection)
{
	static const struct turn turns[] = {C("GET /x HTTP/1.0\r\n\r\n"),
					    S("HTTP/1.0 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
					    END};

	talk_expect(turns, "http", "GET /x ok 200\n");
}

TEST(a_request_without_answer_is_told_as_one)
{
	static const struct turn turns[] = {C("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"), END};

	talk_expect(turns, "http", "GET h/x no-answer\n");
}

TEST(a_websocket_opens_and_its_messages_have_no_latency)
{
	static const struct turn turns[] = {
		C("GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
		S("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n"),
		C("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), /* RFC 6455, 5.7 */
		S("\x01\x03Hel\x80\x02lo\x89\x00\x82\x01x"), END};

	talk_expect(
		turns, "websocket",
		"GET h/chat opened 101\ntext to server one-way\ntext to client one-way\nbinary to client one-way\n");
}

TEST(events_are_a_stream_and_no_latency)
{
	static const struct turn turns[] = {
		C("GET /events HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata: x\n\r\n0\r\n\r\n"),
		END};

	talk_expect(turns, "http", "GET h/events opened 200\n");
}

TEST(a_tunnel_is_looked_at_anew)
{
	static const struct turn turns[] = {
		C("CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\n\r\n"), C("GET /in HTTP/1.1\r\nHost: in\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), END};

	talk_expect(turns, "http", "CONNECT far.example:443 opened 200\nGET in/in ok 200\n");
}

TEST(what_a_proxy_is_asked_for_is_named_by_its_target)
{
	static const struct turn turns[] = {
		C("GET http://other.example/a/550e8400-e29b-41d4-a716-446655440000 HTTP/1.1\r\nHost: proxy\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), END};

	talk_expect(turns, "http", "GET other.example/a/{id} ok 204\nOPTIONS * ok 200\n");
}

TEST(what_looks_random_is_a_star_and_words_stay)
{
	static const struct turn turns[] = {
		C("GET /reset/xK9fQ2zLpW HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("GET /verify/kJhGfDsAqWeRtYuI/done HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("POST /services/T0G9PQBBK/hooks HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("GET /assets/index-BzX3kQ9a.js HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("GET /app;jsessionid=3Ab9xQ;v=2/view;a=b?x HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("GET http://eve:S3cr3tPassw0rd@h/a HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("GET /apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		C("GET /wp-login.php/jquery-3.6.0.min.js/DescribeInstances HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\n"),
		END};

	talk_expect(
		turns, "http",
		"GET h/reset/* ok 204\nGET h/verify/*/done ok 204\nPOST h/services/*/hooks ok 204\n"
		"GET h/assets/*.js ok 204\nGET h/app/view ok 204\nGET h/a ok 204\n"
		"GET h/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions ok 204\n"
		"GET h/wp-login.php/jquery-3.6.0.min.js/DescribeInstances ok 204\n");
}

/* As the header of route.h says: of each kind, how many of 1000 look random. */
TEST(of_random_texts_few_are_taken_for_words)
{
	static const char *const kinds[] = {
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
		"abcdefghijklmnopqrstuvwxyz0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"};
	uint64_t x = 88172645463325252ull;

	for (size_t k = 0; k < 4; k++)
		for (size_t n = 10; n <= 32; n += 11) {
			unsigned int found = 0;

			for (int i = 0; i < 1000; i++) {
				uint8_t text[32];

				for (size_t j = 0; j < n; j++) {
					x ^= x << 13, x ^= x >> 7, x ^= x << 17;
					text[j] = (uint8_t)kinds[k][(x >> 11) % strlen(kinds[k])];
				}
				found += route_is_token(text, n);
			}
			assert_true(found >= (n == 10 ? 880 : 980));
		}
}

TEST(names_with_versions_are_no_ids_and_tokens_are)
{
	static const struct turn turns[] = {
		C("GET /containerd.services.tasks.v1.Tasks/Get HTTP/1.1\r\nHost: h\r\n\r\n"
		  "GET /t/eyJhbGciOiJIUzI1NiIsInR5cCI6.eyJzdWIiOiIxMjM0NTY3ODkw.c2lnbmF0dXJl HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n\r\n"), END};

	talk_expect(turns, "http",
		    "GET h/containerd.services.tasks.v1.Tasks/Get ok 204\nGET h/t/{id} ok 204\n");
}

TEST(the_id_of_a_trace_is_kept)
{
	static const char ask[] =
		"GET / HTTP/1.1\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n";
	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_say(t, 'c', ask, sizeof(ask) - 1, SIZE_MAX);
	talk_say(t, 's', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, SIZE_MAX);
	assert_string_equal(t->heard.trace, "0af7651916cd43dd8448eb211c80319c");
	assert_true(t->heard.caller == 0xb7ad6b7169203331);
	assert_int_equal(t->heard.latency_ns, 10);
	talk_end(t, true);
	free(t);
}

/* Both ends of a connection cut it otherwise, and must call a request by the same place. */
TEST(a_request_begins_at_the_same_byte_however_it_is_cut)
{
	static const char first[] = "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
			  second[] = "GET /b HTTP/1.1\r\nHost: h\r\n\r\n";
	char both[sizeof(first) + sizeof(second)];
	size_t n = (size_t)snprintf(both, sizeof(both), "%s%s", first, second);

	for (size_t cut = 1; cut <= n; cut++) {
		struct talk *t = malloc(sizeof(*t));

		talk_begin(t, true, false, 0, PROTO_MASKED);
		for (size_t at = 0; at < n; at += cut)
			talk_say(t, 'c', both + at, n - at < cut ? n - at : cut, SIZE_MAX);
		talk_say(t, 's', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, SIZE_MAX);
		assert_int_equal(t->heard.begin_pos, 1000);
		talk_say(t, 's', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, SIZE_MAX);
		assert_int_equal(t->heard.begin_pos, 1000 + sizeof(first) - 1);
		talk_end(t, true);
		free(t);
	}
}

TEST(only_the_first_bytes_of_each_piece_are_enough)
{
	static const char ask[] = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
	char body[5000] = "HTTP/1.1 200 OK\r\nContent-Length: 4962\r\n\r\n";
	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, true, false, 0, PROTO_MASKED);
	for (int i = 0; i < 3; i++) {
		talk_say(t, 'c', ask, sizeof(ask) - 1, 128);
		talk_say(t, 's', body, strlen(body) + 4962, 128);
	}
	assert_string_equal(t->heard.text, "GET h/a ok 200\nGET h/a ok 200\nGET h/a ok 200\n");
	talk_end(t, true);
	free(t);
}

TEST(a_path_that_was_cut_says_so)
{
	static const char ask[] =
		"GET /people/alice/photos/of/the/summer HTTP/1.1\r\nHost: h\r\n\r\n",
			  answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, false, false, 0, PROTO_MASKED);
	talk_say(t, 's', answer, sizeof(answer) - 1, SIZE_MAX);
	talk_say(t, 'c', ask, sizeof(ask) - 1, 21);
	talk_say(t, 's', answer, sizeof(answer) - 1, SIZE_MAX);
	assert_string_equal(t->heard.text, "GET /people/alice/... ok 200\n");
	talk_end(t, true);
	free(t);
}

TEST(after_a_loss_nothing_is_matched_until_the_client_speaks_again)
{
	static const char ask[] = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
			  answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_lose(t, 'c', 0);
	for (int i = 0; i < 4; i++) {
		talk_say(t, 'c', ask, sizeof(ask) - 1, SIZE_MAX);
		if (i == 1)
			talk_lose(t, 's', sizeof(answer) - 1);
		else
			talk_say(t, 's', answer, sizeof(answer) - 1, SIZE_MAX);
	}
	proto_conn_close(t->conn, t->now_ns);
	/* the second's answer is lost; whether the third's is its, cannot be known before the
	 * fourth */
	assert_string_equal(t->heard.text,
			    "GET h/a ok 200\nGET h/a blind\nGET h/a blind\nGET h/a ok 200\n");
	talk_end(t, false);
	free(t);
}

TEST(a_connection_that_was_begun_before_is_understood)
{
	static const struct turn turns[] = {S("the end of some body"),
					    C("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"),
					    S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), END};
	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, false, false, 0, PROTO_MASKED);
	talk_play(t, turns, SIZE_MAX / 2, SIZE_MAX);
	talk_play(t, turns + 1, SIZE_MAX / 2, SIZE_MAX);
	proto_conn_close(t->conn, t->now_ns);
	assert_non_null(strstr(t->heard.text, "GET h/a ok 200\n"));
	talk_end(t, false);
	free(t);
}

TEST(what_only_looks_like_it_is_left_alone)
{
	static const struct turn rtsp[] = {C("OPTIONS rtsp://x RTSP/1.0\r\nCSeq: 1\r\n\r\n"),
					   S("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"), END};
	static const struct turn ssh[] = {S("SSH-2.0-OpenSSH_9.2\r\n"),
					  C("SSH-2.0-OpenSSH_9.2\r\n"), END};
	static const struct turn smtp[] = {S("220 mail ESMTP\r\n"), C("EHLO x\r\n"),
					   S("250-mail\r\n250 OK\r\n"), C("QUIT\r\n"), END};

	talk_expect_nothing(rtsp);
	talk_expect_nothing(ssh);
	talk_expect_nothing(smtp);
}

TEST(a_masked_name_holds_nobodys_data_and_a_full_one_all)
{
	static const struct turn turns[] = {
		C("GET /user/77?token=secret HTTP/1.1\r\nHost: h\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), END};

	talk_expect_of(turns, "http", "GET h/user/{id} ok 200\n", true, false, 0, PROTO_MASKED);
	talk_expect_of(turns, "http", "GET h/user/77?token=secret ok 200\n", true, false, 0,
		       PROTO_FULL);
	talk_expect_of(turns, "http", "GET ok 200\n", true, false, 0, PROTO_NONE);
}

TEST(a_place_with_many_siblings_becomes_one_name)
{
	struct talk *t = malloc(sizeof(*t));
	char ask[100];

	talk_begin(t, true, false, 0, PROTO_MASKED);
	for (int i = 0; i < 100; i++) {
		snprintf(ask, sizeof(ask),
			 "GET /people/%c%cname/photos HTTP/1.1\r\nHost: h\r\n\r\n", 'a' + i % 26,
			 'a' + i / 26);
		talk_say(t, 'c', ask, strlen(ask), SIZE_MAX);
		t->heard.len = 0;
		talk_say(t, 's', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, SIZE_MAX);
	}
	assert_string_equal(t->heard.text, "GET h/people/{name}/photos ok 200\n");
	assert_string_equal(protocols_operation_now(t->of, "GET h/people/aaname/photos", "http", 0),
			    "GET h/people/{name}/photos");
	talk_end(t, true);
	free(t);
}

/* One service with many names folds its own, and no other's: neither one of another host nor,
 * without a name, of another port. */
TEST(a_service_folds_its_own_names_alone)
{
	struct talk *t = malloc(sizeof(*t));
	char ask[100];

	talk_begin(t, true, false, 8080, PROTO_MASKED);
	for (int i = 0; i < 100; i++) {
		snprintf(ask, sizeof(ask), "GET /%c%cname HTTP/1.1\r\nHost: %s\r\n\r\n",
			 'a' + i % 26, 'a' + i / 26, i % 2 ? "wiki" : "127.0.0.1:8080");
		talk_say(t, 'c', ask, strlen(ask), SIZE_MAX);
		talk_say(t, 's', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, SIZE_MAX);
	}
	assert_string_equal(protocols_operation_now(t->of, "GET wiki/aaname", "http", 8080),
			    "GET wiki/{name}");
	assert_string_equal(protocols_operation_now(t->of, "GET shop/aaname", "http", 8080),
			    "GET shop/aaname");
	assert_string_equal(protocols_operation_now(t->of, "GET /aaname", "http", 8080),
			    "GET /{name}");
	assert_string_equal(protocols_operation_now(t->of, "GET /aaname", "http", 9090),
			    "GET /aaname");
	assert_int_equal(proto_service_port("[::1]:8080"), 8080);
	assert_int_equal(proto_service_port("/run/x.sock"), 0);
	talk_end(t, true);
	free(t);
}

TEST(an_idle_connection_is_small_and_an_endless_head_is_bounded)
{
	struct talk *t = malloc(sizeof(*t));
	char junk[4096];

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_say(t, 'c', "GET / HTTP/1.1\r\n", 16, SIZE_MAX);
	memset(junk, 'a', sizeof(junk));
	memcpy(junk, "x: ", 3);
	junk[sizeof(junk) - 1] = '\n';
	for (int i = 0; i < 1000; i++) {
		talk_say(t, 'c', junk, sizeof(junk), SIZE_MAX);
		assert_true(proto_conn_memory(t->conn) < 300000);
	}
	talk_say(t, 'c', "GET / HTTP/1.1\r\n\r\n", 18, SIZE_MAX);
	talk_say(t, 's', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, SIZE_MAX);
	talk_say(t, 'c', "GET / HTTP/1.1\r\n\r\n", 18, SIZE_MAX);
	talk_say(t, 's', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, SIZE_MAX);
	assert_true(proto_conn_memory(t->conn) < 4096);
	talk_end(t, true);
	free(t);
}

TEST(a_message_of_websocket_is_all_of_its_frames)
{
	static const struct turn turns[] = {
		C("GET /w HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n"),
		S("HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n\x01\x02"
		  "ab\x89\x00\x00\x02"
		  "cd\x80\x02"
		  "ef"
		  "\x82\x01x"),
		END};

	talk_expect(turns, "websocket",
		    "GET x/w opened 101\n"
		    "text to client one-way\n"
		    "binary to client one-way\n");
}

/* gRPC-Web: the status is a frame at the body's end */
TEST(the_status_of_grpc_web_is_at_the_end_of_its_body)
{
#define CALL_WEB                                                                           \
	C("POST /s.Shop/Buy HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc-web\r\n" \
	  "Content-Length: 5\r\n\r\n\0\0\0\0\0")
	static const struct turn turns[] = {
		CALL_WEB,
		S("HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 27"
		  "\r\n\r\n\0\0\0\0\2hi\200\0\0\0\x0fgrpc-status:0\r\n"),
		CALL_WEB,
		S("HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n7\r\n\0\0\0\0\2hi\r\n3\r\n\200\0\0\r\n11\r\n\0\x0fgrpc-status: 5\n"
		  "\r\n0\r\n\r\n"),
		CALL_WEB,
		S("HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web-text\r\nContent-Length: 40"
		  "\r\n\r\nAAAAAAJoaQ==gAAAAA9ncnBjLXN0YXR1czo3DQo="),
		CALL_WEB,
		S("HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web\r\ngrpc-status: 12\r\n"
		  "Content-Length: 0\r\n\r\n"),
		CALL_WEB,
		S("HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web\r\nContent-Length: 7\r\n\r\n"
		  "\0\0\0\0\2hi"),
		END};

	talk_expect(turns, "http",
		    "POST h/s.Shop/Buy ok OK\n"
		    "POST h/s.Shop/Buy error NOT_FOUND\n"
		    "POST h/s.Shop/Buy error PERMISSION_DENIED\n"
		    "POST h/s.Shop/Buy error UNIMPLEMENTED\n"
		    "POST h/s.Shop/Buy error UNKNOWN\n");
}

TEST(trailers_of_grpc_web_are_looked_for_in_few_places)
{
	static uint8_t body[1 << 20]; /* each five bytes may begin them */
	static const uint8_t said[] = {0x80, 0,   0,   0,   14,  'g', 'r', 'p', 'c', '-',
				       's',  't', 'a', 't', 'u', 's', ':', '5', '\n'};
	const size_t n = sizeof(body), m = sizeof(said);

	for (size_t at = 0; at + 5 <= n; at += 5) {
		const uint32_t left = (uint32_t)(n - at - 5);

		body[at] = 0x80;
		body[at + 1] = (uint8_t)(left >> 24);
		body[at + 2] = (uint8_t)(left >> 16);
		body[at + 3] = (uint8_t)(left >> 8);
		body[at + 4] = (uint8_t)left;
	}
	for (int i = 0; i < 1000; i++) /* else minutes */
		assert_int_equal(grpcweb_status(GRPCWEB_BINARY, body, n), GRPCWEB_NONE);
	memcpy(body + n - m, said, m);
	assert_int_equal(grpcweb_status(GRPCWEB_BINARY, body, n), 5);
}

TEST(a_close_of_a_websocket_is_told_if_its_code_says_that_something_failed)
{
	static const struct turn turns[] = {
		C("GET /w HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
		S("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
		S("\x89\0"),
		C("\x8a\x80\1\2\3\4"),
		S("\x81\2hi"),
		S("\x88\6\3\xf3oops"),
		C("\x88\x82\1\2\3\4\2\xf1"),
		END};

	talk_expect(turns, "websocket",
		    "GET x/w opened 101\n"
		    "text to client one-way\n"
		    "close error 1011\n");
}
