/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is found by its socket's address, a datagram's also by the remote end. */
#include "loaders/l7/streams.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/l7/inorder.h"
#include "loaders/l7/running.h"
#include "loaders/l7/serving.h"
#include "loaders/l7/stream.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"

#define EARLY_MOST   16384 /* bytes of a piece that waits for its connection's record */
#define SILENT_CALLS 64    /* datagrams of an unknown protocol after which a socket is not copied */
#define BULK_LEAST   1024  /* bytes of a large call */
#define BULK_CALLS   8
#define BULK_LIMIT   512
#define LINKED_NS    (60ll * 1000000000) /* links are kept this long after the last tagged request */
#define SKIP_LEAST   32768 /* a smaller body has passed by when the probes hear of it */

struct streams {
	struct protocols *protocols;
	struct message_writer *to;
	struct sums *sums;
	struct running *running;
	struct serving *serving;
	struct l7_want *wants;
	struct inorder hold;
	struct idmap by_key; /* key -> struct stream * */
	struct stream *newest, *oldest;
	size_t n;
	int64_t taken_ns; /* records up to this time are taken */
	int64_t now_ns, offset_ns;
	int64_t tagged_ns; /* of the last request made while another one was served; 0: none */
	struct streams_stat stat;
};

static void emit(void *ctx, const struct proto_request *r);

/* ---- connections ---- */

static struct stream *find(const struct streams *s, uint64_t key)
{
	uint64_t at;

	return idmap_get(&s->by_key, key, &at) ? (struct stream *)(uintptr_t)at : NULL;
}

static void age_unlink(struct streams *s, struct stream *x)
{
	*(x->newer ? &x->newer->older : &s->newest) = x->older;
	*(x->older ? &x->older->newer : &s->oldest) = x->newer;
	x->newer = x->older = NULL;
}

static void age_link(struct streams *s, struct stream *x)
{
	x->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = x;
	s->newest = x;
}

static struct l7_want *want_of(const struct streams *s, const struct stream *x)
{
	return s->wants ? &s->wants[L7_WANT_SLOT(x->sk)] : NULL;
}

static uint32_t want_side(const struct stream *x)
{
	return stream_side(x) == L7_SIDE_SERVER ? L7_WANT_SERVER : L7_WANT_CLIENT;
}

/* The inode is cleared first and set last: the probe never uses a half-written entry. */
static void want_set(const struct streams *s, const struct stream *x, uint32_t flags,
		     uint64_t until_out, uint64_t until_in)
{
	struct l7_want *w = want_of(s, x);
	bool known = x->conn && *proto_conn_protocol(x->conn);

	if (!w)
		return;
	__atomic_store_n(&w->ino, 0, __ATOMIC_RELEASE);
	w->until[L7_OUT] = until_out;
	w->until[L7_IN] = until_in;
	for (int i = 0; i < 2; i++)
		w->limit[i] =
			known ? (uint16_t)((x->limit[i] + L7_LIMIT_UNIT - 1) / L7_LIMIT_UNIT) : 0;
	w->flags = flags | (x->tls ? L7_WANT_TLS : 0) | (known ? want_side(x) : 0);
	__atomic_store_n(&w->ino, x->ino, __ATOMIC_RELEASE);
	__atomic_fetch_add(&s->wants[L7_WANTS].ino, 1, __ATOMIC_RELEASE);
}

/* Later connections to this port are copied whole from their first call on (L7_FIRST). */
static void port_set(const struct streams *s, uint16_t port, bool speaks)
{
	uint8_t *bits = s->wants ? (uint8_t *)&s->wants[L7_WANT_PORTS] : NULL,
		bit = (uint8_t)(1 << (port & 7));

	if (bits && port && (bits[port >> 3] & bit) != (speaks ? bit : 0))
		bits[port >> 3] ^= bit;
}

static void drop(struct streams *s, struct stream *x, bool ended);
static void early_lose(struct streams *s, struct stream *x);

/* The connected peer's flow ends with the socket; others end by silence. */
static void datagram_end(struct streams *s, const struct stream *sock)
{
	struct stream *x =
		sock->dport ? find(s, stream_datagram_key(sock, &(struct l7_data){0})) : NULL;

	if (x && x->datagram)
		drop(s, x, true);
}

