/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the probes become requests: in order of time, by side, over gaps; bodies and unknown
 * protocols are not wanted. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/l7/running.h"
#include "loaders/l7/streams.h"
#include "schema/base/mem.h"
#include "tests/unit/test.h"

#define S  1000000000ll
#define MS 1000000ll

static const char Q[] = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
		  A[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

struct fixture {
	struct streams *s;
	struct message_writer to;
	struct l7_want *wants;
	struct written {
		enum msg_kind kind;
		struct msg_about about;
		union {
			struct msg_sum sum;
			struct msg_part part;
			struct msg_single single;
			struct msg_bytes bytes;
		};
		char operation[MSG_TEXT_MAX], service[MSG_TEXT_MAX], protocol[MSG_TEXT_MAX];
	} written[64];
	size_t n;
	struct ran { /* messages of running requests */
		struct msg_running m;
		char operation[MSG_TEXT_MAX], client[64];
	} ran[256];
	size_t n_ran;
};

static void take(void *ctx, const void *packet, size_t size)
{
	struct fixture *f = ctx;
	struct message m;

	for (size_t at = 0; message_read(packet, size, &at, &m);) {
		struct written *w;

		if (m.kind == MSG_RUNNING) {
			struct ran *r = &f->ran[f->n_ran++];

			assert_true(f->n_ran <= 256);
			r->m = *m.running;
			snprintf(r->operation, MSG_TEXT_MAX, "%s", m.text[MSG_OPERATION]);
			snprintf(r->client, sizeof(r->client), "%.63s", m.text[MSG_ADDRESS]);
			continue;
		}
		w = &f->written[f->n++];
		assert_true(f->n <= 64);
		w->kind = m.kind;
		w->about = *m.about;
		if (m.kind == MSG_SUM)
			w->sum = *m.sum;
		else if (m.kind == MSG_PART)
			w->part = *m.part;
		else if (m.kind == MSG_SINGLE)
			w->single = *m.single;
		else if (m.kind == MSG_BYTES)
			w->bytes = *m.bytes;
		snprintf(w->operation, MSG_TEXT_MAX, "%s", m.text[MSG_OPERATION]);
		snprintf(w->service, MSG_TEXT_MAX, "%s", m.text[MSG_SERVICE]);
		snprintf(w->protocol, MSG_TEXT_MAX, "%s", m.text[MSG_PROTOCOL]);
	}
}

static int setup(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));

	f->wants = mem_array(L7_WANT_ENTRIES, sizeof(*f->wants));
	f->to = (struct message_writer){.send = take, .ctx = f};
	f->s = streams_new(f->wants, &f->to, 1, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	streams_free(f->s);
	free(f->wants);
	free(f);
	return 0;
}

static void conn(struct fixture *f, uint64_t sk, uint8_t side, uint16_t flags, int64_t at)
{
	struct l7_conn c = {.h = {.sk = sk,
				  .ino = sk + 1,
				  .at_ns = (uint64_t)at,
				  .tgid = 7,
				  .what = L7_CONN,
				  .flags = flags},
			    .start_ns = 5,
			    .family = AF_INET,
			    .protocol = 6,
			    .lport = 8080,
			    .dport = 40000,
			    .side = side,
			    .local = {127, 0, 0, 1},
			    .peer = {127, 0, 0, 1}};

	streams_record(f->s, &c, sizeof(c));
}

static void data(struct fixture *f, uint64_t sk, uint8_t dir, uint64_t pos, const char *bytes,
		 uint32_t size, uint16_t flags, int64_t at)
{
	struct {
		struct l7_data d;
		char bytes[4096];
	} r = {.d = {.h = {.sk = sk,
			   .ino = sk + 1,
			   .at_ns = (uint64_t)at,
			   .tgid = 7,
			   .what = L7_DATA,
			   .dir = dir,
			   .flags = flags},
		     .pos = pos}};

	r.d.len = (uint32_t)strlen(bytes);
	r.d.size = size ? size : r.d.len;
	memcpy(r.bytes, bytes, r.d.len);
	streams_record(f->s, &r, sizeof(r.d) + r.d.len);
}

