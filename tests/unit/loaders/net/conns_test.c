/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends meet, ends wait for who they belong to and no longer, and nothing is left. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>

#include "loaders/net/conns.h"
#include "tests/unit/test.h"

#define S 1000000000ll

static const struct net_owner CLIENT = {.start_ns = 1, .tgid = 10},
			      SERVER = {.start_ns = 2, .tgid = 20},
			      LISTENS = {.start_ns = 3, .tgid = 30};

static struct net_record record(uint64_t sk, enum net_side side, enum net_what what)
{
	struct net_record r = {.sk = sk,
			       .begin_ns = sk,
			       .time_ns = 10 * S,
			       .what = (uint8_t)what,
			       .side = (uint8_t)side,
			       .family = AF_INET,
			       .state = TCP_ESTABLISHED,
			       .netns = 4,
			       .lport = side == NET_SIDE_CLIENT ? 40000 : 80,
			       .dport = side == NET_SIDE_CLIENT ? 80 : 40000};

	r.snd_una = side == NET_SIDE_CLIENT ? 101 : 201;
	r.rcv_nxt = side == NET_SIDE_CLIENT ? 201 : 101;
	r.acked = side == NET_SIDE_CLIENT;
	if (side == NET_SIDE_CLIENT) {
		r.owner = CLIENT;
		r.how = NET_OWNER_OPENER;
	}
	return r;
}

TEST(both_ends_meet_and_know_each_other_s_process_when_one_is_gone)
{
	struct conns cs = {0};
	struct net_record c = record(1, NET_SIDE_CLIENT, NET_END),
			  s = record(2, NET_SIDE_SERVER, NET_END);
	struct conn *x;

	s.owner = SERVER;
	s.how = NET_OWNER_CLOSER;
	x = conns_take(&cs, &c);
	assert_null(conns_next(&cs, 10 * S, 10 * S, false)); /* the other end may come */
	conns_take(&cs, &s);
	assert_ptr_equal(conns_next(&cs, 10 * S, 10 * S, false), x);
	assert_int_equal(conns_mate(&cs, x).tgid, 20);
	conns_forget(&cs, x);
	x = conns_next(&cs, 10 * S, 10 * S, false);
	assert_int_equal(conns_mate(&cs, x).tgid, 10);
	conns_forget(&cs, x);
	assert_int_equal(cs.n, 0);
	assert_int_equal(cs.pairs[NET_SIDE_CLIENT].n + cs.pairs[NET_SIDE_SERVER].n, 0);
	conns_release(&cs);
}

TEST(an_end_waits_for_the_mappings_and_for_its_other_end_until_what_is_open_was_read)
{
	struct conns cs = {0};
	struct net_record c = record(1, NET_SIDE_CLIENT, NET_END);

	conns_take(&cs, &c);
	assert_null(conns_next(&cs, 11 * S, 9 * S, false));
	assert_null(conns_next(&cs, 10 * S + S / 2, 11 * S, false));
	assert_null(conns_next(&cs, 20 * S, 20 * S, false));
	assert_non_null(conns_next(&cs, 25 * S, 25 * S, false)); /* nothing was read for long */
	assert_non_null(conns_next(&cs, 10 * S, 9 * S, true));
	cs.reading++;
	assert_non_null(conns_next(&cs, 10 * S, 11 * S, false));
	assert_null(conns_next(&cs, 12 * S, 9 * S, false));
	assert_non_null(conns_next(&cs, 13 * S, 9 * S, false)); /* not reported */
	conns_release(&cs);
}

TEST(of_very_many_ends_none_waits_longer_than_a_second)
{
	struct conns cs = {0};

	for (uint64_t i = 0; i <= CONNS_FEW; i++) {
		struct net_record c = record(i, NET_SIDE_CLIENT, NET_END);

		conns_take(&cs, &c);
		assert_null(conns_next(&cs, 10 * S + S / 2, 11 * S, false));
	}
	assert_non_null(conns_next(&cs, 11 * S, 11 * S, false));
	conns_release(&cs);
}

TEST(of_connections_from_before_the_ends_tell_who_is_the_client)
{
	struct conns cs = {0};
	struct net_record c = record(1, NET_SIDE_CLIENT, NET_LIVE),
			  s = record(2, NET_SIDE_SERVER, NET_LIVE);
	struct conn *x, *y;

	c.side = s.side = NET_SIDE_UNKNOWN;
	c.flags = s.flags = NET_F_STANDING;
	s.acked += 70000;
	s.snd_una += 70000;
	c.received += 60000; /* some is on its way */
	c.rcv_nxt += 60000;
	x = conns_take(&cs, &s);
	y = conns_take(&cs, &c);
	assert_ptr_equal(x->mate, y);
	assert_int_equal(conns_side(&cs, x), NET_SIDE_SERVER);
	assert_int_equal(conns_side(&cs, y), NET_SIDE_CLIENT);
	conns_release(&cs);
}

TEST(an_accepted_one_is_the_listener_s_until_better_is_known)
{
	struct conns cs = {0};
	struct net_record l = record(5, NET_SIDE_LISTENER, NET_LIVE),
			  s = record(2, NET_SIDE_SERVER, NET_END);
	enum net_owner_how how;
	struct conn *x;

	l.owner = LISTENS;
	l.how = NET_OWNER_OPENER;
	conns_take(&cs, &l);
	x = conns_take(&cs, &s);
	assert_null(conns_next(&cs, 10 * S, 10 * S, false));
	assert_int_equal(conns_owner(&cs, x, &how).tgid, 30);
	assert_int_equal(how, NET_OWNER_LISTENER);
	s.what = NET_CLOSER;
	s.owner = SERVER;
	s.how = NET_OWNER_CLOSER;
	assert_ptr_equal(conns_take(&cs, &s), x);
	assert_int_equal(conns_owner(&cs, x, &how).tgid, 20);
	assert_int_equal(how, NET_OWNER_CLOSER);
	conns_release(&cs);
}

TEST(what_is_read_while_it_ends_is_not_open_again)
{
	struct conns cs = {0};
	struct net_record c = record(1, NET_SIDE_CLIENT, NET_END),
			  late = record(1, NET_SIDE_CLIENT, NET_LIVE);

	conns_take(&cs, &c);
	assert_null(conns_take(&cs, &late));
	assert_int_equal(cs.n, 1);
	conns_release(&cs);
}
