/* SPDX-License-Identifier: Apache-2.0 */
/* kafka: messages as in kafka.apache.org/protocol. */
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

TEST(topics_are_named_by_name_and_by_id_and_acks_0_has_no_answer)
{
	static const struct turn turns[] = {
		C("\x00\x00\x00\x13\x00\x12\x00\x03\x00\x00\x00\x01\x00\x03"
		  "cli\x00\x02"
		  "a\x02"
		  "1\x00"),
		S("\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00"),
		C("\x00\x00\x00\x0f\x00\x03\x00\n\x00\x00\x00\x02\x00\x03"
		  "cli\x00\x00"),
		S("\x00\x00\x00>\x00\x00\x00\x02\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x02h\x00\x00#\x84\x00\x00\x02"
		  "c\x00\x00\x00\x01\x02\x00\x00\x07orde"
		  "rs0123456789abcdef\x00\x01\xff\xff\xff\xff\x00\x00"),
		C("\x00\x00\x00%\x00\x00\x00\x07\x00\x00\x00\x03\x00\x03"
		  "cli\xff\xff\x00\x01\x00\x00\x03\xe8\x00\x00\x00\x01\x00\x06orders\x00\x00\x00"
		  "\x00"
		  "\x00\x00\x00'\x00\x00\x00\x07\x00\x00\x00\x04\x00\x03"
		  "cli\xff\xff\x00\x00\x00\x00\x03\xe8\x00\x00\x00\x01\x00\x08log.2024\x00"
		  "\x00\x00\x00"
		  "\x00\x00\x00<\x00\x01\x00\r\x00\x00\x00\x05\x00\x03"
		  "cli\x00\xff\xff\xff\xff\x00\x00\x01\xf4\x00\x00\x00\x01\x00\x00\x00"
		  "c\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00\x02"
		  "0123456789abcdef\x01\x00\x01\x00"),
		S("\x00\x00\x00\x11\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00"),
		S("\x00\x00\x00.\x00\x00\x00\x03\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x01\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		C("\x00\x00\x00\r\x00\x0c\x00\x00\x00\x00\x00\x06\x00\x03"
		  "cli"),
		S("\x00\x00\x00\x06\x00\x00\x00\x06\x00\x00"),
		END};

	talk_expect(turns, "kafka",
		    "API VERSIONS ok\n"
		    "METADATA ok\n"
		    "PRODUCE log.{id} one-way\n"
		    "FETCH orders ok\n"
		    "PRODUCE orders error 6\n"
		    "HEARTBEAT ok\n");
}

TEST(a_request_without_an_answer_of_its_number_is_none)
{
	static const struct turn turns[] = {C("\x00\x00\x00\r\x00\x03\x00\x01\x00\x00\x00M\x00\x03"
					      "cli"),
					    S("\x00\x00\x00\x06\x00\x00\x00N\x00\x00"), END};

	talk_expect_nothing(turns);
}

static size_t put(char *out, size_t at, const char *bytes, size_t n)
{
	memcpy(out + at, bytes, n);
	return at + n;
}

/* A question of an API and an answer to it: what is told. */
static const char *answered(char api, char version, bool flexible, const char *answer, size_t n)
{
	static const struct turn greeting[] = {C("\0\0\0\xc\0\x12\0\0\0\0\0\x63\0\2cl"),
					       S("\0\0\0\xa\0\0\0\x63\0\0\0\0\0\0"), END};
	const char ask[] = {0, 0, 0, 18,  0,   api, 0, version, 0, 0, 0,
			    7, 0, 2, 'c', 'l', 0,   0, 0,       0, 0, 0};
	static struct talk t;
	char out[512] = {0};
	size_t at;

	talk_begin(&t, true, false, 0, PROTO_MASKED);
	talk_play(&t, greeting, SIZE_MAX / 2, SIZE_MAX);
	t.heard.len = 0;
	talk_say(&t, 'c', ask, sizeof(ask), SIZE_MAX);
	out[3] = (char)(4 + flexible + n);
	at = put(out, 4, "\0\0\0\7\0", flexible ? 5 : 4);
	at = put(out, at, answer, n);
	for (size_t i = 0; i < at; i++)
		talk_say(&t, 's', out + i, 1, SIZE_MAX);
	proto_conn_close(t.conn, t.now_ns);
	talk_end(&t, false);
	return strchr(t.heard.text, ' ');
}

#define ANSWERED(api, version, flexible, answer) \
	answered(api, version, flexible, answer, sizeof(answer) - 1)

TEST(a_code_is_found_wherever_it_stands_in_each_version)
{
	assert_string_equal(ANSWERED(12, 0, false, "\0\x1b"), " error 27\n");
	assert_string_equal(ANSWERED(12, 0, false, "\0\0"), " ok\n");
	assert_string_equal(ANSWERED(12, 1, false, "\0\0\0\5\0\x1b"), " error 27\n");
	assert_string_equal(ANSWERED(12, 4, true, "\0\0\0\5\0\x1b\0"), " error 27\n");
	assert_string_equal(ANSWERED(14, 1, false, "\0\0\0\0\xff\xff\0\0\0\0"),
			    " GROUP error -1\n");
	/* of a second group, its members with texts of which some are null */
	assert_string_equal(
		ANSWERED(13, 3, false, "\0\0\0\0\0\0\0\0\0\2\0\1m\xff\xff\0\0\0\1n\xff\xff\0\x19"),
		" GROUP error 25\n");
	/* flexible: arrays and texts one longer, tags behind each element */
	assert_string_equal(ANSWERED(20, 4, true, "\0\0\0\0\3\2a\0\0\0\2b\0\3\0\0"),
			    " TOPICS error 3\n");
	assert_string_equal(ANSWERED(20, 4, true, "\0\0\0\0\3\2a\0\0\1\0\3xyz\2b\0\3\0\0"),
			    " TOPICS error 3\n");
	assert_string_equal(ANSWERED(20, 4, true, "\0\0\0\0\3\2a\0\0\0\2b\0\0\0\0"),
			    " TOPICS ok\n");
	/* a partition of Metadata: without a leader, and with a replica that is not there */
#define METADATA_0(code) \
	"\0\0\0\0\0\0\0\1\0\0\0\1t\0\0\0\1\0" code "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0"
	assert_string_equal(ANSWERED(3, 0, false, METADATA_0("\5")), " error 5\n");
	assert_string_equal(ANSWERED(3, 0, false, METADATA_0("\x9")), " ok\n");
	/* an answer that is no such thing is no error */
	assert_string_equal(ANSWERED(20, 4, true, "\0\0\0\0\xff\xff\xff\xff\7\0"), " TOPICS ok\n");
	assert_string_equal(ANSWERED(12, 0, false, "\0"), " ok\n");
}
