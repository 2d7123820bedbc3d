/* SPDX-License-Identifier: Apache-2.0 */
/* nats: lines as in docs.nats.io, "Client Protocol". */
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

TEST(a_publish_is_one_way_and_a_request_has_its_answer)
{
	static const struct turn turns[] = {S("INFO {\"server_id\":\"N\",\"version\":\"2\",\"hea"
					      "ders\":true} \r\n"),
					    C("CONNECT {\"verbose\":false}\r\nPING\r\n"),
					    S("PONG\r\n"),
					    C("SUB orders.> 1\r\nSUB _INBOX.abc.* 2\r\nPUB "
					      "orders.123.new 7\r\nPUB a\r\n\r\nPUB svc.time "
					      "_INBOX.abc.1 0\r\n\r\n"),
					    S("MSG orders.123.new 1 7\r\nPUB a\r\n\r\nMSG _IN"
					      "BOX.abc.1 2 4\r\n12:0\r\n"),
					    C("HPUB svc.gone _INBOX.abc.2 12 12\r\nNATS/1"
					      ".0\r\n\r\n\r\n"),
					    S("HMSG _INBOX.abc.2 2 16 16\r\nNATS/1.0 503\r"
					      "\n\r\n\r\n"),
					    END};

	talk_expect(turns, "nats",
		    "PUB orders.{id}.new one-way\n"
		    "MSG orders.{id}.new one-way\n"
		    "REQUEST svc.time ok\n"
		    "REQUEST svc.gone error 503\n");
}

TEST(an_error_refuses_the_login_or_what_is_open)
{
	static const struct turn turns[] = {S("INFO {\"server_id\":\"x\"}\r\n"),
					    C("CONNECT {}\r\nPING\r\n"),
					    S("-ERR 'Authorization Violation'\r\n"), END};

	talk_expect(turns, "nats", "CONNECT error Authorization Violation\n");
}

TEST(an_error_that_names_a_subject_does_not_tell_it)
{
	static const struct turn turns[] = {
		S("INFO {\"server_id\":\"x\"}\r\n"),
		C("CONNECT {}\r\nPING\r\n"),
		S("PONG\r\n"),
		C("PUB secret 1\r\nx\r\n"),
		S("-ERR 'Permissions Violation for Publish to \"secret\"'\r\n"),
		C("PUB a _INBOX.1 1\r\nx\r\n"),
		S("-ERR 'Stale Connection'\r\n"),
		END};

	talk_expect(turns, "nats",
		    "PUB secret one-way\n"
		    "PUB error Permissions Violation\n"
		    "REQUEST a error Stale Connection\n");
}

TEST(jetstream_says_in_json_what_failed)
{
	static const struct turn turns[] = {
		S("INFO {\"server_id\":\"x\"}\r\n"),
		C("CONNECT {}\r\nPING\r\n"),
		S("PONG\r\n"),
		C("PUB a _INBOX.1 1\r\nx\r\n"),
		S("MSG _INBOX.1 1 28\r\n{\"error\":{\"code\":503,\"x\":1}}\r\n"),
		C("PUB a _INBOX.2 1\r\nx\r\n"),
		S("MSG _INBOX.2 1 57\r\n{\"type\":\"io.nats.jetstream.api.x\","
		  "\"error\":{\"code\":404}}  \r\n"),
		C("PUB a _INBOX.3 1\r\nx\r\n"),
		S("MSG _INBOX.3 1 27\r\n{\"a\":{\"error\":{\"code\":503}}\r\n"),
		C("PUB a _INBOX.4 1\r\nx\r\n"),
		S("MSG _INBOX.4 1 0\r\n\r\n"),
		END};

	talk_expect(turns, "nats",
		    "REQUEST a error 503\n"
		    "REQUEST a ok 404\n"
		    "REQUEST a ok\n"
		    "REQUEST a ok\n");
}