/* `ended`: the connection did, and was seen to. */
static void drop(struct streams *s, struct stream *x, bool ended)
{
	struct l7_want *w = want_of(s, x);

	early_lose(s, x);
	if (x->described && !x->datagram)
		datagram_end(s, x);
	serving_counts(s->serving, &x->serving, false, s->now_ns);
	if (x->conn && ended)
		proto_conn_close(x->conn, s->now_ns);
	else if (x->conn)
		proto_conn_stop(x->conn, s->now_ns);
	stream_report(x, s->sums, s->now_ns, true);
	if (w && w->ino == x->ino)
		__atomic_store_n(&w->ino, 0, __ATOMIC_RELEASE);
	idmap_del(&s->by_key, x->key);
	age_unlink(s, x);
	s->n--;
	stream_free(x);
}

static struct stream *stream_new(struct streams *s, uint64_t key, const struct l7_head *h)
{
	struct stream *x = mem_alloc(sizeof(*x));

	if (s->n >= STREAMS_MOST) {
		s->stat.evicted++;
		drop(s, s->oldest, false);
	}
	x->limit[0] = x->limit[1] = L7_LIMIT_MOST;
	x->key = key;
	x->sk = h->sk;
	x->ino = h->ino;
	idmap_set(&s->by_key, key, (uint64_t)(uintptr_t)x);
	age_link(s, x);
	s->n++;
	return x;
}

/* The stream of a record's socket; a new one if the address was reused for another socket. */
static struct stream *stream_of(struct streams *s, const struct l7_head *h)
{
	struct stream *x = find(s, h->sk);

	if (x && x->ino != h->ino) {
		drop(s, x, false);
		x = NULL;
	}
	if (!x)
		x = stream_new(s, h->sk, h);
	if ((int64_t)h->at_ns > x->last_ns)
		x->last_ns = (int64_t)h->at_ns;
	age_unlink(s, x);
	age_link(s, x);
	return x;
}

/* ---- descriptions ---- */

static void take_conn(struct streams *s, const struct l7_conn *c)
{
	struct stream *x = stream_of(s, &c->h);
	bool first = !x->described;

	if (!first)
		stream_report(x, s->sums, s->now_ns,
			      true); /* bytes so far belong to the previous process */
	x->process = (struct msg_process){
		.start_ns = c->start_ns, .tgid = c->h.tgid, .exec_id = c->exec_id};
	x->tid = c->h.tid;
	if (!first)
		return;
	s->stat.connections++;
	x->first_ns = (int64_t)c->h.at_ns;
	if (c->side == L7_SIDE_CLIENT) {
		x->opened_for = serving_only(s->serving, c->h.tid);
		serving_asks(s->serving, c->h.tid, (int64_t)c->h.at_ns);
	}
	x->described = true;
	x->begun = c->h.flags & L7_F_BEGUN && !x->lost;
	stream_ends_set(x, c);
	if (x->asked && want_of(s, x))
		want_set(s, x, 0, 0, 0);
}

/* ---- bytes ---- */

static uint16_t server_port(const struct stream *x)
{
	return x->side == L7_SIDE_SERVER ? x->lport : x->dport;
}

static void conn_ready(struct streams *s, struct stream *x, bool begun)
{
	if (!x->conn)
		x->conn = proto_conn_new(s->protocols, begun, x->datagram, server_port(x), x);
}

/* Its protocol is unknown: it is not copied any more. */
static void silence(struct streams *s, struct stream *x)
{
	proto_conn_free(x->conn);
	x->conn = NULL;
	x->silent = true;
	serving_counts(s->serving, &x->serving, false, s->now_ns);
	port_set(s, server_port(x), false);
	want_set(s, x, L7_WANT_NOTHING, 0, 0);
}

static void skip_set(struct streams *s, struct stream *x, enum proto_side from, uint8_t dir,
		     uint64_t pos)
{
	uint64_t n = proto_conn_skips(x->conn, from), until[2] = {0};
	const struct l7_want *w = want_of(s, x);
	bool first = !w || w->ino != x->ino;

	if (!first) {
		until[0] = w->until[0];
		until[1] = w->until[1];
	}
	if (n >= SKIP_LEAST)
		until[dir] = n > (1ull << 62) ? 1ull << 62 : pos + n;
	want_set(s, x, 0, until[0], until[1]);
}

/*
 * How much of a call the probes copy: after BULK_CALLS large calls in a row of which less than half
 * was read, twice what was read; else all. After a limit was too small once, always all. true: the
 * limit changes.
 */