static void end(struct fixture *f, uint64_t sk, uint64_t out, uint64_t in, int64_t at)
{
	const struct l7_end e = {
		.h = {.sk = sk, .ino = sk + 1, .at_ns = (uint64_t)at, .tgid = 7, .what = L7_END},
		.pos = {out, in}};

	streams_record(f->s, &e, sizeof(e));
}

static struct msg_sum sums(const struct fixture *f)
{
	struct msg_sum all = {0};

	for (size_t i = 0; i < f->n; i++) {
		const struct msg_sum *x = &f->written[i].sum;

		if (f->written[i].kind != MSG_SUM)
			continue;
		all.n += x->n;
		all.total_ns += x->total_ns;
		all.response_bytes += x->response_bytes;
	}
	return all;
}

static struct byte_counts bytes(const struct fixture *f)
{
	struct byte_counts all = {0};

	for (size_t i = 0; i < f->n; i++) {
		const struct byte_counts *x = &f->written[i].bytes.count;

		if (f->written[i].kind != MSG_BYTES)
			continue;
		all.seen += x->seen;
		all.parsed += x->parsed;
		all.skipped += x->skipped;
		all.blind += x->blind;
		all.blind_requests += x->blind_requests;
	}
	return all;
}

/* Has a server on this port spoken a protocol that is parsed? */
static bool port_speaks(const struct fixture *f, uint16_t port)
{
	return ((const uint8_t *)&f->wants[L7_WANT_PORTS])[port / 8] >> (port % 8) & 1;
}

TEST_WITH(a_question_and_its_answer_are_a_request_of_the_server, setup, teardown)
{
	struct fixture *f = *state;

	assert_false(port_speaks(f, 8080));
	conn(f, 100, L7_SIDE_SERVER, L7_F_BEGUN, 1 * S);
	data(f, 100, L7_IN, 0, Q, 0, 0, 1 * S + MS);
	data(f, 100, L7_OUT, 0, A, 0, 0, 1 * S + 5 * MS);
	end(f, 100, sizeof(A) - 1, sizeof(Q) - 1, 1 * S + 6 * MS);
	streams_end(f->s, 3 * S);
	assert_int_equal(sums(f).n, 1);
	assert_int_equal(sums(f).total_ns, 4 * MS);
	assert_string_equal(f->written[0].operation, "GET h/a");
	assert_string_equal(f->written[0].service, "127.0.0.1:8080");
	assert_true(port_speaks(f, 8080) && !port_speaks(f, 8081) && !port_speaks(f, 8072));
	assert_int_equal(f->written[0].about.side, L7_SIDE_SERVER);
	assert_int_equal(bytes(f).seen, sizeof(Q) + sizeof(A) - 2);
	assert_int_equal(bytes(f).parsed, sizeof(Q) + sizeof(A) - 2);
}

/* A read that brings `bytes`, which (the first of them at least) have lain there since `came`. */
static void came(struct fixture *f, const char *bytes, uint64_t pos, uint16_t flags,
		 int64_t came_ns, int64_t at)
{
	struct {
		struct l7_data d;
		char bytes[4096];
	} r = {.d = {.h = {.sk = 100,
			   .ino = 101,
			   .at_ns = (uint64_t)at,
			   .tgid = 7,
			   .what = L7_DATA,
			   .dir = L7_IN,
			   .flags = flags},
		     .pos = pos,
		     .came_ns = (uint64_t)came_ns}};

	r.d.len = r.d.size = (uint32_t)strlen(bytes);
	memcpy(r.bytes, bytes, r.d.len);
	streams_record(f->s, &r, sizeof(r.d) + r.d.len);
}

static struct msg_part part(const struct fixture *f, enum request_part which)
{
	struct msg_part all = {0};

	for (size_t i = 0; i < f->n; i++) {
		const struct msg_part *x = &f->written[i].part;

		if (f->written[i].kind != MSG_PART || x->part != which)
			continue;
		all.n += x->n;
		all.total_ns += x->total_ns;
		all.max_ns += x->max_ns;
	}
	return all;
}

