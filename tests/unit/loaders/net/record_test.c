/* SPDX-License-Identifier: Apache-2.0 */
/* Records of sockets: bytes without SYN and FIN, results, addresses; and the kernel's counters of a
 * network namespace. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "loaders/net/counts.h"
#include "loaders/net/marks.h"
#include "loaders/net/record.h"
#include "schema/base/array.h"
#include "schema/facts/net.h"
#include "tests/unit/test.h"

static struct net_record ended(uint8_t side, uint8_t state, uint16_t error, uint16_t flags)
{
	return (struct net_record){
		.what = NET_END, .side = side, .state = state, .error = error, .flags = flags};
}

TEST(a_failed_open_is_told_as_what_it_is)
{
	static const struct {
		int error;
		enum record_result result;
	} all[] = {{ECONNREFUSED, RECORD_REFUSED},
		   {ETIMEDOUT, RECORD_TIMED_OUT},
		   {EHOSTUNREACH, RECORD_UNREACHABLE},
		   {ENETUNREACH, RECORD_UNREACHABLE},
		   {0, RECORD_GIVEN_UP},
		   {EINVAL, RECORD_FAILED}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct net_record r =
			ended(NET_SIDE_CLIENT, TCP_SYN_SENT, (uint16_t)all[i].error, 0);

		assert_int_equal(record_result(&r), all[i].result);
	}
}

TEST(an_end_is_told_as_what_it_is)
{
	struct net_record closed = ended(NET_SIDE_CLIENT, TCP_FIN_WAIT2, 0, NET_F_FIN_SENT),
			  unread = ended(NET_SIDE_SERVER, TCP_ESTABLISHED, 0, 0),
			  by_peer = ended(NET_SIDE_CLIENT, TCP_ESTABLISHED, ECONNRESET,
					  NET_F_RESET_IN),
			  late = ended(NET_SIDE_CLIENT, TCP_FIN_WAIT2, ECONNRESET, NET_F_FIN_SENT),
			  dead = ended(NET_SIDE_CLIENT, TCP_ESTABLISHED, ETIMEDOUT, 0);

	assert_int_equal(record_result(&closed), RECORD_CLOSED);
	assert_int_equal(record_result(&unread), RECORD_RESET_OUT);
	assert_int_equal(record_result(&by_peer), RECORD_RESET_IN);
	assert_int_equal(record_result(&late), RECORD_RESET_OUT);
	assert_int_equal(record_result(&dead), RECORD_BROKEN);
	closed.what = NET_LIVE;
	assert_int_equal(record_result(&closed), RECORD_OPEN);
}

TEST(an_end_without_an_entry_was_a_connection_if_it_left_an_open_state)
{
	static const struct {
		uint8_t state;
		bool opened;
	} all[] = {{TCP_SYN_SENT, false}, {TCP_SYN_RECV, false}, {TCP_ESTABLISHED, true},
		   {TCP_FIN_WAIT2, true}, {TCP_LAST_ACK, true},  {TCP_CLOSE_WAIT, true}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct net_record r = ended(0, all[i].state, 0, NET_F_NO_ENTRY);

		assert_int_equal(record_opened(&r), all[i].opened);
		r.flags = 0;
		assert_false(record_opened(&r));
		r.established_ns = 1;
		assert_true(record_opened(&r));
	}
}

TEST(bytes_are_the_program_s_alone)
{
	struct net_record r =
		ended(NET_SIDE_CLIENT, TCP_TIME_WAIT, 0, NET_F_FIN_SENT | NET_F_FIN_IN);

	r.acked = 1 + 1000 + 1;
	r.received = 500 + 1;
	r.snd_una = r.write_seq = 77;
	assert_int_equal(record_tx(&r), 1000);
	assert_int_equal(record_rx(&r), 500);
	r.write_seq = 80; /* its FIN was not acknowledged */
	assert_int_equal(record_tx(&r), 1001);
	r.side = NET_SIDE_SERVER;
	assert_int_equal(record_tx(&r), 1002);
	r.acked = r.received = 0; /* refused */
	assert_int_equal(record_tx(&r), 0);
	assert_int_equal(record_rx(&r), 0);
}

/* A client with initial sequence number `own` and a server with `other`, after this many bytes in
 * each direction. */
static struct net_record as_client(uint32_t own, uint32_t other, uint64_t sent, uint64_t got)
{
	return (struct net_record){.acked = sent + 1,
				   .snd_una = own + 1 + (uint32_t)sent,
				   .received = got,
				   .rcv_nxt = other + 1 + (uint32_t)got};
}

static struct net_record as_server(uint32_t own, uint32_t other, uint64_t sent, uint64_t got)
{
	return (struct net_record){.acked = sent,
				   .snd_una = own + 1 + (uint32_t)sent,
				   .received = got,
				   .rcv_nxt = other + 1 + (uint32_t)got};
}