static bool limit_changes(struct stream *x, const struct l7_data *d)
{
	size_t needed = proto_conn_needed(x->conn);
	uint32_t *most = &x->needed[d->h.dir], *limit = &x->limit[d->h.dir], was = *limit;

	if (x->whole || x->datagram)
		return false;
	if (d->len < d->size && needed == d->len) {
		x->whole = was < L7_LIMIT_MOST;
		*limit = L7_LIMIT_MOST;
		return x->whole;
	}
	if (d->size < BULK_LEAST)
		return false;
	if (2 * needed > d->len) {
		*most = 0;
		x->calls[d->h.dir] = 0;
		*limit = L7_LIMIT_MOST;
		return was < *limit;
	}
	*most = needed > *most ? (uint32_t)needed : *most;
	if (++x->calls[d->h.dir] < BULK_CALLS)
		return false;
	*limit = *most < BULK_LIMIT / 2    ? BULK_LIMIT :
		 2 * *most < L7_LIMIT_MOST ? 2 * *most :
					     L7_LIMIT_MOST;
	*most = 0;
	x->calls[d->h.dir] = 0;
	return *limit < was / 2 || *limit > was;
}

/*
 * For which request the probe's tag makes it. A thread tells nothing while it has several open, or
 * where threads hand them over; nor does the opener of the connection, unless to open it was the
 * next that it did after the read.
 */
static enum link_how how_asked(const struct streams *s, const struct stream *x,
			       const struct l7_data *d)
{
	int64_t at_ns = (int64_t)d->h.at_ns;
	bool own = d->h.flags & L7_F_LOOP && serving_own(s->serving, d->h.tid, at_ns);

	if (d->tag & TABLES_TAG_GOROUTINE)
		return d->h.flags & (L7_F_SERVES | L7_F_OPENER) ? LINK_BY_GOROUTINE : LINK_SEVERAL;
	if (serving_apart(s->serving, d->h.tgid, at_ns))
		return LINK_SEVERAL;
	if (d->h.flags & L7_F_SERVES && !own && serving_alone(s->serving, d->h.tid, d->tag))
		return LINK_BY_THREAD;
	if (d->h.flags & L7_F_OPENER &&
	    (d->h.flags & L7_F_NEXT || (!own && x->opened_for == d->tag)))
		return LINK_BY_OPENER;
	return LINK_SEVERAL;
}

static void asks_note(struct streams *s, struct stream *x, const struct l7_data *d)
{
	enum link_how how;

	if (d->seq && !x->tls) {
		x->seq0[d->h.dir] = d->seq - (uint32_t)d->pos;
		x->seq_known[d->h.dir] = true;
	}
	if (d->h.dir != L7_OUT || !x->described || stream_side(x) != L7_SIDE_CLIENT)
		return;
	if (!x->datagram)
		serving_asks(s->serving, d->h.tid, (int64_t)d->h.at_ns);
	if (!d->tag)
		return;
	if (!x->asks)
		x->asks = mem_alloc(sizeof(*x->asks));
	how = how_asked(s, x, d);
	x->asks->of[x->asks->n % ASKS].at_ns = (int64_t)d->h.at_ns;
	x->asks->of[x->asks->n % ASKS].tag = how == LINK_SEVERAL ? 0 : d->tag;
	x->asks->of[x->asks->n++ % ASKS].how = (uint8_t)how;
	if (how != LINK_SEVERAL)
		s->tagged_ns = s->now_ns;
}

/* Of a server's end: its thread has this request open, until it is answered. */
static void serving_note(struct streams *s, struct stream *x, const struct l7_data *d)
{
	bool server = stream_side(x) == L7_SIDE_SERVER, known = *proto_conn_protocol(x->conn);
	int64_t at_ns = (int64_t)d->h.at_ns;

	if (server && d->h.dir == L7_IN)
		serving_reads(s->serving, &x->serving, d->h.tgid, d->h.tid, at_ns);
	else if (server)
		serving_writes(s->serving, &x->serving, d->h.tid, at_ns);
	serving_counts(s->serving, &x->serving,
		       server && (proto_conn_open(x->conn) || (!known && x->serving.tag)), at_ns);
}