TEST_WITH(how_long_a_request_lay_there_is_told_where_its_first_byte_has_a_time, setup, teardown)
{
	struct fixture *f = *state;
	char two[2 * sizeof(Q)];
	uint64_t q = sizeof(Q) - 1;

	snprintf(two, sizeof(two), "%s%s", Q, Q);
	conn(f, 100, L7_SIDE_SERVER, L7_F_BEGUN, 1 * S);
	came(f, two, 0, 0, 1 * S + MS, 1 * S + 5 * MS); /* the second one may have come later */
	came(f, two, 2 * q, L7_F_TOGETHER, 1 * S + 6 * MS, 1 * S + 9 * MS); /* both at once */
	came(f, Q, 4 * q, 0, 0, 1 * S + 10 * MS);                           /* unknown protocol */
	for (uint64_t i = 0; i < 5; i++)
		data(f, 100, L7_OUT, i * (sizeof(A) - 1), A, 0, 0, 1 * S + (20 + (int64_t)i) * MS);
	streams_end(f->s, 2 * S);
	assert_int_equal(sums(f).n, 5);
	assert_int_equal(part(f, PART_QUEUED).n, 3);
	assert_int_equal(part(f, PART_QUEUED).total_ns, (4 + 3 + 3) * MS);
	assert_int_equal(part(f, PART_QUEUED).max_ns, 4 * MS);
	assert_int_equal(part(f, PART_TO_FIRST).n, 5);
	assert_int_equal(part(f, PART_TO_FIRST).total_ns, (15 + 16 + 13 + 14 + 14) * MS);
}

TEST_WITH(an_answer_that_is_told_before_its_question_comes_after_it, setup, teardown)
{
	struct fixture *f = *state;

	conn(f, 100, L7_SIDE_CLIENT, L7_F_BEGUN, 1 * S);
	data(f, 100, L7_IN, 0, A, 0, 0, 1 * S + 5 * MS);
	data(f, 100, L7_OUT, 0, Q, 0, 0, 1 * S + MS);
	streams_take(f->s, 1 * S + 5 * MS); /* too young */
	streams_end(f->s, 3 * S);
	assert_int_equal(sums(f).n, 1);
	assert_int_equal(sums(f).total_ns, 4 * MS);
	assert_string_equal(f->written[0].service, "127.0.0.1:40000");
}

TEST_WITH(of_a_connection_without_a_side_what_it_says_tells, setup, teardown)
{
	struct fixture *f = *state;

	conn(f, 100, L7_SIDE_UNKNOWN, 0, 1 * S); /* 8080 < 40000: taken for the server */
	for (int i = 0; i < 3; i++) {
		data(f, 100, L7_OUT, (uint64_t)i * (sizeof(Q) - 1), Q, 0, 0,
		     1 * S + (2 * i + 1) * MS);
		data(f, 100, L7_IN, (uint64_t)i * (sizeof(A) - 1), A, 0, 0,
		     1 * S + (2 * i + 2) * MS);
	}
	streams_end(f->s, 3 * S);
	for (size_t i = 0; i < f->n; i++) {
		assert_int_equal(f->written[i].about.side, L7_SIDE_CLIENT);
		assert_string_equal(f->written[i].service, "127.0.0.1:40000");
	}
	assert_int_equal(sums(f).n, 3);
	assert_int_equal(bytes(f).blind_requests, 1); /* the first: what was before is not known */
}

TEST_WITH(of_a_body_no_more_is_wanted_than_that_it_ends, setup, teardown)
{
	struct fixture *f = *state;
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
	const struct l7_want *w = &f->wants[L7_WANT_SLOT(100)];
	uint64_t whole = sizeof(head) - 1 + 100000;

	conn(f, 100, L7_SIDE_SERVER, L7_F_BEGUN, 1 * S);
	data(f, 100, L7_IN, 0, Q, 0, 0, 1 * S + MS);
	data(f, 100, L7_OUT, 0, head, 0, 0, 1 * S + 2 * MS);
	streams_take(f->s, 2 * S);
	assert_int_equal(w->ino, 101);
	assert_int_equal(w->until[L7_OUT], whole);
	assert_int_equal(w->until[L7_IN], 0);
	data(f, 100, L7_OUT, whole - 10, "", 10, 0, 1 * S + 9 * MS);
	streams_end(f->s, 3 * S);
	assert_int_equal(sums(f).total_ns, 8 * MS);
	assert_int_equal(sums(f).response_bytes, whole);
	assert_int_equal(bytes(f).skipped, 100000);
	assert_int_equal(bytes(f).blind, 0);
}

