/* SPDX-License-Identifier: Apache-2.0 */
/* mysql: packets as in the "Client/Server Protocol" of MySQL's source documentation. */
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

TEST(a_result_set_ends_with_its_last_packet)
{
	static const struct turn turns[] = {
		S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		  "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00"
		  "123456789012\x00"),
		C("&\x00\x00\x01\x85\xa6\x0f\x01\x00\x00\x00\x01!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root"
		  "\x00\x00"),
		S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"),
		C("4\x00\x00\x00\x03select a, 'x' from `t` where b = \"y"
		  "\" and c in (1,2)"),
		S("\x01\x00\x00\x01\x01"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x02\x00\x00\x03\x01"
		  "a"
		  "\x01\x00\x00\x04\xfb"
		  "\x07\x00\x00\x05\xfe\x00\x00\x02\x00\x00\x00"),
		C("!\x00\x00\x00\x03insert into t values (1,2),(3,4)"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
		C("\x05\x00\x00\x00\x03nope"),
		S("\x0c\x00\x00\x01\xff(\x04#42000bad"),
		C("\x01\x00\x00\x00\x0e"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
		END};

	talk_expect(turns, "mysql",
		    "CONNECT ok\n"
		    "select a, ? from `t` where b = ? and c in (?) ok\n"
		    "insert into t values (?) ok\n"
		    "nope error 42000\n"
		    "PING ok\n");
}

TEST(so_it_does_in_the_older_form_and_with_several_results)
{
	static const struct turn turns[] = {
		S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		  "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00"
		  "123456789012\x00"),
		C("&\x00\x00\x01\x85\xa6\x0f\x00\x00\x00\x00\x01!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root"
		  "\x00\x00"),
		S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"),
		C("\x09\x00\x00\x00\x03"
		  "call p()"),
		S("\x01\x00\x00\x01\x01"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x05\x00\x00\x03\xfe\x00\x00\x02\x00"
		  "\x02\x00\x00\x04\x01"
		  "a"
		  "\x05\x00\x00\x05\xfe\x00\x00\n\x00"
		  "\x01\x00\x00\x06\x01"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x05\x00\x00\x08\xfe\x00\x00\x02\x00"
		  "\x05\x00\x00\x09\xfe\x00\x00\n\x00"
		  "\x07\x00\x00\n\x00\x00\x00\x02\x00\x00\x00"),
		C("\x09\x00\x00\x00\x03select 1"),
		S("\x01\x00\x00\x01\x01"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x05\x00\x00\x03\xfe\x00\x00\x02\x00"
		  "\x02\x00\x00\x04\x01"
		  "a"
		  "\x0c\x00\x00\x05\xff%\x05#70100bad"),
		END};

	talk_expect(turns, "mysql",
		    "CONNECT ok\n"
		    "call p() ok\n"
		    "select ? error 70100\n");
}