static void feed(struct streams *s, struct stream *x, const struct l7_data *d, uint64_t *pos)
{
	enum proto_side from =
		(d->h.dir == L7_IN) == (x->side == L7_SIDE_SERVER) ? PROTO_CLIENT : PROTO_SERVER;
	const struct proto_piece piece = {.from = from,
					  .pos = d->pos,
					  .at_ns = (int64_t)d->h.at_ns,
					  .came_ns = (int64_t)d->came_ns,
					  .together = d->h.flags & L7_F_TOGETHER,
					  .bytes = (const uint8_t *)(d + 1),
					  .len = d->len,
					  .size = d->size};
	bool was = *proto_conn_protocol(x->conn), changes;

	asks_note(s, x, d);
	if (!x->datagram && d->pos > *pos) {
		x->lost += x->met[d->h.dir] ? 0 : d->pos - *pos; /* before its first piece */
		x->torn = x->torn || !was;
	}
	x->met[d->h.dir] = true;
	proto_conn_feed(x->conn, &piece);
	if (!x->datagram)
		serving_note(s, x, d);
	x->copied += d->len;
	if (d->pos + d->size > *pos)
		*pos = d->pos + d->size;
	if (proto_conn_hopeless(x->conn) && !x->datagram) {
		silence(s, x);
		return;
	}
	if (!was && *proto_conn_protocol(x->conn) && !x->datagram)
		port_set(s, server_port(x), true);
	changes = *proto_conn_protocol(x->conn) && limit_changes(x, d);
	if (!x->datagram && *proto_conn_protocol(x->conn) &&
	    (!was || changes || proto_conn_skips(x->conn, from) >= SKIP_LEAST))
		skip_set(s, x, from, d->h.dir, *pos);
}

/*
 * From now on its clear text comes from the TLS library. If that begins with what the server said,
 * a question was not read: the client's records of data are blind.
 */
static void tls_begin(struct streams *s, struct stream *x, const struct l7_data *first)
{
	struct proto_conn *outer = x->conn;
	bool asked = (first->h.dir == L7_IN) == (x->side == L7_SIDE_SERVER);

	if (outer && !asked && !strcmp(proto_conn_protocol(outer), "tls"))
		x->lost += proto_conn_blind_bytes_of(outer, PROTO_CLIENT);
	serving_counts(s->serving, &x->serving, false, s->now_ns);
	x->conn = NULL;
	x->tls = true;
	x->silent = false;
	x->outer = x->pos[0] + x->pos[1];
	x->met[0] = x->met[1] = false;
	conn_ready(s, x, x->begun && !first->pos);
	if (outer && x->begun && !first->pos)
		proto_conn_inside(x->conn, outer);
	proto_conn_free(outer);
}

static void datagram_remote(const struct stream *sock, const struct l7_data *d, struct stream *x)
{
	x->described = true;
	x->datagram = true;
	x->process = sock->process;
	x->family = d->port ? d->family : sock->family;
	x->lport = sock->lport;
	x->dport = d->port ? d->port : sock->dport;
	memcpy(x->local, sock->local, sizeof(x->local));
	memcpy(x->peer, d->port ? d->remote : sock->peer, sizeof(x->peer));
	if (d->h.dir == L7_IN)
		x->side = x->dport < 1024 && x->lport >= 1024 ? L7_SIDE_CLIENT : L7_SIDE_SERVER;
	else
		x->side = x->lport < 1024 && x->dport >= 1024 ? L7_SIDE_SERVER : L7_SIDE_CLIENT;
}

static void take_datagram(struct streams *s, struct stream *sock, const struct l7_data *d)
{
	uint64_t key = stream_datagram_key(sock, d);
	struct stream *x = find(s, key);

	sock->pos[d->h.dir] = 0; /* bytes are counted by flow */
	if (!x) {
		x = stream_new(s, key, &d->h);
		datagram_remote(sock, d, x);
		s->stat.datagram_flows++;
	}
	x->last_ns = (int64_t)d->h.at_ns;
	x->tid = d->h.tid;
	age_unlink(s, x);
	age_link(s, x);
	conn_ready(s, x, false);
	x->pos[d->h.dir] += d->size;
	feed(s, x, d, &(uint64_t){0});
	if (*proto_conn_protocol(x->conn))
		sock->datagrams = 0;
	else if (++sock->datagrams > SILENT_CALLS)
		want_set(s, sock, L7_WANT_NOTHING, 0, 0);
}