TEST_WITH(of_what_nobody_knows_nothing_is_wanted, setup, teardown)
{
	struct fixture *f = *state;
	const struct l7_want *w = &f->wants[L7_WANT_SLOT(100)];

	conn(f, 100, L7_SIDE_SERVER, L7_F_BEGUN, 1 * S);
	for (uint64_t i = 0; i < 400; i++)
		data(f, 100, i % 2 ? L7_OUT : L7_IN, i / 2 * 3, "\x01\x02\x03", 0, 0,
		     1 * S + (int64_t)i * MS / 10);
	end(f, 100, 100000, 600, 2 * S - 1);
	streams_take(f->s, 2 * S - MS);
	assert_true(w->flags & L7_WANT_NOTHING);
	assert_false(port_speaks(f, 8080));
	streams_end(f->s, 3 * S);
	assert_int_equal(bytes(f).seen, 100600);
	assert_int_equal(bytes(f).skipped, 100600);
	assert_int_equal(w->ino, 0);
}

TEST_WITH(a_connection_that_was_not_told_is_asked_for_and_read_from_then_on, setup, teardown)
{
	struct fixture *f = *state;
	const struct l7_want *w = &f->wants[L7_WANT_SLOT(100)];

	data(f, 100, L7_IN, 0, Q, 0, 0, 1 * S);
	streams_take(f->s, 1 * S + 30 * MS);
	assert_int_equal(w->flags, L7_WANT_CONN);
	conn(f, 100, L7_SIDE_SERVER, L7_F_BEGUN, 1 * S + 31 * MS);
	for (int i = 1; i < 4; i++) {
		data(f, 100, L7_IN, (uint64_t)i * (sizeof(Q) - 1), Q, 0, 0,
		     1 * S + (40 + 2 * i) * MS);
		data(f, 100, L7_OUT, (uint64_t)i * (sizeof(A) - 1), A, 0, 0,
		     1 * S + (41 + 2 * i) * MS);
	}
	streams_end(f->s, 3 * S);
	assert_true(sums(f).n >= 2);
	assert_int_equal(bytes(f).seen, bytes(f).parsed + bytes(f).skipped + bytes(f).blind);
	assert_true(bytes(f).blind >= sizeof(Q) - 1);
}

TEST_WITH(clear_text_of_tls_is_read_and_its_records_are_not, setup, teardown)
{
	struct fixture *f = *state;

	conn(f, 100, L7_SIDE_CLIENT, L7_F_BEGUN, 1 * S);
	data(f, 100, L7_OUT, 0, "\x16\x03\x01\x00\x04\x01\x02\x03\x04", 0, 0, 1 * S + MS);
	data(f, 100, L7_OUT, 0, Q, 0, L7_F_TLS, 1 * S + 2 * MS);
	data(f, 100, L7_IN, 0, A, 0, L7_F_TLS, 1 * S + 4 * MS);
	end(f, 100, 500, 700, 1 * S + 5 * MS);
	streams_end(f->s, 3 * S);
	assert_int_equal(sums(f).n, 1);
	assert_int_equal(sums(f).total_ns, 2 * MS);
	assert_int_equal(bytes(f).seen, bytes(f).parsed + bytes(f).skipped + bytes(f).blind);
}

TEST_WITH(clear_text_that_was_written_before_its_connection_was_told_is_read_with_it, setup,
	  teardown)
{
	struct fixture *f = *state;

	data(f, 100, L7_OUT, 0, Q, 0, L7_F_TLS, 1 * S);
	streams_take(f->s, 1 * S + 30 * MS);
	conn(f, 100, L7_SIDE_CLIENT, 0, 1 * S + 31 * MS);
	data(f, 100, L7_OUT, 0, "\x17\x03\x03\x04\x04\x01\x02", 0, 0, 1 * S + 31 * MS);
	data(f, 100, L7_IN, 0, A, 0, L7_F_TLS, 1 * S + 40 * MS);
	end(f, 100, 7, 0, 1 * S + 50 * MS);
	streams_end(f->s, 3 * S);
	assert_int_equal(sums(f).n, 1);
	assert_int_equal(bytes(f).seen, bytes(f).parsed + bytes(f).skipped + bytes(f).blind);
}

