/* SPDX-License-Identifier: Apache-2.0 */
/* memcached: lines and headers as in memcached's doc/protocol.txt and its description of the binary
 * protocol. */
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

TEST(text_commands_are_answered_in_order_hits_and_misses_apart)
{
	static const struct turn turns[] = {C("set user:12 0 0 5\r\nget x\r\n"),
					    S("STORED\r\n"),
					    C("get user:12\r\nget a b\r\n"),
					    S("VALUE user:12 0 5\r\nEND\r\n\r\nEND\r\n"),
					    S("END\r\n"),
					    C("incr n 1\r\ndelete n\r\nadd n 0 0 1 noreply\r"
					      "\nx\r\nstats\r\nset big 0 0 3\r\nabc\r\n"),
					    S("7\r\nNOT_FOUND\r\nSTAT pid 1\r\nSTAT x 2\r\nEND\r"
					      "\nSERVER_ERROR object too large for cache"
					      "\r\n"),
					    END};

	talk_expect(turns, "memcached",
		    "set user:{id} ok STORED\n"
		    "get user:{id} ok HIT\n"
		    "get a ok MISS\n"
		    "add n one-way\n"
		    "incr n ok\n"
		    "delete n ok NOT_FOUND\n"
		    "stats ok\n"
		    "set big error SERVER_ERROR\n");
}

TEST(meta_commands_quiet_ones_too)
{
	static const struct turn turns[] = {C("mg k:1 v t\r\nms k:2 3 T0\r\nabc\r\nmg gone q "
					      "v\r\nmn\r\n"),
					    S("VA 4 t-1\r\nEN\r\n\r\nHD\r\nMN\r\n"), END};

	talk_expect(turns, "memcached",
		    "mg gone one-way\n"
		    "mg k:{id} ok VA\n"
		    "ms k:{id} ok HD\n"
		    "mn ok MN\n");
}

TEST(the_binary_form_is_matched_by_its_number)
{
	static const struct turn turns[] = {
		C("\x80\x01\x00\x03\x08\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00k:9value"
		  "\x80\x09\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00q"
		  "\x80\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00gone"),
		S("\x81\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00"
		  "\x81\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00Not found"),
		END};

	talk_expect(turns, "memcached",
		    "getq q one-way\n"
		    "set k:{id} ok\n"
		    "get gone ok MISS\n");
}

TEST(a_mail_server_is_none)
{
	static const struct turn turns[] = {S("220 x\r\n"), C("quit\r\n"), S("221 x\r\n"), END};

	talk_expect_nothing(turns);
}

TEST(a_server_that_has_too_many_clients_says_so_unasked)
{
	static const struct turn turns[] = {S("ERROR Too many open connections\r\n"), END};

	talk_expect(turns, "memcached", "CONNECT error ERROR\n");
}