static void describe(struct streams *s, struct stream *x, const struct l7_data *d)
{
	uint64_t *pos = d->h.flags & L7_F_TLS ? &x->tls_pos[d->h.dir] : &x->pos[d->h.dir];

	if (d->pos + d->size > *pos) {
		x->lost += d->pos + d->size - *pos;
		*pos = d->pos + d->size;
	}
	x->asked = true;
	want_set(s, x, L7_WANT_CONN, 0, 0);
}

/* Clear text has the time at which it was written, and its socket is known, and the connection
 * described, when its record is written after that: the first one of a connection that is older
 * than the recording waits here for the description. */
static bool early_keep(struct streams *s, struct stream *x, const struct l7_data *d)
{
	const size_t size = sizeof(*d) + d->len;

	if (x->early || x->asked || !(d->h.flags & L7_F_TLS) || d->pos || d->len > EARLY_MOST)
		return false;
	x->early = mem_alloc(size);
	memcpy(x->early, d, size);
	x->asked = true;
	want_set(s, x, L7_WANT_CONN, 0, 0);
	return true;
}

/* No description came before its next bytes, or its end. */
static void early_lose(struct streams *s, struct stream *x)
{
	struct l7_data *d = x->early;

	x->early = NULL;
	if (d)
		describe(s, x, d);
	free(d);
}

static void take_data(struct streams *s, const struct l7_data *d)
{
	struct stream *x = stream_of(s, &d->h);
	bool tls = d->h.flags & L7_F_TLS;

	x->tid = d->h.tid;
	if (!x->described) {
		if (early_keep(s, x, d))
			return;
		early_lose(s, x);
		describe(s, x, d);
		return;
	}
	if (d->h.flags & L7_F_DATAGRAM) {
		take_datagram(s, x, d);
		return;
	}
	if (tls && !x->tls)
		tls_begin(s, x, d);
	x->tls_calls += tls;
	if (x->silent || x->tls != tls) {
		uint64_t *pos = tls ? &x->tls_pos[d->h.dir] : &x->pos[d->h.dir];

		*pos = d->pos + d->size > *pos ? d->pos + d->size : *pos;
		return;
	}
	conn_ready(s, x, x->begun && !d->pos);
	feed(s, x, d, tls ? &x->tls_pos[d->h.dir] : &x->pos[d->h.dir]);
	if (d->h.flags & L7_F_FAULT && !(x->conn && *proto_conn_protocol(x->conn)))
		x->lost += d->size - d->len;
}

static void early_take(struct streams *s, const struct l7_head *h)
{
	struct stream *x = find(s, h->sk);
	struct l7_data *d = x && x->described ? x->early : NULL;

	if (!d)
		return;
	x->early = NULL;
	take_data(s, d);
	free(d);
}

/* ---- ends ---- */

/* Bytes up to the end of a direction that no record has. */
static void rest_take(struct stream *x, const struct l7_end *e, int dir, bool server)
{
	uint64_t *pos = x->tls ? &x->tls_pos[dir] : &x->pos[dir],
		 end = x->tls ? e->tls_pos[dir] : e->pos[dir];
	const struct proto_piece gap = {.from = (dir == L7_IN) == server ? PROTO_CLIENT :
									   PROTO_SERVER,
					.pos = *pos,
					.bytes = (const uint8_t *)"",
					.at_ns = (int64_t)e->h.at_ns,
					.size = end > *pos ? end - *pos : 0};

	x->torn = x->torn || (gap.size && !x->silent && !x->datagram);
	if (gap.size && x->conn)
		proto_conn_feed(x->conn, &gap);
	*pos += gap.size;
	x->pos[dir] = e->pos[dir] > x->pos[dir] ? e->pos[dir] : x->pos[dir];
}

static void take_end(struct streams *s, const struct l7_end *e)
{
	struct stream *x = find(s, e->h.sk);
	bool server;

	if (!x || x->ino != e->h.ino)
		return;
	server = x->side == L7_SIDE_SERVER;
	for (int i = 0; i < 2; i++)
		if (e->h.what == L7_END || e->h.dir == i)
			rest_take(x, e, i, server);
	if (e->h.what == L7_END) {
		s->now_ns = (int64_t)e->h.at_ns;
		drop(s, x, true);
	} else if (x->conn && !x->datagram) {
		proto_conn_end(x->conn, (e->h.dir == L7_IN) == server ? PROTO_CLIENT : PROTO_SERVER,
			       (int64_t)e->h.at_ns);
	}
}

/* ---- records ---- */