TEST_WITH(clear_text_whose_connection_is_never_told_is_counted_as_blind, setup, teardown)
{
	struct fixture *f = *state;

	data(f, 100, L7_OUT, 0, Q, 0, L7_F_TLS, 1 * S);
	data(f, 100, L7_OUT, sizeof(Q) - 1, Q, 0, L7_F_TLS, 1 * S + MS);
	data(f, 200, L7_OUT, 0, Q, 0, L7_F_TLS, 1 * S + MS);
	end(f, 200, 0, 0, 1 * S + 2 * MS);
	streams_end(f->s, 3 * S);
	assert_int_equal(sums(f).n, 0);
	assert_int_equal(bytes(f).blind, 3 * (sizeof(Q) - 1));
}

TEST_WITH(an_address_that_has_another_socket_is_another_connection, setup, teardown)
{
	struct fixture *f = *state;
	struct l7_conn c = {.h = {.sk = 100,
				  .ino = 999,
				  .at_ns = 2 * S,
				  .tgid = 8,
				  .what = L7_CONN,
				  .flags = L7_F_BEGUN},
			    .family = AF_UNIX,
			    .side = L7_SIDE_SERVER,
			    .path = "/run/x",
			    .path_len = 6};
	struct streams_stat stat;

	conn(f, 100, L7_SIDE_SERVER, L7_F_BEGUN, 1 * S);
	data(f, 100, L7_IN, 0, Q, 0, 0, 1 * S + MS);
	streams_record(f->s, &c, sizeof(c));
	streams_end(f->s, 3 * S);
	streams_stat(f->s, &stat);
	assert_int_equal(stat.open, 1);
	assert_int_equal(stat.connections, 2);
	assert_int_equal(sums(f).n, 1); /* without an answer */
}

/* ---- requests that are made for others ---- */

static void end_of(struct fixture *f, uint64_t sk, uint32_t tgid, uint8_t side, uint16_t lport,
		   uint16_t dport)
{
	struct l7_conn c = {.h = {.sk = sk,
				  .ino = sk + 1,
				  .at_ns = 1 * S,
				  .tgid = tgid,
				  .what = L7_CONN,
				  .flags = L7_F_BEGUN},
			    .start_ns = tgid,
			    .family = AF_INET,
			    .protocol = 6,
			    .lport = lport,
			    .dport = dport,
			    .side = side,
			    .local = {127, 0, 0, 1},
			    .peer = {127, 0, 0, 1}};

	streams_record(f->s, &c, sizeof(c));
}

/* What the probe says of a thread that asks: the tag, with TAGGED(flags) above it. */
#define TAGGED(flags_) ((uint64_t)(flags_) << 48)

static void moves(struct fixture *f, uint64_t sk, uint32_t tgid, uint8_t dir, const char *bytes,
		  uint32_t seq, uint64_t tag, int64_t at)
{
	struct {
		struct l7_data d;
		char bytes[512];
	} r = {.d = {.h = {.sk = sk,
			   .ino = sk + 1,
			   .at_ns = (uint64_t)at,
			   .tgid = tgid,
			   .tid = tgid,
			   .what = L7_DATA,
			   .dir = dir,
			   .flags = (uint16_t)(tag >> 48)},
		     .seq = seq,
		     .tag = tag & (TAGGED(1) - 1)}};

	r.d.len = r.d.size = (uint32_t)strlen(bytes);
	memcpy(r.bytes, bytes, r.d.len);
	streams_record(f->s, &r, sizeof(r.d) + r.d.len);
}

static const struct msg_single *single(const struct fixture *f, uint32_t tgid, uint8_t side)
{
	const struct msg_single *found = NULL;

	for (size_t i = 0; i < f->n; i++)
		if (f->written[i].kind == MSG_SINGLE && f->written[i].about.process.tgid == tgid &&
		    f->written[i].about.side == side) {
			assert_null(found);
			found = &f->written[i].single;
		}
	assert_non_null(found);
	return found;
}

/* A server is asked at 1 s + 1 ms, asks another one for that, and answers. `tag`: what the probe
 * says of the thread that asks. */
