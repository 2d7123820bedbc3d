/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts: of each protocol, in clear and inside TLS, with records lost and without: seen = parsed
 * + skipped + blind; seen is what was moved; without a loss each request is counted and nothing is
 * blind; after one a request is blind, never an error, and where some are not counted bytes are
 * blind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/l7/streams.h"
#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/store/model/stored.h"
#include "tests/unit/test.h"

#define MS    1000000ll
#define ASKED 30
#define BODY  20000
#define PIECE 4096
#define SEEDS (getenv("SONDE_SOAK") ? 30u : 10u)
#define WIRE  3000 /* what TLS adds to a connection */

struct play {
	struct streams *s;
	struct message_writer to;
	uint64_t results[8];
	struct byte_counts bytes;
	uint64_t pos[2];
	int64_t now;
	bool tls;
	unsigned seed, lose; /* one of so many records is lost; 0: none */
	unsigned lost, run;  /* so far; how many more will be, at once */
	uint8_t side;
	uint32_t id; /* of the last message */
};

static unsigned dice(struct play *p, unsigned of)
{
	p->seed = p->seed * 1103515245u + 12345u;
	return (p->seed >> 16) % of;
}

static void take(void *ctx, const void *packet, size_t size)
{
	struct play *p = ctx;
	struct message m;

	for (size_t at = 0; message_read(packet, size, &at, &m);) {
		if (m.kind == MSG_SUM)
			p->results[m.about->result & 7] += m.sum->n;
		if (m.kind != MSG_BYTES)
			continue;
		assert_int_equal(m.bytes->count.seen, m.bytes->count.parsed +
							      m.bytes->count.skipped +
							      m.bytes->count.blind);
		p->bytes.seen += m.bytes->count.seen;
		p->bytes.blind += m.bytes->count.blind;
		p->bytes.parsed += m.bytes->count.parsed;
	}
}

static struct l7_head head(struct play *p, uint8_t what, uint8_t dir, uint16_t flags)
{
	p->now += MS / 10;
	return (struct l7_head){.sk = 100,
				.ino = 101,
				.at_ns = (uint64_t)p->now,
				.tgid = 7,
				.what = what,
				.dir = dir,
				.flags = flags};
}

static void say(struct play *p, bool client, const char *bytes, size_t n)
{
	uint8_t dir = client == (p->side == L7_SIDE_CLIENT) ? L7_OUT : L7_IN;
	struct {
		struct l7_data d;
		char bytes[PIECE];
	} r;

	for (size_t at = 0, some; at < n; at += some) {
		some = n - at < PIECE ? n - at : 1 + dice(p, PIECE);
		some = some < n - at ? some : n - at;
		r.d = (struct l7_data){.h = head(p, L7_DATA, dir, p->tls ? L7_F_TLS : 0),
				       .pos = p->pos[dir],
				       .size = (uint32_t)some,
				       .len = (uint32_t)some};
		memcpy(r.bytes, bytes + at, some);
		p->pos[dir] += some;
		if (!p->run && p->lose && !dice(p, p->lose))
			p->run = 1 + dice(p, 10);
		if (p->run) {
			p->run--;
			p->lost++;
			continue;
		}
		streams_record(p->s, &r, sizeof(r.d) + some);
	}
}

/* ---- what is said ---- */

static char body[BODY + 64];

static void both(struct play *p, const char *ask, size_t n_ask, const char *before, size_t n_before,
		 const char *after, size_t n_after)
{
	say(p, true, ask, n_ask);
	memcpy(body, before, n_before);
	memset(body + n_before, 'x', BODY);
	memcpy(body + n_before + BODY, after, n_after);
	say(p, false, body, n_before + BODY + n_after);
}
#define BOTH(p_, ask_, before_, after_) \
	both(p_, ask_, sizeof(ask_) - 1, before_, sizeof(before_) - 1, after_, sizeof(after_) - 1)

static void http(struct play *p)
{
	BOTH(p, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
	     "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n", "");
}