static bool sound(const void *record, size_t size)
{
	const struct l7_head *h = record;
	const struct l7_data *d = record;

	if (size < sizeof(*h) || h->dir > L7_IN)
		return false;
	if (h->what == L7_CONN)
		return size >= sizeof(struct l7_conn) &&
		       ((const struct l7_conn *)record)->path_len <= L7_PATH &&
		       ((const struct l7_conn *)record)->side <= L7_SIDE_SERVER;
	if (h->what == L7_DATA)
		return size >= sizeof(*d) && d->len <= size - sizeof(*d) && d->len <= d->size &&
		       d->pos < 1ull << 62;
	return (h->what == L7_EOF || h->what == L7_END) && size >= sizeof(struct l7_end);
}

void streams_record(struct streams *s, const void *record, size_t size)
{
	int64_t at_ns;

	s->stat.records++;
	if (!sound(record, size)) {
		s->stat.malformed++;
		return;
	}
	at_ns = (int64_t)((const struct l7_head *)record)->at_ns;
	s->stat.late += at_ns < s->taken_ns;
	inorder_put(&s->hold, record, size, at_ns);
	if (s->hold.len > HOLD_BYTES)
		streams_take(s, INT64_MAX);
}

static void take(void *ctx, const void *record, size_t size)
{
	const struct l7_head *h = record;
	struct streams *s = ctx;

	(void)size;
	s->now_ns = (int64_t)h->at_ns > s->now_ns ? (int64_t)h->at_ns : s->now_ns;
	if (h->what == L7_CONN) {
		take_conn(s, record);
		early_take(s, h);
	} else if (h->what == L7_DATA) {
		take_data(s, record);
	} else {
		take_end(s, record);
	}
}

void streams_take(struct streams *s, int64_t now_ns)
{
	int64_t until = now_ns == INT64_MAX ? now_ns : now_ns - HOLD_NS;

	inorder_take(&s->hold, until, take, s);
	s->taken_ns = until > s->taken_ns && until != INT64_MAX ? until : s->taken_ns;
}

/* ---- requests ---- */

/*
 * The id that both ends of a connection give one request: by TCP's sequence number of its first
 * byte. Inside TLS there is no id: if the two libraries were not read from the same byte on, two
 * requests would get one id.
 */
static uint64_t exchange_of(const struct stream *x, uint8_t side, uint64_t pos)
{
	int dir = side == L7_SIDE_CLIENT ? L7_OUT : L7_IN;

	if (!x->ends || x->datagram || x->tls || !x->seq_known[dir])
		return 0;
	return link_id(hash_u64(x->ends, x->seq0[dir] + (uint32_t)pos));
}

static void tag_of(const struct stream *x, int64_t begin_ns, struct sums_of *of)
{
	if (of->side != L7_SIDE_CLIENT || !x->asks)
		return;
	for (uint32_t i = 0; i < ASKS; i++)
		if (x->asks->of[i].how && x->asks->of[i].at_ns == begin_ns) {
			of->tag = x->asks->of[i].tag;
			of->how = x->asks->of[i].how;
		}
}

/* What one request is called while it runs. */
static uint64_t running_id(const struct stream *x, const struct proto_request *r)
{
	uint64_t h = hash_u64(hash_u64(HASH_SEED, x->key), x->ino);

	return link_id(hash_u64(hash_u64(h, (uint64_t)r->begin_ns), r->begin_pos));
}

static void emit(void *ctx, const struct proto_request *r)
{
	struct streams *s = ctx;
	struct stream *x = r->user;
	struct sums_of of = stream_sums_of(x);

	if (r->result != PROTO_OPENED && running_any(s->running))
		running_over(s->running, running_id(x, r), r, s->now_ns);
	x->blind_requests += r->result == PROTO_BLIND;
	if (r->result == PROTO_OK)
		port_set(s, server_port(x), !x->datagram);
	of.alone = x->conn && !proto_conn_open(x->conn) && r->begin_ns > x->busy_ns;
	x->busy_ns = r->end_ns > x->busy_ns ? r->end_ns : x->busy_ns;
	of.exchange = exchange_of(x, of.side, r->begin_pos);
	tag_of(x, r->begin_ns, &of);
	of.linked = s->tagged_ns && s->now_ns < s->tagged_ns + LINKED_NS;
	sums_request(s->sums, &of, r);
}