static void front_and_back(struct fixture *f, uint64_t tag, uint32_t seq_at_back)
{
	end_of(f, 100, 7, L7_SIDE_SERVER, 80, 40000);
	end_of(f, 200, 7, L7_SIDE_CLIENT, 41000, 90);
	end_of(f, 300, 8, L7_SIDE_SERVER, 90, 41000);
	moves(f, 100, 7, L7_IN, Q, 5000, 0, 1 * S + MS);
	moves(f, 200, 7, L7_OUT, Q, 7000, tag, 1 * S + 2 * MS);
	moves(f, 300, 8, L7_IN, Q, seq_at_back, 0, 1 * S + 3 * MS);
	moves(f, 300, 8, L7_OUT, A, 9000, 0, 1 * S + 4 * MS);
	moves(f, 200, 7, L7_IN, A, 9000, 0, 1 * S + 5 * MS);
	moves(f, 100, 7, L7_OUT, A, 6000, 0, 1 * S + 6 * MS);
	streams_end(f->s, 3 * S);
}

TEST_WITH(what_is_asked_for_a_request_has_it_as_its_parent_and_the_answer_the_question, setup,
	  teardown)
{
	struct fixture *f = *state;
	const struct msg_single *front, *asked, *back;

	front_and_back(f, TAGGED(L7_F_SERVES) | (1 * S + MS), 7000);
	front = single(f, 7, L7_SIDE_SERVER);
	asked = single(f, 7, L7_SIDE_CLIENT);
	back = single(f, 8, L7_SIDE_SERVER);
	assert_true(asked->parent == front->span && front->span);
	assert_true(back->parent == asked->span && asked->span);
	assert_int_equal(asked->how, LINK_BY_THREAD);
	assert_int_equal(back->how, LINK_BY_BYTES);
}

TEST_WITH(a_thread_that_serves_nobody_asks_for_nobody, setup, teardown)
{
	struct fixture *f = *state;

	front_and_back(f, 0, 7000);
	assert_int_equal(single(f, 7, L7_SIDE_CLIENT)->parent, 0);
	assert_int_equal(single(f, 7, L7_SIDE_CLIENT)->how, LINK_NONE);
}

/* As front_and_back, while the thread has another request open, since before or in between. */
static const struct msg_single *asked_beside(struct fixture *f, uint64_t tag, int64_t other_ns)
{
	end_of(f, 100, 7, L7_SIDE_SERVER, 80, 40000);
	end_of(f, 150, 7, L7_SIDE_SERVER, 80, 40001);
	moves(f, 150, 7, L7_IN, Q, 3000, 0, other_ns);
	moves(f, 100, 7, L7_IN, Q, 5000, 0, 1 * S + 2 * MS);
	moves(f, 150, 7, L7_OUT, A, 4000, 0, 1 * S + 4 * MS);
	end_of(f, 200, 7, L7_SIDE_CLIENT, 41000, 90);
	moves(f, 200, 7, L7_OUT, Q, 7000, tag, 1 * S + 5 * MS);
	moves(f, 200, 7, L7_IN, A, 9000, 0, 1 * S + 6 * MS);
	moves(f, 100, 7, L7_OUT, A, 6000, 0, 1 * S + 7 * MS);
	streams_end(f->s, 3 * S);
	return single(f, 7, L7_SIDE_CLIENT);
}

TEST_WITH(a_thread_that_had_another_request_open_meanwhile_asks_for_nobody, setup, teardown)
{
	const uint64_t tag = TAGGED(L7_F_SERVES) | (1 * S + 2 * MS);
	const struct msg_single *asked = asked_beside(*state, tag, 1 * S + MS);

	assert_int_equal(asked->parent, 0);
	assert_int_equal(asked->how, LINK_SEVERAL);
}

TEST_WITH(a_request_that_came_in_between_is_one_too_many, setup, teardown)
{
	const uint64_t tag = TAGGED(L7_F_SERVES) | (1 * S + 2 * MS);

	assert_int_equal(asked_beside(*state, tag, 1 * S + 3 * MS)->how, LINK_SEVERAL);
}

TEST_WITH(to_open_a_connection_next_is_a_ground_of_its_own, setup, teardown)
{
	const uint64_t tag = TAGGED(L7_F_OPENER | L7_F_NEXT) | (1 * S + 2 * MS);
	const struct msg_single *asked = asked_beside(*state, tag, 1 * S + MS);

	assert_true(asked->parent);
	assert_int_equal(asked->how, LINK_BY_OPENER);
}

