/* SPDX-License-Identifier: Apache-2.0 */
/* redis: RESP2 and RESP3 as in redis.io's specification of the protocol. */
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

TEST(commands_are_named_by_their_keys_pattern)
{
	static const struct turn turns[] = {
		C("*3\r\n$3\r\nset\r\n$13\r\nuser:123:name\r\n$5\r\nv\r\n"
		  "$3\r\n"),
		S("+OK\r\n"),
		C("*2\r\n$3\r\nGET\r\n$11\r\nuser:4:name\r\n"),
		S("$5\r\nv\r\n$3\r\n"),
		C("*3\r\n$6\r\nconfig\r\n$3\r\nget\r\n$1\r\nx\r\n"),
		S("*0\r\n"),
		C("*1\r\n$4\r\nPING\r\n"),
		S("+PONG\r\n"),
		END};

	talk_expect(turns, "redis",
		    "SET user:{id}:name ok\n"
		    "GET user:{id}:name ok\n"
		    "CONFIG GET ok\n"
		    "PING ok\n");
}

TEST(a_pipeline_is_answered_in_order_and_errors_have_their_word)
{
	static const struct turn turns[] = {C("*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"
					      "*3\r\n$5\r\nLPUSH\r\n$1\r\na\r\n$1\r\nx\r\n"
					      "*2\r\n$3\r\nGET\r\n$1\r\nb\r\n"
					      "*2\r\n$3\r\nGET\r\n$4\r\nslot\r\n"),
					    S(":1\r\n-WRONGTYPE Operation against a key\r\n"
					      "$-1\r\n-MOVED 3999 127.0.0.1:6381\r\n"),
					    END};

	talk_expect(turns, "redis",
		    "INCR a ok\n"
		    "LPUSH a error WRONGTYPE\n"
		    "GET b ok\n"
		    "GET slot error MOVED\n");
}

TEST(nested_replies_are_one_answer)
{
	static const struct turn turns[] = {
		C("*1\r\n$5\r\nMULTI\r\n"
		  "*4\r\n$6\r\nLRANGE\r\n$1\r\nl\r\n$1\r\n0\r\n$2\r\n-1\r\n"
		  "*1\r\n$4\r\nEXEC\r\n"),
		S("+OK\r\n+QUEUED\r\n*1\r\n*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1"
		  "\r\n*-1\r\n"),
		C("*1\r\n$4\r\nPING\r\n"), S("+PONG\r\n"), END};

	talk_expect(turns, "redis",
		    "MULTI ok\n"
		    "LRANGE l ok\n"
		    "EXEC ok\n"
		    "PING ok\n");
}