/* What a name server answers to others is not its own lookup. */
static void named(void *ctx, const struct proto_named *n)
{
	struct streams *s = ctx;
	struct sums_of of = stream_sums_of(n->user);
	char address[INET6_ADDRSTRLEN] = "";

	if (of.side == L7_SIDE_CLIENT &&
	    inet_ntop(n->len == 4 ? AF_INET : AF_INET6, n->address, address, sizeof(address)))
		sums_named(s->sums, &of, n->name, address, n->at_ns);
}

static struct running_client client_of(const struct stream *x, uint8_t side)
{
	bool here = side == L7_SIDE_CLIENT;
	struct running_client c = {.port = here ? x->lport : x->dport};
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *at = here ? x->local : x->peer;
	bool v4 = x->family == AF_INET6 && !memcmp(at, mapped, sizeof(mapped));

	if (x->family == AF_INET || x->family == AF_INET6)
		inet_ntop(v4 ? AF_INET : x->family, v4 ? at + 12 : at, c.address,
			  sizeof(c.address));
	return c;
}

static void runs(void *ctx, const struct proto_request *r)
{
	struct streams *s = ctx;
	struct stream *x = r->user;
	struct sums_of of = stream_sums_of(x);
	const struct running_client client = client_of(x, of.side);

	of.exchange = exchange_of(x, of.side, r->begin_pos);
	running_seen(s->running, running_id(x, r), &of, &client, r);
}

static void running_write(struct streams *s, bool last)
{
	running_walk(s->running, s->now_ns, s->offset_ns, last);
	for (struct stream *x = s->oldest; x; x = x->newer)
		if (x->conn)
			proto_conn_each_open(x->conn, runs, s);
	running_walked(s->running);
}

/* ---- whole ---- */

static void idle_drop(struct streams *s, int64_t now_ns)
{
	struct stream *next;

	for (struct stream *x = s->oldest; x && x->last_ns < now_ns - UDP_IDLE_NS; x = next) {
		next = x->newer;
		if (x->datagram)
			drop(s, x, true);
	}
}

void streams_write(struct streams *s, int64_t now_ns, bool all)
{
	s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
	idle_drop(s, now_ns);
	for (struct stream *x = s->newest; x; x = x->older)
		if (x->reported_seen != stream_seen(x))
			stream_report(x, s->sums, s->now_ns, false);
	running_write(s, false);
	sums_write(s->sums, all ? 0 : now_ns - HOLD_NS);
}

void streams_gone(struct streams *s, uint64_t sk, uint64_t ino, int64_t now_ns)
{
	const struct l7_end end = {
		.h = {.sk = sk, .ino = ino, .at_ns = (uint64_t)now_ns, .what = L7_END}};

	streams_record(s, &end, sizeof(end));
}

void streams_end(struct streams *s, int64_t now_ns)
{
	streams_take(s, INT64_MAX);
	s->now_ns = now_ns;
	for (struct stream *x = s->newest; x; x = x->older)
		stream_report(x, s->sums, s->now_ns, true);
	running_write(s, true);
	sums_write(s->sums, 0);
}

struct streams *streams_new(struct l7_want *wants, struct message_writer *to, uint32_t bucket_s,
			    int64_t offset_ns)
{
	struct streams *s = mem_alloc(sizeof(*s));
	const struct proto_opts o = {
		.payload = PROTO_MASKED, .emit = emit, .named = named, .ctx = s};

	s->protocols = protocols_new(&o);
	s->to = to;
	s->wants = wants;
	s->offset_ns = offset_ns;
	s->serving = serving_new();
	s->sums = sums_new(s->protocols, to, bucket_s, offset_ns);
	s->running = running_new(s->protocols, to);
	return s;
}

void streams_ring(struct streams *s)
{
	sums_ring(s->sums, true);
}

void streams_free(struct streams *s)
{
	struct stream *next;

	for (struct stream *x = s->newest; x; x = next) {
		next = x->older;
		stream_free(x);
	}
	serving_free(s->serving);
	idmap_release(&s->by_key);
	inorder_release(&s->hold);
	sums_free(s->sums);
	running_free(s->running);
	protocols_free(s->protocols);
	free(s);
}

bool streams_held(const struct streams *s)
{
	return s->hold.n;
}

void streams_clock(struct streams *s, int64_t offset_ns)
{
	s->offset_ns = offset_ns;
	sums_clock(s->sums, offset_ns);
}

void streams_stat(const struct streams *s, struct streams_stat *out)
{
	*out = s->stat;
	out->open = s->n;
}