static void chunked(struct play *p)
{
	BOTH(p, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
	     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n", "\r\n0\r\n\r\n");
}

static void redis(struct play *p)
{
	BOTH(p, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "$20000\r\n", "\r\n");
}

static void postgres(struct play *p)
{
	if (!p->pos[0] && !p->pos[1]) {
		say(p, true, "\0\0\0\x0e\0\3\0\0user\0\0", 14);
		say(p, false, "R\0\0\0\x08\0\0\0\0Z\0\0\0\5I", 15);
	}
	BOTH(p, "Q\0\0\0\x0dselect 1\0",
	     "T\0\0\0\x1a\0\1a\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\0\0"
	     "D\0\0\x4e\x2a\0\1\0\0\x4e\x20",
	     "C\0\0\0\x0dSELECT 1\0Z\0\0\0\5I");
}

static void mysql(struct play *p)
{
	static const char greeting[] = "4\0\0\0\n8.0.32\0\7\0\0\0"
				       "12345678\0\xff\xff!\2\0\xff\xff\x15\0\0\0\0\0\0\0\0\0\0"
				       "123456789012";
	static const char login[] =
		"&\0\0\1\x85\xa6\x0f\1\0\0\0\1!\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0root\0";

	if (!p->pos[0] && !p->pos[1]) {
		say(p, false, greeting, sizeof(greeting));
		say(p, true, login, sizeof(login));
		say(p, false, "\7\0\0\2\0\0\0\2\0\0\0", 11);
	}
	BOTH(p, "\x09\0\0\0\3select 1",
	     "\1\0\0\1\1\x17\0\0\2\3def\0\0\0\1a\0\x0c?\0\x0b\0\0\0\3\0\0\0\0\0"
	     "\x23\x4e\0\3\xfc\x20\x4e",
	     "\7\0\0\4\xfe\0\0\2\0\0\0");
}

static void http2(struct play *p)
{
	static uint32_t stream;
	char ask[] = "\0\0\3\1\5\0\0\0\0\x82\x84\x86";

	if (!p->pos[0] && !p->pos[1]) {
		stream = 1;
		say(p, true, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
		say(p, false, "\0\0\0\4\0\0\0\0\0", 9);
	}
	ask[8] = (char)stream;
	say(p, true, ask, 12);
	memset(body, 'x', sizeof(body));
	memcpy(body, "\0\0\1\1\4\0\0\0\0\x88\0\x27\x10\0\0\0\0\0\0", 19);
	body[8] = body[18] = (char)stream;
	memcpy(body + 19 + 10000, "\0\x27\x10\0\1\0\0\0\0", 9);
	body[19 + 10000 + 8] = (char)stream;
	say(p, false, body, 19 + 10000 + 9 + 10000);
	stream += 2;
}

/* A question and an answer whose `id` (big or little endian, of `width` bytes) is at these offsets.
 */
struct numbered {
	const char *ask, *before, *after;
	size_t n_ask, n_before, n_after, ask_at, answer_at;
	int width; /* negative: little endian; 0: no id */
};
#define NUMBERED(ask_, ask_at_, before_, answer_at_, after_, width_)                     \
	((struct numbered){ask_, before_, after_, sizeof(ask_) - 1, sizeof(before_) - 1, \
			   sizeof(after_) - 1, ask_at_, answer_at_, width_})

static void id_put(char *to, int width, uint32_t id)
{
	for (int i = 0; i < abs(width); i++)
		to[width < 0 ? i : width - 1 - i] = (char)(id >> 8 * i);
}

static void numbered(struct play *p, struct numbered m)
{
	char ask[256], before[256];

	p->id++;
	memcpy(ask, m.ask, m.n_ask);
	memcpy(before, m.before, m.n_before);
	id_put(ask + m.ask_at, m.width, p->id);
	id_put(before + m.answer_at, m.width, p->id);
	both(p, ask, m.n_ask, before, m.n_before, m.after, m.n_after);
}

static bool first(const struct play *p)
{
	return !p->pos[0] && !p->pos[1];
}
#define SAY(p_, client_, text_) say(p_, client_, text_, sizeof(text_) - 1)

static void grpc(struct play *p)
{
	char ask[] = "\0\0\x20\1\4\0\0\0\0\x83\x86\x04\x06/s.S/C\x41\1h\x5f\x10"
		     "application/grpc"
		     "\0\0\5\0\1\0\0\0\0\0\0\0\0\0";
	char end[] = "\0\0\x0f\1\5\0\0\0\0\0\x0bgrpc-status\1"
		     "0";

	if (first(p)) {
		p->id = 1;
		SAY(p, true, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0");
		SAY(p, false, "\0\0\0\4\0\0\0\0\0");
	}
	ask[2] = 31;
	ask[8] = ask[9 + 31 + 8] = end[8] = (char)p->id;
	say(p, true, ask, sizeof(ask) - 1);
	memset(body, 'x', sizeof(body));
	memcpy(body,
	       "\0\0\x13\1\4\0\0\0\0\x88\x5f\x10"
	       "application/grpc\0\x3a\x98\0\0\0\0\0\0\0\0\0\x3a\x93",
	       28 + 9 + 5);
	body[8] = body[28 + 8] = (char)p->id;
	say(p, false, body, 28 + 9 + 15000);
	say(p, false, end, sizeof(end) - 1);
	p->id += 2;
}

static void kafka(struct play *p)
{
	/* Fetch of version 4: one topic, one partition */
	numbered(p, NUMBERED("\0\0\0\x39\0\1\0\4\0\0\0\0\0\2cl\xff\xff\xff\xff\0\0\1\xf4\0\0\0\1"
			     "\0\x10\0\0\0\0\0\0\1\0\2t1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0",
			     8,
			     "\0\0\x4e\x52\0\0\0\0\0\0\0\0\0\0\0\1\0\2t1\0\0\0\1\0\0\0\0\0\0"
			     "\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\5\0\0\0\0\0\0\x4e\x20",
			     4, "", 4));
}

static void mongo(struct play *p)
{
	numbered(p, NUMBERED("\x38\0\0\0\0\0\0\0\0\0\0\0\xdd\7\0\0\0\0\0\0\0"
			     "\x23\0\0\0\2find\0\7\0\0\0people\0\2$db\0\4\0\0\0app\0\0",
			     4,
			     "\x42\x4e\0\0\1\0\0\0\0\0\0\0\xdd\7\0\0\0\0\0\0\0"
			     "\x2d\x4e\0\0\2d\0\x21\x4e\0\0",
			     8, "\0\0", -4));
}

static void amqp(struct play *p)
{
	if (first(p)) {
		SAY(p, true, "AMQP\0\0\x09\1");
		SAY(p, false, "\1\0\0\0\0\0\x12\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\0\0\0\0\0\xce");
		SAY(p, true, "\1\0\0\0\0\0\x0c\0\x0a\0\x0b\0\0\0\0\0\0\0\0\xce");
		SAY(p, false, "\1\0\0\0\0\0\x0c\0\x0a\0\x1e\0\0\0\0\0\0\0\0\xce");
		SAY(p, true,
		    "\1\0\0\0\0\0\x0c\0\x0a\0\x1f\0\0\0\0\0\0\0\0\xce"
		    "\1\0\0\0\0\0\x08\0\x0a\0\x28\1/\0\0\xce");
		SAY(p, false, "\1\0\0\0\0\0\5\0\x0a\0\x29\0\xce");
		SAY(p, true, "\1\0\1\0\0\0\5\0\x14\0\x0a\0\xce");
		SAY(p, false, "\1\0\1\0\0\0\x08\0\x14\0\x0b\0\0\0\0\xce");
	}
	BOTH(p, "\1\0\1\0\0\0\x09\0\x3c\0\x46\0\0\1q\1\xce",
	     "\1\0\1\0\0\0\x14\0\x3c\0\x47\0\0\0\0\0\0\0\1\0\0\1q\0\0\0\0\xce"
	     "\2\0\1\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\x4e\x20\0\0\xce"
	     "\3\0\1\0\0\x4e\x20",
	     "\xce");
}

static void cassandra(struct play *p)
{
	if (first(p)) {
		SAY(p, true,
		    "\4\0\0\0\1\0\0\0\x16\0\1\0\x0b"
		    "CQL_VERSION\0\5"
		    "3.0.0");
		SAY(p, false, "\x84\0\0\0\2\0\0\0\0");
	}
	BOTH(p, "\4\0\0\5\7\0\0\0\x16\0\0\0\x0fSELECT c FROM t\0\1\0",
	     "\x84\0\0\5\x08\0\0\x4e\x24\0\0\0\2", "");
}

static void zookeeper(struct play *p)
{
	if (first(p)) {
		SAY(p, true,
		    "\0\0\0\x2c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x75\x30\0\0\0\0\0\0\0\0"
		    "\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
		SAY(p, false,
		    "\0\0\0\x24\0\0\0\0\0\0\x75\x30\0\0\0\0\0\0\0\x09\0\0\0\x10"
		    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	}
	numbered(p,
		 NUMBERED("\0\0\0\x11\0\0\0\0\0\0\0\4\0\0\0\4/app\0", 4,
			  "\0\0\x4e\x34\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\x4e\x20", 4, "", 4));
}

static void dubbo(struct play *p)
{
	numbered(p, NUMBERED("\xda\xbb\xc2\0\0\0\0\0\0\0\0\0\0\0\0\x17"
			     "\5"
			     "2.0.2\7com.Foo\3"
			     "1.0\3buy\0",
			     8, "\xda\xbb\2\x14\0\0\0\0\0\0\0\0\0\0\x4e\x21\x92", 8, "", 4));
}

static void fastcgi(struct play *p)
{
	BOTH(p,
	     "\1\1\0\1\0\x08\0\0\0\1\1\0\0\0\0\0\1\4\0\1\0\x23\0\0\x0e\3REQUEST_METHODGET"
	     "\x0b\1REQUEST_URI/\0\0"
	     "\1\4\0\1\0\0\0\0\1\5\0\1\0\0\0\0",
	     "\1\6\0\1\x4e\x35\0\0Content-Type: a/b\r\n\r\n",
	     "\1\6\0\1\0\0\0\0\1\3\0\1\0\x08\0\0\0\0\0\0\0\0\0\0");
}

static void memcached(struct play *p)
{
	BOTH(p, "get k\r\n", "VALUE k 0 20000\r\n", "\r\nEND\r\n");
}

static void mqtt(struct play *p)
{
	if (first(p)) {
		SAY(p, true, "\x10\x0d\0\4MQTT\4\2\0<\0\1a");
		SAY(p, false, "\x20\2\0\0");
	}
	p->id++;
	memset(body, 'x', sizeof(body));
	memcpy(body, "\x32\xa7\x9c\1\0\5topic\0\0", 13);
	id_put(body + 11, 2, p->id);
	say(p, true, body, 13 + BODY - 2);
	memcpy(body, "\x40\2\0\0", 4);
	id_put(body + 2, 2, p->id);
	say(p, false, body, 4);
}

static void nats(struct play *p)
{
	char ask[64], before[64];

	if (first(p)) {
		SAY(p, false, "INFO {\"server_id\":\"x\"}\r\n");
		SAY(p, true, "CONNECT {}\r\nSUB _INBOX.* 1\r\n");
	}
	p->id++;
	snprintf(ask, sizeof(ask), "PUB a.b _INBOX.%u 2\r\nhi\r\n", p->id);
	snprintf(before, sizeof(before), "MSG _INBOX.%u 1 20000\r\n", p->id);
	both(p, ask, strlen(ask), before, strlen(before), "\r\n", 2);
}

/* Over TCP; an answer of one text */
static void dns(struct play *p)
{
	char ask[] = "\0\x1b\0\0\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\x10\0\1";
	static const char answer[] = "\x3e\xa7\0\0\x81\x80\0\1\0\1\0\0\0\0\1a\7example\0\0\x10\0\1"
				     "\xc0\x0c\0\x10\0\1\0\0\0\x3c\x3e\x80";

	p->id++;
	id_put(ask + 2, 2, p->id);
	memset(body, 'x', sizeof(body));
	memcpy(body, answer, sizeof(answer) - 1);
	id_put(body + 2, 2, p->id);
	say(p, true, ask, sizeof(ask) - 1);
	say(p, false, body, sizeof(answer) - 1 + 16000);
}

/* A zone, in two messages */
static void zone(struct play *p)
{
	char ask[] = "\0\x1b\0\0\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\xfc\0\1";
	static const char answer[] = "\x3e\xa7\0\0\x81\x80\0\1\0\1\0\0\0\0\1a\7example\0\0\xfc\0\1"
				     "\xc0\x0c\0\x10\0\1\0\0\0\x3c\x3e\x80";

	p->id++;
	id_put(ask + 2, 2, p->id);
	memset(body, 'x', sizeof(body));
	memcpy(body, answer, sizeof(answer) - 1);
	id_put(body + 2, 2, p->id);
	say(p, true, ask, sizeof(ask) - 1);
	say(p, false, body, sizeof(answer) - 1 + 16000);
	say(p, false, body, sizeof(answer) - 1 + 16000);
}

static void clickhouse(struct play *p)
{
	if (first(p)) {
		SAY(p, true,
		    "\x00\x18\x43lickHouse python-driver\x14\x0a\xc4\xa9\x03\x00\x02me\x02pw");
		SAY(p, false,
		    "\x00\x0a\x43lickHouse\x17\x08\xc4\xa9\x03\x03UTC\x04here\x01\x01\x04^.+$"
		    "\x03one\x11\x11\x11\x11\x11\x11\x11\x11");
		SAY(p, true, "\x00");
	}
	BOTH(p,
	     "\x01\x00\x01\x00\x00\x09\x30.0.0.0:0K\x07\xa7l\x0a\x61\x06\x00\x01\x02me\x02pc"
	     "\x18\x43lickHouse python-driver\x14\x0a\xc4\xa9\x03\x00\x00\x02\x01\x9c"
	     "1\x80\x1c!\xebH\x84\xdd\x43\xcd\x16\x19\x65\xf7\x0a\x31\x33 iqk\xad\xb7\x00\x01"
	     "\x00\x00\x00\x0emax_block_size\x00\x04\x31\x30\x30\x30\x00\x00\x02\x00\x08"
	     "SELECT s\x00\x02\x00\x01\x00\x02\xff\xff\xff\xff\x00\x00\x00",
	     "\x01\x00\x01\x00\x02\xff\xff\xff\xff\x00\x01\x01\x01s\x06String\x00\xa0\x9c\x01",
	     "\x05");
}

/* Its packets have a checksum in clear, and none inside TLS. */
static void foundationdb(struct play *p)
{
	static const char hello[] = "(\0\0\0\0\0\1q\xb0\0\xdb\x1f\0\0\1\0\0\0\0\0\0\0\x7f\0\0"
				    "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	/* GetValue behind the checksum, and its reply */
	char ask[] =
		"\x09\x0e\xf6\xe5\xd4\xc3\xb2\xa1\x84\3\0\0xV4\x12 \0\0\0\x82\1\x81\0\6\0\x08\0"
		"\4\0\x0a\0\x14\0\4\0\x0c\0\x10\0\6\0\x14\0\4\0\0\0\x18\0\0\0\4\0\0\0\x1a\0\0\0"
		"********\x08\0\0\0\1\0\0\0$\0\0\0\4\7\xf6\xe5\xd4\xc3\xb2\xa1\2\0\0\0xV4\x12";
	char before[] =
		"\4\7\xf6\xe5\xd4\xc3\xb2\xa1\2\0\0\0xV4\x12\x18\0\0\0q\x0a\x15\2\x08\0\x09\0"
		"\x08\0\4\0\6\0\x0c\0\4\0\0\0\x10\0\0\0\x08\0\0\0\2\0\0\0\x14\0\0\0"
		"cccccccc";
	char packet[256] = {0};
	const size_t sum = p->tls ? 0 : 8, n_ask = sizeof(ask) - 1, n_before = sizeof(before) - 1;

	if (first(p)) {
		say(p, true, hello, 44);
		say(p, false, hello, 44);
	}
	p->id++;
	id_put(ask + n_ask - 15, 2, p->id);
	id_put(before + 1, 2, p->id);
	id_put(packet, -4, (uint32_t)n_ask);
	memcpy(packet + 4 + sum, ask, n_ask);
	say(p, true, packet, 4 + sum + n_ask);
	memset(body, 'x', sizeof(body));
	id_put(body, -4, (uint32_t)n_before + 15000);
	memcpy(body + 4 + sum, before, n_before);
	say(p, false, body, 4 + sum + n_before + 15000);
}

static const struct said {
	const char *name;
	void (*ask)(struct play *p);
	unsigned more; /* requests beside those asked for */
} said[] = {{"http", http, 0},
	    {"chunked", chunked, 0},
	    {"http2", http2, 0},
	    {"grpc", grpc, 0},
	    {"postgres", postgres, 1},
	    {"mysql", mysql, 1},
	    {"redis", redis, 0},
	    {"kafka", kafka, 0},
	    {"mongodb", mongo, 0},
	    {"amqp", amqp, 2},
	    {"cassandra", cassandra, 1},
	    {"zookeeper", zookeeper, 1},
	    {"dubbo", dubbo, 0},
	    {"fastcgi", fastcgi, 0},
	    {"memcached", memcached, 0},
	    {"mqtt", mqtt, 1},
	    {"nats", nats, 0},
	    {"dns", dns, 0},
	    {"zone", zone, 0},
	    {"clickhouse", clickhouse, 1},
	    {"foundationdb", foundationdb, 0}};

/* ---- the accounts ---- */

static void play(struct play *p, const struct said *what, unsigned seed)
{
	struct l7_conn c = {.start_ns = 5,
			    .family = AF_INET,
			    .protocol = 6,
			    .lport = 8080,
			    .dport = 40000,
			    .side = p->side};
	struct l7_end end = {0};

	p->seed = seed;
	p->now = 1000 * MS;
	p->to = (struct message_writer){.send = take, .ctx = p};
	p->s = streams_new(NULL, &p->to, 1, 0);
	c.h = head(p, L7_CONN, 0, L7_F_BEGUN);
	streams_record(p->s, &c, sizeof(c));
	for (unsigned i = 0; i < ASKED; i++) {
		what->ask(p);
		streams_take(p->s, p->now);
		if (i % 10 == 9)
			streams_write(p->s, p->now, false);
	}
	end.h = head(p, L7_END, 0, 0);
	for (int i = 0; i < 2; i++) {
		end.tls_pos[i] = p->tls ? p->pos[i] : 0;
		end.pos[i] = p->pos[i] + (p->tls ? WIRE : 0);
	}
	streams_record(p->s, &end, sizeof(end));
	streams_end(p->s, p->now + 100 * MS);
	streams_free(p->s);
}

static void check(const struct play *p, const struct said *what)
{
	uint64_t asked = ASKED + what->more, ok = p->results[STORE_RESULT_OK],
		 blind = p->results[STORE_RESULT_BLIND],
		 one_way = p->results[STORE_RESULT_ONE_WAY]; /* an answer by a subject, in NATS */

	assert_int_equal(p->bytes.seen, p->pos[0] + p->pos[1] + (p->tls ? 2 * WIRE : 0));
	assert_int_equal(p->results[STORE_RESULT_NO_ANSWER], 0);
	assert_int_equal(p->results[STORE_RESULT_ERROR], 0);
	assert_true(ok + blind <= asked);
	if (!p->lost) {
		assert_int_equal(ok, asked);
		assert_int_equal(p->bytes.blind, 0);
		assert_true(p->bytes.parsed >= p->pos[0] + p->pos[1]);
	} else if (ok + blind + one_way < asked) {
		uint64_t not_counted = asked - ok - blind - one_way;

		assert_true(p->bytes.blind);
		if (not_counted > what->more) /* those of the login are small */
			assert_true(p->bytes.blind >= (not_counted - what->more) * BODY / 2);
	}
}

TEST(of_each_protocol_each_byte_has_one_account)
{
	for (size_t w = 0; w < ARRAY_SIZE(said); w++)
		for (unsigned seed = 0; seed < SEEDS; seed++)
			for (int how = 0; how < 4; how++) {
				struct play p = {.tls = how & 1,
						 .side = how & 2 ? L7_SIDE_CLIENT : L7_SIDE_SERVER,
						 .lose = seed % 3 ? 5 * seed : 0};

				play(&p, &said[w], seed);
				check(&p, &said[w]);
			}
}