TEST_WITH(an_opener_that_did_something_else_before_tells_nothing_of_several, setup, teardown)
{
	const uint64_t tag = TAGGED(L7_F_OPENER) | (1 * S + 2 * MS);

	assert_int_equal(asked_beside(*state, tag, 1 * S + MS)->how, LINK_SEVERAL);
}

TEST_WITH(a_loop_that_asked_on_its_own_account_may_do_so_again, setup, teardown)
{
	struct fixture *f = *state;

	end_of(f, 190, 7, L7_SIDE_CLIENT, 41001, 90);
	moves(f, 190, 7, L7_OUT, Q, 7000, 0, 1 * S);
	front_and_back(f, TAGGED(L7_F_SERVES | L7_F_LOOP) | (1 * S + MS), 7000);
	assert_int_equal(single(f, 7, L7_SIDE_CLIENT)->how, LINK_SEVERAL);
}

TEST_WITH(an_answer_to_another_byte_is_no_answer_to_this_question, setup, teardown)
{
	struct fixture *f = *state;

	front_and_back(f, TAGGED(L7_F_SERVES) | (1 * S + MS), 7001);
	assert_true(single(f, 8, L7_SIDE_SERVER)->parent != single(f, 7, L7_SIDE_CLIENT)->span);
}

/* ---- requests that last ---- */

static const struct msg_running *ran(const struct fixture *f, size_t nth)
{
	assert_true(nth < f->n_ran);
	return &f->ran[nth].m;
}

/* Of messages that are no marks. */
static size_t told(const struct fixture *f, bool over)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_ran; i++)
		n += f->ran[i].m.id && (f->ran[i].m.end_ns != 0) == over;
	return n;
}

static const struct msg_running *mark(const struct fixture *f)
{
	for (size_t i = f->n_ran; i-- > 0;)
		if (!f->ran[i].m.id)
			return &f->ran[i].m;
	fail_msg("there is no mark");
	return NULL;
}

/* The last one that told an end. */
static const struct msg_running *over(const struct fixture *f)
{
	for (size_t i = f->n_ran; i-- > 0;)
		if (f->ran[i].m.end_ns)
			return &f->ran[i].m;
	fail_msg("no end is told");
	return NULL;
}

/* A server that was asked at 1 s. */
static void asked(struct fixture *f, uint64_t sk)
{
	conn(f, sk, L7_SIDE_SERVER, L7_F_BEGUN, 1 * S);
	data(f, sk, L7_IN, 0, Q, 0, 0, 1 * S);
	streams_take(f->s, 1 * S + 100 * MS);
}

TEST_WITH(a_request_that_lasts_is_told_while_it_runs_and_when_it_is_over, setup, teardown)
{
	struct fixture *f = *state;

	asked(f, 100);
	for (int64_t at = 2; at <= 200; at++)
		streams_write(f->s, at * S, false);
	assert_int_equal(told(f, false), 1 + 5 + 2); /* at 3, 13, ... 53; then 113, 173 s */
	assert_string_equal(f->ran[0].operation, "GET h/a");
	assert_string_equal(f->ran[0].client, "127.0.0.1");
	assert_int_equal(ran(f, 0)->port, 40000);
	assert_int_equal(ran(f, 0)->about.side, L7_SIDE_SERVER);
	assert_int_equal(ran(f, 0)->about.process.tgid, 7);
	assert_int_equal(ran(f, 0)->at_ns, 1 * S);
	assert_int_equal(ran(f, 0)->seen_ns, 3 * S);
	data(f, 100, L7_OUT, 0, A, 0, 0, 201 * S);
	streams_take(f->s, 202 * S);
	streams_write(f->s, 202 * S, false);
	assert_int_equal(told(f, true), 1);
	assert_int_equal(over(f)->end_ns, 201 * S);
	assert_int_equal(over(f)->about.result, PROTO_OK);
	assert_int_equal(over(f)->id, ran(f, 0)->id);
}

TEST_WITH(a_request_that_is_short_is_not_told, setup, teardown)
{
	struct fixture *f = *state;

	asked(f, 100);
	streams_write(f->s, 2 * S, false);
	data(f, 100, L7_OUT, 0, A, 0, 0, 2 * S);
	streams_take(f->s, 4 * S);
	streams_write(f->s, 4 * S, false);
	assert_int_equal(told(f, false) + told(f, true), 0);
	assert_int_equal(f->n_ran, 0);
}