TEST(a_statement_is_known_by_its_number)
{
	static const struct turn turns[] = {
		S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		  "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00"
		  "123456789012\x00"),
		C("&\x00\x00\x01\x85\xa6\x0f\x00\x00\x00\x00\x01!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root"
		  "\x00\x00"),
		S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"),
		C("\x10\x00\x00\x00\x16select \? from t"),
		S("\x0c\x00\x00\x01\x00\x07\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x05\x00\x00\x03\xfe\x00\x00\x02\x00"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x05\x00\x00\x05\xfe\x00\x00\x02\x00"),
		C("\n\x00\x00\x00\x17\x07\x00\x00\x00\x00\x01\x00\x00\x00"),
		S("\x01\x00\x00\x01\x01"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x05\x00\x00\x03\xfe\x00\x00\x02\x00"
		  "\x03\x00\x00\x04\x00\x00"
		  "a"
		  "\x05\x00\x00\x05\xfe\x00\x00\x02\x00"),
		C("\x0b\x00\x00\x00\x18\x07\x00\x00\x00\x00\x00long"),
		C("\x05\x00\x00\x00\x19\x07\x00\x00\x00"),
		C("\n\x00\x00\x00\x17\x07\x00\x00\x00\x00\x01\x00\x00\x00"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
		C("\x01\x00\x00\x00\x01"),
		END};

	talk_expect(turns, "mysql",
		    "CONNECT ok\n"
		    "PREPARE select ? from t ok\n"
		    "select ? from t ok\n"
		    "CLOSE one-way\n"
		    "<prepared 7> ok\n");
}

TEST(a_file_that_the_client_sends_is_passed_over)
{
	static const struct turn turns[] = {
		S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		  "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00"
		  "123456789012\x00"),
		C("&\x00\x00\x01\x85\xa6\x0f\x01\x00\x00\x00\x01!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root"
		  "\x00\x00"),
		S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"),
		C("(\x00\x00\x00\x03load data local infile 'x' into tab"
		  "le t"),
		S("\x02\x00\x00\x01\xfbx"),
		C("\x09\x00\x00\x02\x03select 1"
		  "\x00\x00\x00\x03"),
		S("\x07\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00"),
		C("\x09\x00\x00\x00\x03select 2"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
		END};

	talk_expect(turns, "mysql",
		    "CONNECT ok\n"
		    "load data local infile ? into table t ok\n"
		    "select ? ok\n");
}

/* A statement of more than 16 MiB is two packets; of either only the first bytes were copied. */
TEST(a_statement_may_go_on_in_a_second_packet)
{
	static const struct turn login[] =
		{S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		   "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00"
		   "\x00\x00\x00"
		   "123456789012\x00"),
		 C("&\x00\x00\x01\x85\xa6\x0f\x01\x00\x00\x00\x01!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root"
		   "\x00\x00"),
		 S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"), END},
				 next[] = {S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"),
					   C("\x09\x00\x00\x00\x03select 2"),
					   S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"), END};
	static const char head[] = "\xff\xff\xff\x00\x03insert into t values (1, 'a",
			  rest[] = "\x03\x00\x00\x01 x)";
	char *first = calloc(1, 8192);
	struct talk *t = malloc(sizeof(*t));

	memcpy(first, head, sizeof(head) - 1);
	memset(first + sizeof(head) - 1, 'x', 8192 - sizeof(head) + 1);
	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_play(t, login, SIZE_MAX / 2, SIZE_MAX);
	talk_say(t, 'c', first, 0xffffff + 4, 8192);
	talk_say(t, 'c', rest, sizeof(rest) - 1, SIZE_MAX);
	talk_play(t, next, SIZE_MAX / 2, SIZE_MAX);
	proto_conn_close(t->conn, t->now_ns);
	assert_string_equal(t->heard.text,
			    "CONNECT ok\ninsert into t values (?... ok\nselect ? ok\n");
	talk_end(t, false);
	free(t);
	free(first);
}

TEST(compressed_packets_may_be_cut_anywhere)
{
	static const struct turn turns[] = {
		S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		  "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00"
		  "123456789012\x00"),
		C("&\x00\x00\x01\xa5\xa6\x0f\x01\x00\x00\x00\x01!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root"
		  "\x00\x00"),
		S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"),
		C("\r\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x03select 1"),
		S("\x16\x00\x00\x01\x0e\x00\x00x\x9c"
		  "cd``d\x14g``bNIMc\x00\x00\x04\xa6\x01O"
		  "$\x00\x00\x02#\x00\x00x\x9c"
		  "c``Ld\xe0\xb1g\xe0"
		  "f```f\x00\x01& \x83"
		  "1\x91\x9d\x81\x81\xe5\x1f\x98\xc3\x00\x00\""
		  "\xa9\x02."),
		C("\x15\x00\x00\x00\r\x00\x00x\x9c\xe3"
		  "d```.N\xcdIM.Q0\x02\x00\x0e\xd3\x02\xdf"),
		S("\x0b\x00\x00\x01\x00\x00\x00\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
		END};

	talk_expect(turns, "mysql",
		    "CONNECT ok\n"
		    "select ? ok\n"
		    "select ? ok\n");
}

TEST(a_login_may_ask_for_more_and_fail)
{
	static const struct turn turns[] = {
		S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		  "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00"
		  "\x00\x00\x00"
		  "123456789012\x00"),
		C("&\x00\x00\x01\x85\xa6\x0f\x01\x00\x00\x00\x01!\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root"
		  "\x00\x00"),
		S(",\x00\x00\x02\xfemysql_native_password\x00"
		  "1234567890123"
		  "4567890\x00"),
		C("\x14\x00\x00\x03xxxxxxxxxxxxxxxxxxxx"),
		S("\x0c\x00\x00\x04\xff\x15\x04#28000bad"),
		END};

	talk_expect(turns, "mysql", "CONNECT error 28000\n");
}

TEST(a_connection_in_the_middle_is_found_by_its_commands)
{
	static const struct turn turns[] = {
		C("\x09\x00\x00\x00\x03select 1"),
		S("\x01\x00\x00\x01\x01"
		  "\x17\x00\x00\x02\x03"
		  "def\x00\x00\x00\x01"
		  "a\x00\x0c\?\x00\x0b\x00\x00\x00\x03\x00\x00\x00\x00\x00"
		  "\x05\x00\x00\x03\xfe\x00\x00\x02\x00"
		  "\x05\x00\x00\x04\xfe\x00\x00\x02\x00"),
		C("\n\x00\x00\x00\x17\x09\x00\x00\x00\x00\x01\x00\x00\x00"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"), END};

	talk_expect_of(turns, "mysql",
		       "select ? blind\n"
		       "<prepared 9> ok\n",
		       false, false, 0, PROTO_MASKED);
}

TEST(a_server_that_refuses_the_connection_says_why)
{
	static const struct turn turns[] = {S("\x17\x00\x00\x00\xff\x10\x04Too many connections"),
					    END};

	talk_expect(turns, "mysql", "CONNECT error 1040\n");
}

TEST(a_connection_of_a_pool_is_known_by_its_ping)
{
	static const struct turn turns[] = {
		C("\x01\x00\x00\x00\x0e"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
		C("\x09\x00\x00\x00\x03select 1"),
		S("\x01\x00\x00\x01\x01\x01\x00\x00\x02"
		  "d\x05\x00\x00\x03\xfe\x00\x00\x02\x00\x02\x00\x00\x04"
		  "\x01"
		  "1\x05\x00\x00\x05\xfe\x00\x00\x02\x00"),
		C("\x01\x00\x00\x00\x1f"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
		END};

	talk_expect_of(turns, "mysql",
		       "PING blind\n"
		       "select ? ok\n"
		       "RESET CONNECTION ok\n",
		       false, false, 0, PROTO_MASKED);
}

/* ---- inside TLS ---- */

#define GREETING                                                                            \
	"4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"                                         \
	"12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" \
	"123456789012\x00"
#define ZEROS23 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const struct turn asks_for_tls[] = {
	S(GREETING), C("\x20\x00\x00\x01\x85\xae\x0f\x01\x00\x00\x00\x01!" ZEROS23), END};

/* From the outer connection to the one inside, which says `turns` in pieces. */
static struct talk *inside(const struct turn *outer, const struct turn *turns, size_t piece)
{
	struct talk *t = malloc(sizeof(*t));
	struct proto_conn *clear;

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_play(t, outer, piece, SIZE_MAX);
	clear = t->conn;
	t->conn = proto_conn_new(t->of, true, false, 0, NULL);
	proto_conn_inside(t->conn, clear);
	proto_conn_free(clear);
	t->pos[0] = t->pos[1] = 0;
	talk_play(t, turns, piece, SIZE_MAX);
	return t;
}

TEST(inside_tls_the_login_goes_on_from_what_was_said_in_clear)
{
	static const struct turn turns[] = {
		C("&\x00\x00\x02\x85\xae\x0f\x01\x00\x00\x00\x01!" ZEROS23 "root\x00\x00"),
		S("\x07\x00\x00\x03\x00\x00\x00\x02\x00\x00\x00"), C("\x01\x00\x00\x00\x0e"),
		S("\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"), END};
	static const size_t pieces[] = {SIZE_MAX / 2, 1, 3};
	/* what was said in clear is not known */
	static const struct turn nothing[] = {END};

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct talk *t = inside(asks_for_tls, turns, pieces[i]);

		assert_string_equal(t->heard.text, "CONNECT ok\nPING ok\n");
		assert_int_equal(proto_conn_blind_bytes(t->conn), 0);
		talk_end(t, true);
		free(t);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i += 2) {
		struct talk *t = inside(nothing, turns, i ? 42 : SIZE_MAX / 2);

		assert_string_equal(t->heard.text, "CONNECT ok\nPING ok\n");
		talk_end(t, true);
		free(t);
	}
}

TEST(what_asked_for_tls_and_gets_none_is_freed)
{
	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_play(t, asks_for_tls, SIZE_MAX / 2, SIZE_MAX);
	talk_say(t, 'c', "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10, SIZE_MAX);
	assert_string_equal(proto_conn_protocol(t->conn), "tls");
	talk_end(t, true);
	free(t);
}

/* ---- large compressed frames ---- */

static size_t packet_put(uint8_t *to, size_t len, uint8_t seq, const char *begin, size_t n)
{
	to[0] = (uint8_t)len, to[1] = (uint8_t)(len >> 8), to[2] = (uint8_t)(len >> 16);
	to[3] = seq;
	for (size_t i = n; i < len; i++)
		to[4 + i] = (uint8_t)(i * 2654435761u >> 13); /* does not pack */
	memcpy(to + 4, begin, n);
	return len + 4;
}

/* A frame of these bytes. */
static size_t frame_put(uint8_t *to, size_t room, const uint8_t *plain, size_t n, uint8_t seq,
			bool zstd)
{
	uLongf packed = room - 7;

	if (zstd)
		packed = ZSTD_compress(to + 7, room - 7, plain, n, 3);
	else
		assert_int_equal(compress(to + 7, &packed, plain, n), Z_OK);
	to[0] = (uint8_t)packed, to[1] = (uint8_t)(packed >> 8), to[2] = (uint8_t)(packed >> 16);
	to[3] = seq;
	to[4] = (uint8_t)n, to[5] = (uint8_t)(n >> 8), to[6] = (uint8_t)(n >> 16);
	return packed + 7;
}

/* One row of 300 000 bytes and one of 200 000, in frames of that size. */
static void large_answer(bool zstd, size_t piece, size_t copied)
{
	static const struct turn login[2][4] = {
		{S(GREETING),
		 C("&\x00\x00\x01\xa5\xa6\x0f\x01\x00\x00\x00\x01!" ZEROS23 "root\x00\x00"),
		 S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"), END},
		{S("4\x00\x00\x00\n8.0.32\x00\x07\x00\x00\x00"
		   "12345678\x00\xff\xff!\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		   "123456789012\x00"),
		 C("&\x00\x00\x01\x85\xa6\x0f\x05\x00\x00\x00\x01!" ZEROS23 "root\x00\x00"),
		 S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"), END}};
	static uint8_t plain[600000], wire[700000];
	struct talk *t = malloc(sizeof(*t));
	size_t n = 0, size;

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_play(t, login[zstd], SIZE_MAX / 2, SIZE_MAX);
	talk_say(t, 'c', "\r\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x03select 1", 20, SIZE_MAX);
	n += packet_put(plain + n, 1, 1, "\x01", 1);
	n += packet_put(plain + n, 23, 2,
			"\x03"
			"def",
			4);
	n += packet_put(plain + n, 300000, 3, "\xfd\xdc\x93\x04", 4);
	n += packet_put(plain + n, 200000, 4, "\xfd\x3c\x0d\x03", 4);
	n += packet_put(plain + n, 7, 5, "\xfe\x00\x00\x02\x00\x00\x00", 7);
	size = frame_put(wire, sizeof(wire), plain, n, 1, zstd);
	for (size_t at = 0; at < size; at += piece)
		talk_say(t, 's', (char *)wire + at, size - at < piece ? size - at : piece, copied);
	talk_say(t, 'c', "\x05\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0e", 12, SIZE_MAX);
	talk_say(t, 's', "\x0b\x00\x00\x01\x00\x00\x00\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00",
		 18, SIZE_MAX);
	if (copied == SIZE_MAX) {
		assert_string_equal(t->heard.text, "CONNECT ok\nselect ? ok\nPING ok\n");
		assert_int_equal(proto_conn_blind_bytes(t->conn), 0);
	} else {
		assert_null(strstr(t->heard.text, "no-answer"));
		assert_non_null(strstr(t->heard.text, "select ? blind"));
		assert_true(proto_conn_blind_bytes(t->conn) > 0);
	}
	talk_end(t, true);
	free(t);
}

TEST(a_compressed_frame_may_be_large)
{
	for (int zstd = 0; zstd < 2; zstd++) {
		large_answer(zstd, 1 << 20, SIZE_MAX);
		large_answer(zstd, 16384, SIZE_MAX);
		large_answer(zstd, 999, SIZE_MAX);
		large_answer(zstd, 16384, 4096); /* with holes */
	}
}

/* What unpacks to more than is allowed in a second is blind; the next second is read again. */
TEST(a_bomb_of_frames_costs_what_is_allowed)
{
	static uint8_t wire[70000], *plain;
	struct talk *t = malloc(sizeof(*t));
	size_t n, room = 16u << 20;
	static const struct turn login[] = {
		S(GREETING),
		C("&\x00\x00\x01\xa5\xa6\x0f\x01\x00\x00\x00\x01!" ZEROS23 "root\x00\x00"),
		S("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"), END};

	plain = calloc(room, 1);
	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_play(t, login, SIZE_MAX / 2, SIZE_MAX);
	n = frame_put(wire, sizeof(wire), plain, (1u << 24) - 1, 0, false);
	for (int i = 0; i < 8; i++) /* empty packets, each a row's worth of work */
		talk_say(t, 's', (char *)wire, n, SIZE_MAX);
	assert_true(proto_conn_blind_bytes(t->conn) > 0);
	talk_end(t, true);
	free(plain);
	free(t);
}
