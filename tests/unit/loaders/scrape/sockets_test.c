/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/net/tcp as kernels write it, and which address identifies exactly one socket. */
#include <string.h>

#include "loaders/scrape/sockets.h"
#include "tests/unit/test.h"

#define TITLE \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define LINE(local, st, inode)                                          \
	"   0: " local " 00000000:0000 " st                             \
	" 00000000:00000000 00:00000000 00000000     0        0 " inode \
	" 1 0000000000000000 100 0 0 10 0\n"
#define NONE6 "00000000000000000000000000000000"

TEST(what_listens_is_read_up_to_the_first_that_does_not)
{
	static const char text[] =
		TITLE LINE("0100007F:1F90", "0A", "11") LINE("00000000:0050", "0A", "12")
			LINE("0100007F:1F90", "01", "13") LINE("0100007F:1F91", "0A", "14");
	struct listening l[8];
	bool ended;

	assert_int_equal(sockets_parse(text, strlen(text), false, l, 8, &ended), 2);
	assert_true(ended);
	assert_true(l[0].inode == 11 && l[0].port == 8080 &&
		    !memcmp(l[0].address, "\x7f\0\0\x01", 4) && !l[0].v6);
	assert_true(l[1].inode == 12 && l[1].port == 80);
	assert_int_equal(sockets_parse(text, strlen(text), false, l, 1, &ended), 1);
	assert_false(ended);
	for (size_t n = 0; n < strlen(text); n++)
		sockets_parse(text, n, n % 2, l, 8, &ended);
}

TEST(an_address_of_v6_is_read_as_it_lies_in_memory)
{
	static const char text[] =
		TITLE "   0: 00000000000000000000000001000000:17AC " NONE6
		      ":0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 0\n";
	static const uint8_t one[16] = {[15] = 1};
	struct listening l;
	bool ended;

	assert_int_equal(sockets_parse(text, strlen(text), true, &l, 1, &ended), 1);
	assert_true(l.v6 && l.port == 6060 && l.inode == 99 && !memcmp(l.address, one, 16));
}

TEST(one_that_listens_everywhere_is_reached_by_loopback)
{
	const struct listening all[] = {{.inode = 1, .port = 80},
					{.inode = 2, .port = 81, .v6 = true},
					{.inode = 3, .port = 82, .v6 = true},
					{.inode = 4, .port = 82}};
	struct listening to;

	assert_true(sockets_reach(all, 4, 0, &to) && !to.v6 && to.address[0] == 127);
	assert_true(sockets_reach(all, 4, 1, &to) && !to.v6 &&
		    to.address[0] == 127); /* it takes both */
	assert_true(sockets_reach(all, 4, 2, &to) && to.v6 &&
		    to.address[15] == 1); /* v4 is another's */
	assert_true(sockets_reach(all, 4, 3, &to) && !to.v6);
}

TEST(where_another_may_answer_nobody_is_asked)
{
	const struct listening all[] = {{.inode = 1, .port = 80},
					{.inode = 2, .port = 80, .address = {127, 0, 0, 1}},
					{.inode = 3, .port = 90},
					{.inode = 4, .port = 90}};
	struct listening to;

	assert_false(sockets_reach(all, 4, 0, &to)); /* loopback's is the other's */
	assert_true(sockets_reach(all, 4, 1, &to));
	assert_false(sockets_reach(all, 4, 2, &to)); /* SO_REUSEPORT */
}

TEST(unix_sockets_that_listen_at_a_path_are_read)
{
	static const char text[] =
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01 21 /run/a b.sock\n"
		"0000000000000000: 00000002 00000000 00000000 0001 03 22 /run/a b.sock\n" /* an
											     accepted
											     one */
		"0000000000000000: 00000002 00000000 00010000 0005 01 23 /run/seqpacket\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01 24 @abstract\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01 25\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01 26 /run/twice\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01 27 /run/twice\n";
	struct listening l[8], to;
	size_t n = sockets_parse_unix(text, strlen(text), l, 8);

	assert_int_equal(n, 3);
	assert_true(l[0].inode == 21 && !strcmp(l[0].path, "/run/a b.sock"));
	assert_true(sockets_reach(l, n, 0, &to) && !strcmp(to.path, l[0].path));
	assert_false(sockets_reach(l, n, 1, &to)); /* which of the two would answer? */
	assert_int_equal(sockets_parse_unix(text, strlen(text), l, 2), 2);
	for (size_t i = 0; i < strlen(text); i++)
		sockets_parse_unix(text, i, l, 8);
}