TEST(resp3_maps_attributes_and_pushes_are_understood)
{
	static const struct turn turns[] = {
		C("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"),
		S("%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n"),
		C("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
		S(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n|1\r\n+ttl"
		  "\r\n:3600\r\n$1\r\nv\r\n"),
		C("*2\r\n$7\r\nHGETALL\r\n$1\r\nh\r\n"),
		S("%1\r\n$1\r\na\r\n,1.5\r\n"),
		C("*2\r\n$1\r\nX\r\n$1\r\ny\r\n"),
		S("!11\r\nERR unknown\r\n"),
		END};

	talk_expect(turns, "redis",
		    "HELLO ok\n"
		    "invalidate one-way\n"
		    "GET k ok\n"
		    "HGETALL h ok\n"
		    "X y error ERR\n");
}

TEST(messages_of_channels_are_no_answers)
{
	static const struct turn turns[] = {
		C("*3\r\n$9\r\nSUBSCRIBE\r\n$2\r\nc1\r\n$2\r\nc2\r\n"),
		S("*3\r\n$9\r\nsubscribe\r\n$2\r\nc1\r\n:1\r\n*3\r\n$9\r\ns"
		  "ubscribe\r\n$2\r\nc2\r\n:2\r\n"),
		S("*3\r\n$7\r\nmessage\r\n$2\r\nc1\r\n$2\r\nhi\r\n"),
		C("*2\r\n$11\r\nUNSUBSCRIBE\r\n$2\r\nc1\r\n"),
		S("*3\r\n$11\r\nunsubscribe\r\n$2\r\nc1\r\n:1\r\n"),
		END};

	talk_expect(turns, "redis",
		    "SUBSCRIBE c1 ok\n"
		    "message one-way\n"
		    "UNSUBSCRIBE c1 ok\n");
}

TEST(inline_commands_count_as_well)
{
	static const struct turn turns[] = {C("PING\r\n"), S("+PONG\r\n"), C("get k\r\n"),
					    S("$1\r\n1\r\n"), END};

	talk_expect(turns, "redis",
		    "PING ok\n"
		    "GET k ok\n");
}

TEST(after_psync_the_connection_is_a_stream)
{
	static const struct turn turns[] = {C("*1\r\n$4\r\nPING\r\n"), S("+PONG\r\n"),
					    C("*3\r\n$5\r\nPSYNC\r\n$1\r\n\?\r\n$2\r\n-1\r\n"),
					    S("+FULLRESYNC 8371b4fb1155b71f4a04d3e1bc3e"
					      "18c4a990aeeb 0\r\n$3\r\nabc*1\r\n$4\r\nPING\r\n"),
					    END};

	talk_expect(turns, "redis",
		    "PING ok\n"
		    "PSYNC opened\n");
}

TEST(a_large_value_is_passed_over_and_its_pieces_need_not_be_copied)
{
	static const char set[] = "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$100000\r\n",
			  get[] = "*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n";
	static char value[100002 + sizeof(set)], reply[100002 + 9] = "$100000\r\n";
	struct talk *t = malloc(sizeof(*t));

	memcpy(value, set, sizeof(set) - 1);
	talk_begin(t, true, false, 0, PROTO_MASKED);
	for (int i = 0; i < 3; i++) {
		talk_say(t, 'c', value, sizeof(set) - 1 + 100002, 128);
		talk_say(t, 's', "+OK\r\n", 5, 128);
		talk_say(t, 'c', get, sizeof(get) - 1, 128);
		talk_say(t, 's', reply, sizeof(reply), 128);
	}
	assert_string_equal(
		t->heard.text,
		"SET big ok\nGET big ok\nSET big ok\nGET big ok\nSET big ok\nGET big ok\n");
	assert_int_equal(proto_conn_blind_bytes(t->conn), 0);
	assert_true(proto_conn_memory(t->conn) < 4096);
	talk_end(t, true);
	free(t);
}

TEST(a_message_that_begins_in_one_piece_may_end_within_the_next)
{
	static const char ask[] = "*1\r\n$4\r\nINFO\r\n*1\r\n$4\r\nPING\r\n";
	static char reply[20000];
	struct talk *t = malloc(sizeof(*t));
	size_t n;

	n = (size_t)snprintf(reply, sizeof(reply), "$9000\r\n");
	memset(reply + n, '$', 9000);
	memcpy(reply + n + 9000, "\r\n+PONG\r\n", 9);
	for (size_t cut = 1; cut < 10; cut++) {
		talk_begin(t, true, false, 0, PROTO_MASKED);
		talk_say(t, 'c', ask, sizeof(ask) - 1, SIZE_MAX);
		talk_say(t, 's', reply, cut, SIZE_MAX);
		talk_say(t, 's', reply + cut, n + 9009 - cut, SIZE_MAX);
		assert_string_equal(t->heard.text, "INFO ok\nPING ok\n");
		talk_end(t, true);
	}
	free(t);
}

TEST(a_bomb_of_nested_arrays_and_a_million_keys_stay_bounded)
{
	struct talk *t = malloc(sizeof(*t));
	char command[100];

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_say(t, 'c', "*1\r\n$4\r\nPING\r\n", 14, SIZE_MAX);
	for (int i = 0; i < 10000; i++)
		talk_say(t, 's', "*1000000\r\n", 10, SIZE_MAX);
	for (int i = 0; i < 100000; i++) {
		snprintf(command, sizeof(command), "*2\r\n$3\r\nGET\r\n$9\r\nk%c%c%c%c%c%c%c%c\r\n",
			 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676 % 26, 'a' + i / 17576, 'x',
			 'y', 'z', 'z');
		talk_say(t, 'c', command, strlen(command), SIZE_MAX);
		t->heard.len = 0;
	}
	assert_true(proto_conn_memory(t->conn) < 3000000); /* the most of open questions */
	talk_end(t, true);
	free(t);
}

TEST(an_error_within_a_reply_is_one)
{
	static const struct turn turns[] = {C("*1\r\n$5\r\nMULTI\r\n"),
					    S("+OK\r\n"),
					    C("*1\r\n$4\r\nEXEC\r\n"),
					    S("*3\r\n+OK\r\n-WRONGTYPE no\r\n-ERR no\r\n"),
					    C("*1\r\n$4\r\nEXEC\r\n"),
					    S("*2\r\n*1\r\n!11\r\nNOPERM huhu\r\n:1\r\n"),
					    C("*1\r\n$4\r\nEXEC\r\n"),
					    S("*1\r\n$9\r\n-ERR text\r\n"),
					    C("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
					    S("$-1\r\n"),
					    END};

	talk_expect(turns, "redis",
		    "MULTI ok\n"
		    "EXEC error WRONGTYPE\n"
		    "EXEC error NOPERM\n"
		    "EXEC ok\n"
		    "GET k ok\n");
}

TEST(a_server_that_has_too_many_clients_says_so_unasked)
{
	static const struct turn turns[] = {S("-ERR max number of clients reached\r\n"),
					    C("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), END};

	talk_expect(turns, "redis",
		    "CONNECT error ERR\n"
		    "GET k no-answer\n");
}

TEST(an_empty_line_before_the_first_command_is_none)
{
	static const struct turn turns[] = {C("\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), S("$-1\r\n"),
					    END};

	talk_expect(turns, "redis", "GET k ok\n");
}

TEST(lines_of_a_monitor_are_messages)
{
	static const struct turn turns[] = {C("*1\r\n$7\r\nMONITOR\r\n"),
					    S("+OK\r\n+1339518083.1 [0 h:1] \"keys\" \"*\"\r\n"),
					    S("+1339518087.8 [0 h:1] \"dbsize\"\r\n"),
					    C("*1\r\n$4\r\nQUIT\r\n"),
					    S("+OK\r\n"),
					    END};

	talk_expect(turns, "redis", "MONITOR ok\nmonitor one-way\nmonitor one-way\nQUIT ok\n");
}