TEST(both_ends_have_the_same_pair_at_any_time_and_as_the_other_side_another)
{
	struct net_record c = as_client(0xfffffff0, 5, 5ull << 32, 12345),
			  s = as_server(5, 0xfffffff0, 99, 7ull << 33);

	assert_int_equal(record_pair(&c, NET_SIDE_CLIENT), record_pair(&s, NET_SIDE_SERVER));
	assert_int_not_equal(record_pair(&c, NET_SIDE_SERVER), record_pair(&s, NET_SIDE_CLIENT));
}

TEST(an_address_that_holds_another_one_is_that)
{
	uint8_t at[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, six[16] = {[15] = 1};
	char buf[RECORD_ADDRESS];
	uint16_t family = AF_INET6;

	assert_string_equal(record_address(AF_INET6, at, buf), "127.0.0.1");
	assert_true(record_is_loopback(AF_INET6, at));
	record_unmap(&family, at);
	assert_int_equal(family, AF_INET);
	assert_string_equal(record_address(family, at, buf), "127.0.0.1");
	assert_string_equal(record_address(AF_INET6, six, buf), "::1");
	assert_true(record_is_loopback(AF_INET6, six));
	assert_string_equal(record_address(AF_UNIX, six, buf), "");
}

TEST(a_record_that_is_too_short_or_of_another_kind_is_none)
{
	struct net_record r = ended(NET_SIDE_CLIENT, TCP_SYN_SENT, 0, 0);

	assert_true(record_sound(&r, sizeof(r)));
	assert_false(record_sound(&r, sizeof(r) - 1));
	r.what = 9;
	assert_false(record_sound(&r, sizeof(r)));
	r.what = NET_END;
	r.how = 77;
	assert_false(record_sound(&r, sizeof(r)));
}

TEST(counts_are_found_by_their_names_whatever_the_order)
{
	static const char text[] =
		"Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoMin ActiveOpens RetransSegs CurrEstab\nTcp: 200 12 34 -1\n"
		"TcpExt: ListenDrops ListenOverflows\nTcpExt: 5 6\nUdp: InDatagrams NoPorts\nUdp: 7\nTcp: PassiveOpens\n";
	struct fact_row row = {0};

	counts_parse(text, sizeof(text) - 1, &row);
	assert_int_equal(row.v[NETNS_ACTIVE].number, 12);
	assert_int_equal(row.v[NETNS_RETRANS].number, 34);
	assert_int_equal(row.v[NETNS_DROPS].number, 5);
	assert_int_equal(row.v[NETNS_OVERFLOWS].number, 6);
	assert_int_equal(row.v[NETNS_UDP_IN].number, 7);
	assert_false(fact_has(&row, NETNS_ESTAB));
	assert_false(fact_has(&row, NETNS_UDP_NO_PORT));
	assert_false(fact_has(&row, NETNS_PASSIVE));
}

/* What it is for given numbers tests/e2e/net/test_net_far.py knows. */
TEST(both_ends_have_the_same_mark_and_another_connection_another)
{
	struct net_record client = {.acked = 1, .received = 0, .snd_una = 1001, .rcv_nxt = 5001},
			  server = {.acked = 10, .received = 20, .snd_una = 5011, .rcv_nxt = 1021};

	assert_true(record_mark(&client, NET_SIDE_CLIENT) == record_mark(&server, NET_SIDE_SERVER));
	assert_true(record_mark(&client, NET_SIDE_CLIENT) < 1ull << 60);
	server.rcv_nxt++;
	assert_true(record_mark(&client, NET_SIDE_CLIENT) != record_mark(&server, NET_SIDE_SERVER));
}

/* Whatever order the connections are read in, and whatever one host saw besides before. */
TEST(two_hosts_tell_the_least_mark_of_a_minute)
{
	static const uint64_t seen[2][5] = {{70, 20, 90, 50, 20}, {90, 50, 70, 60, 20}};
	struct marks hosts[2] = {0};

	for (int h = 0; h < 2; h++) {
		int told = 0;

		for (int i = 0; i < 5; i++)
			told += marks_take(&hosts[h], 7, seen[h][i], 600 + i);
		assert_int_equal(told, h ? 3 : 2);
		assert_false(marks_take(&hosts[h], 7, 30, 610));
		assert_false(marks_take(&hosts[h], 7, 20, 670)); /* in that hour it was */
		assert_true(marks_take(&hosts[h], 7, 19, 670));
		assert_true(marks_take(&hosts[h], 7, 20, 3660));
		marks_again(&hosts[h]);
		assert_true(marks_take(&hosts[h], 7, 20, 3661));
		marks_release(&hosts[h]);
	}
}

TEST(a_flood_of_flows_has_no_more_marks_than_there_is_room_for)
{
	struct marks m = {0};
	int told = 0;

	for (uint64_t i = 0; i < 2 * MARKS_FLOWS; i++)
		told += marks_take(&m, i, i + 1, 60);
	assert_int_equal(told, MARKS_FLOWS);
	marks_release(&m);
}