TEST_WITH(a_connection_that_ends_leaves_no_request_behind, setup, teardown)
{
	struct fixture *f = *state;

	asked(f, 100);
	streams_write(f->s, 4 * S, false);
	end(f, 100, 0, sizeof(Q) - 1, 5 * S);
	streams_take(f->s, 6 * S);
	streams_write(f->s, 6 * S, false);
	assert_int_equal(told(f, true), 1);
	assert_int_equal(over(f)->end_ns, 5 * S);
	assert_int_equal(over(f)->about.result, PROTO_NO_ANSWER);
}

TEST_WITH(an_answer_that_is_missing_leaves_no_request_behind, setup, teardown)
{
	struct fixture *f = *state;

	asked(f, 100);
	streams_write(f->s, 4 * S, false);
	data(f, 100, L7_OUT, 40000, "x", 0, 0, 5 * S); /* what is before it was lost */
	streams_take(f->s, 6 * S);
	streams_write(f->s, 7 * S, false);
	assert_int_equal(told(f, true), 1);
	assert_int_equal(over(f)->about.result, PROTO_BLIND);
}

TEST_WITH(clear_text_that_takes_over_leaves_no_request_behind, setup, teardown)
{
	struct fixture *f = *state;

	asked(f, 100);
	streams_write(f->s, 4 * S, false);
	data(f, 100, L7_IN, 0, "x", 0, L7_F_TLS, 5 * S);
	streams_take(f->s, 6 * S);
	streams_write(f->s, 7 * S, false);
	assert_int_equal(told(f, true), 1);
	assert_int_equal(over(f)->end_ns, 7 * S);
	assert_int_equal(over(f)->about.result, PROTO_BLIND);
}

TEST_WITH(what_runs_at_the_end_is_told_once_more, setup, teardown)
{
	struct fixture *f = *state;

	asked(f, 100);
	streams_write(f->s, 4 * S, false);
	streams_end(f->s, 6 * S);
	assert_int_equal(told(f, false), 2);
	assert_int_equal(told(f, true), 0);
	assert_int_equal(mark(f)->seen_ns, 6 * S);
}

TEST_WITH(an_answer_that_has_begun_says_so, setup, teardown)
{
	struct fixture *f = *state;
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";

	asked(f, 100);
	data(f, 100, L7_OUT, 0, head, 0, 0, 1 * S + 500 * MS);
	streams_take(f->s, 2 * S);
	streams_write(f->s, 4 * S, false);
	assert_int_equal(told(f, false), 1);
	assert_int_equal(ran(f, 0)->first_ns, 500 * MS);
	assert_int_equal(ran(f, 0)->response_bytes,
			 sizeof(head) - 1); /* of the body nothing has come */
}

TEST_WITH(of_many_requests_the_first_are_told_and_the_rest_is_counted, setup, teardown)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 130; i++)
		asked(f, 1000 + i);
	streams_write(f->s, 4 * S, false);
	assert_int_equal(told(f, false), RUNNING_FRESH);
	assert_int_equal(mark(f)->others, 130 - RUNNING_FRESH);
	streams_write(f->s, 14 * S, false);
	assert_int_equal(mark(f)->others, 0);
}

/* From before the capture: which answer is which is not known, but after the last question none has
 * come. */
TEST_WITH(of_a_connection_that_is_older_what_was_asked_last_runs, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t q = sizeof(Q) - 1, a = sizeof(A) - 1;

	conn(f, 100, L7_SIDE_SERVER, 0, 1 * S);
	for (uint64_t i = 0; i < 3; i++) {
		data(f, 100, L7_IN, 500 + i * q, Q, 0, 0, 1 * S + (int64_t)i * MS);
		if (i < 2)
			data(f, 100, L7_OUT, 900 + i * a, A, 0, 0, 1 * S + (int64_t)i * MS + 1);
	}
	streams_take(f->s, 2 * S);
	streams_write(f->s, 4 * S, false);
	assert_int_equal(told(f, false), 1);
	assert_int_equal(ran(f, 0)->at_ns, 1 * S + 2 * MS);
}
