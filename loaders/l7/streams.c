// SPDX-License-Identifier: Apache-2.0
/* streams: see the header. A connection is found by its socket's address, a datagram's by the
 * remote end too. */
#include "loaders/l7/streams.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/l7/inorder.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"

#define SERVICE_MAX 128
/* so many datagrams of a socket, and nobody knows what they are: no more of it */
#define SILENT_CALLS 64
#define BULK_LEAST   1024 /* a call of less is small */
#define BULK_CALLS   8
#define BULK_LIMIT   512
/* so long after a request that was made for another one, requests may belong together */
#define LINKED_NS  (60ll * 1000000000)
#define SKIP_LEAST 8192 /* a body of less is copied: to say that it need not be costs as much */

/* For whose request a client's piece was written: of the last ASKS pieces, by their time. */
#define ASKS 8
struct asks {
	struct {
		int64_t at_ns;
		uint64_t tag;
		uint8_t how; /* enum said_how */
	} of[ASKS];
	uint32_t n;
};

struct stream {
	struct stream *newer, *older; /* by their last record */
	uint64_t key, sk, ino;
	struct said_who who;
	uint32_t tid;
	struct proto_conn *conn; /* NULL: not made yet, or nobody knows what it speaks */
	char *service;
	struct asks *asks; /* NULL: none of its pieces had a tag */
	uint64_t ends;     /* its two ends, as both see them; 0: they cannot be known */
	uint64_t pos[2];   /* the next one, by enum l7_dir */
	uint64_t tls_pos[2];
	uint64_t copied;
	uint64_t told_seen, told_blind, told_parsed, told_skipped, told_blind_requests,
		blind_requests;
	uint64_t lost; /* seen before the connection was told, or could not be read before it was
			  known what it speaks */
	int64_t last_ns;
	int64_t busy_ns; /* its last request but the one at hand was answered then */
	uint32_t datagrams;
	uint16_t family, lport, dport;
	uint8_t local[16], peer[16];
	uint8_t side,
		service_side; /* enum l7_side: as its pieces are fed; that `service` was made for */
	uint32_t limit[2],
		needed[2]; /* bytes to copy of a call; the most that was looked at of one */
	uint32_t seq0[2];  /* TCP's sequence number at position 0 */
	uint8_t calls[2];  /* large ones since `limit` was set */
	bool whole;        /* it was too little once */
	bool seq_known[2];
	bool told, begun, tls, datagram, silent, asked, ended;
};

struct streams {
	struct protocols *protocols;
	struct saying *to;
	struct sums *sums;
	struct l7_want *wants;
	struct inorder hold;
	struct idmap by_key; /* key -> struct stream * */
	struct stream *newest, *oldest;
	size_t n;
	int64_t taken_ns; /* up to here records were taken */
	int64_t now_ns;
	int64_t tagged_ns; /* when a request was last made while another one was served; 0: never */
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

static void endpoint(char *to, size_t room, uint16_t family, const uint8_t at[16], uint16_t port)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char address[INET6_ADDRSTRLEN] = "";
	bool v4 = family == AF_INET || (family == AF_INET6 && !memcmp(at, mapped, sizeof(mapped)));

	inet_ntop(v4 ? AF_INET : AF_INET6, family == AF_INET6 && v4 ? at + 12 : at, address,
		  sizeof(address));
	snprintf(to, room, v4 ? "%s:%u" : "[%s]:%u", address, port);
}

/* Which side it is, as far as is known by now, and so who answers. */
static struct sums_of of_stream(struct stream *x)
{
	uint8_t side = x->side;

	if (x->conn && proto_conn_swapped(x->conn))
		side = side == L7_SIDE_CLIENT ? L7_SIDE_SERVER : L7_SIDE_CLIENT;
	if (x->family != AF_UNIX && side != x->service_side) {
		bool server = side == L7_SIDE_SERVER;
		char service[SERVICE_MAX];

		endpoint(service, sizeof(service), x->family, server ? x->local : x->peer,
			 server ? x->lport : x->dport);
		free(x->service);
		x->service = mem_strdup(service);
		x->service_side = side;
	}
	return (struct sums_of){.who = x->who,
				.tid = x->tid,
				.side = side,
				.service = x->service ? x->service : ""};
}

/* What became of its bytes since this was last told. */
static void bytes_tell(struct streams *s, struct stream *x)
{
	bool known = x->conn && *proto_conn_protocol(x->conn);
	uint64_t seen = x->pos[0] + x->pos[1] + x->tls_pos[0] + x->tls_pos[1],
		 blind = x->lost + (known ? proto_conn_blind_bytes(x->conn) : 0), parsed, skipped;
	uint64_t number[SAID_NUMBERS] = {0};
	struct sums_of of = of_stream(x);

	blind = blind < seen ? blind : seen;
	parsed = !known ? 0 : x->copied < seen - blind ? x->copied : seen - blind;
	skipped = seen - blind - parsed;
	if (blind < x->told_blind || parsed < x->told_parsed || skipped < x->told_skipped) {
		/* what was told as one of them is now another (a protocol became known): sums in
		 * the store only grow */
		uint64_t more = seen - x->told_seen;

		parsed = known ? x->told_parsed + more : x->told_parsed;
		skipped = known ? x->told_skipped : x->told_skipped + more;
		blind = x->told_blind;
	}
	number[SAID_SEEN] = seen - x->told_seen;
	number[SAID_PARSED] = parsed - x->told_parsed;
	number[SAID_SKIPPED] = skipped - x->told_skipped;
	number[SAID_BLIND] = blind - x->told_blind;
	number[SAID_BLIND_REQUESTS] = x->blind_requests - x->told_blind_requests;
	if (number[SAID_SEEN] || number[SAID_BLIND_REQUESTS])
		sums_bytes(s->sums, &of,
			   known  ? proto_conn_protocol(x->conn) :
			   x->tls ? "tls" :
				    "",
			   s->now_ns, number);
	x->told_seen = seen;
	x->told_parsed = parsed;
	x->told_skipped = skipped;
	x->told_blind = blind;
	x->told_blind_requests = x->blind_requests;
}

static struct l7_want *want_of(const struct streams *s, const struct stream *x)
{
	return s->wants ? &s->wants[L7_WANT_SLOT(x->sk)] : NULL;
}

/* An entry is written so that the probe never finds half of one under its inode. */
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
	w->flags = flags | (x->tls ? L7_WANT_TLS : 0);
	__atomic_store_n(&w->ino, x->ino, __ATOMIC_RELEASE);
	__atomic_fetch_add(&s->wants[L7_WANTS].ino, 1, __ATOMIC_RELEASE);
}

/* Calls on later connections to this port are copied whole from the beginning on (L7_FIRST). */
static void port_set(const struct streams *s, uint16_t port, bool speaks)
{
	uint8_t *bits = s->wants ? (uint8_t *)&s->wants[L7_WANT_PORTS] : NULL,
		bit = (uint8_t)(1 << (port & 7));

	if (bits && port && (bits[port >> 3] & bit) != (speaks ? bit : 0))
		bits[port >> 3] ^= bit;
}

static void stream_free(struct stream *x)
{
	proto_conn_free(x->conn);
	free(x->service);
	free(x->asks);
	free(x);
}

/* An address as either end has it: IPv4 alike in a socket of IPv6. */
static void address_plain(uint8_t to[16], uint16_t family, const uint8_t at[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(to, at, 16);
	if (family != AF_INET)
		return;
	memcpy(to, mapped, sizeof(mapped));
	memcpy(to + 12, at, 4);
}

/*
 * The socket's, and the remote end's where that is another one than the socket is connected with: a
 * resolver sends to its peer without a name, and asks whom an answer is from.
 */
static uint64_t datagram_key(const struct stream *sock, const struct l7_data *d)
{
	static const uint8_t connected[16];
	uint8_t from[16], peer[16];

	address_plain(from, d->family, d->remote);
	address_plain(peer, sock->family, sock->peer);
	if (!d->port || (d->port == sock->dport && !memcmp(from, peer, sizeof(from))))
		return hash_bytes(hash_u64(hash_u64(HASH_SEED, sock->sk), 0), connected, 16);
	return hash_bytes(
		hash_u64(hash_u64(HASH_SEED, sock->sk), (uint64_t)d->family << 16 | d->port),
		d->remote, 16);
}

static void drop(struct streams *s, struct stream *x);

/* With whom it is connected ends with it; others when they are silent for long. */
static void datagram_end(struct streams *s, const struct stream *sock)
{
	struct stream *x = sock->dport ? find(s, datagram_key(sock, &(struct l7_data){0})) : NULL;

	if (x && x->datagram)
		drop(s, x);
}

static void drop(struct streams *s, struct stream *x)
{
	struct l7_want *w = want_of(s, x);

	if (x->told && !x->datagram)
		datagram_end(s, x);
	if (x->conn)
		proto_conn_close(x->conn, s->now_ns);
	bytes_tell(s, x);
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
		drop(s, s->oldest);
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

/* The stream of a record's socket, anew where the address has another socket now. */
static struct stream *stream_of(struct streams *s, const struct l7_head *h)
{
	struct stream *x = find(s, h->sk);

	if (x && x->ino != h->ino) {
		drop(s, x);
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

/* ---- what is told of them ---- */

static void path(char *to, size_t room, const struct l7_conn *c)
{
	size_t n = 0, i = c->path_len && !c->path[0];

	if (i)
		to[n++] = '@';
	for (; i < c->path_len && c->path[i] && n + 1 < room; i++)
		to[n++] = (char)c->path[i];
	to[n] = '\0';
	if (!n)
		snprintf(to, room, "unix");
}

static bool is_loopback(const uint8_t at[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, one[16] = {[15] = 1};

	return !memcmp(at, one, 16) || (!memcmp(at, mapped, 12) && at[12] == 127);
}

/* The same number on both ends of a TCP connection, unless addresses are rewritten between them.
 * Loopback is one of each network namespace. */
static uint64_t ends_of(const struct l7_conn *c)
{
	uint8_t end[2][18] = {0};
	int first;
	uint64_t h;

	if (c->protocol != IPPROTO_TCP || (c->family != AF_INET && c->family != AF_INET6))
		return 0;
	address_plain(end[0], c->family, c->local);
	address_plain(end[1], c->family, c->peer);
	memcpy(end[0] + 16, &c->lport, 2);
	memcpy(end[1] + 16, &c->dport, 2);
	first = memcmp(end[0], end[1], sizeof(end[0])) > 0;
	h = hash_bytes(hash_bytes(HASH_SEED, end[first], sizeof(end[0])), end[!first],
		       sizeof(end[0]));
	h = is_loopback(end[0]) ? hash_u64(h, c->netns) : h;
	return h ? h : 1;
}

/* Of a connection whose side is not known the lower port is taken for the server's, until its
 * protocol says. */
static void ends_set(struct stream *x, const struct l7_conn *c)
{
	x->family = c->family;
	x->lport = c->lport;
	x->dport = c->dport;
	memcpy(x->local, c->local, sizeof(x->local));
	memcpy(x->peer, c->peer, sizeof(x->peer));
	x->ends = ends_of(c);
	x->side = c->side != L7_SIDE_UNKNOWN ? c->side :
		  c->lport < c->dport        ? L7_SIDE_SERVER :
					       L7_SIDE_CLIENT;
	if (c->family == AF_UNIX) {
		char service[SERVICE_MAX];

		path(service, sizeof(service), c);
		free(x->service);
		x->service = mem_strdup(service);
	}
}

static void take_conn(struct streams *s, const struct l7_conn *c)
{
	struct stream *x = stream_of(s, &c->h);
	bool first = !x->told;

	if (!first)
		bytes_tell(s, x); /* what was before is the other's */
	x->who = (struct said_who){
		.start_ns = c->start_ns, .tgid = c->h.tgid, .exec_id = c->exec_id};
	x->tid = c->h.tid;
	if (!first)
		return;
	s->stat.connections++;
	x->told = true;
	x->begun = c->h.flags & L7_F_BEGUN && !x->lost;
	ends_set(x, c);
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

/* The protocol of nobody: it is not copied any more. */
static void silence(struct streams *s, struct stream *x)
{
	proto_conn_free(x->conn);
	x->conn = NULL;
	x->silent = true;
	port_set(s, server_port(x), false);
	want_set(s, x, L7_WANT_NOTHING, 0, 0);
}

static void skip_say(struct streams *s, struct stream *x, enum proto_side from, uint8_t dir,
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
 * How much of a call is to be copied: where of BULK_CALLS large ones, one after the other, not half
 * was looked at, twice of what was; else all. Where that was too little once, all is copied from
 * then on. true: it changes.
 */
static bool limit_turns(struct stream *x, const struct l7_data *d)
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

static void asks_note(struct streams *s, struct stream *x, const struct l7_data *d)
{
	if (d->seq && !x->tls) {
		x->seq0[d->h.dir] = d->seq - (uint32_t)d->pos;
		x->seq_known[d->h.dir] = true;
	}
	if (d->h.dir != L7_OUT || !d->tag)
		return;
	if (!x->asks)
		x->asks = mem_alloc(sizeof(*x->asks));
	x->asks->of[x->asks->n % ASKS].at_ns = (int64_t)d->h.at_ns;
	x->asks->of[x->asks->n % ASKS].tag = d->tag;
	x->asks->of[x->asks->n++ % ASKS].how = d->tag & TABLES_TAG_GOROUTINE ? SAID_BY_GOROUTINE :
					       d->h.flags & L7_F_OPENER      ? SAID_BY_OPENER :
									       SAID_BY_THREAD;
	s->tagged_ns = s->now_ns;
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
	bool was = *proto_conn_protocol(x->conn), turns;

	asks_note(s, x, d);
	proto_conn_feed(x->conn, &piece);
	x->copied += d->len;
	if (d->pos + d->size > *pos)
		*pos = d->pos + d->size;
	if (proto_conn_hopeless(x->conn) && !x->datagram) {
		silence(s, x);
		return;
	}
	turns = *proto_conn_protocol(x->conn) && limit_turns(x, d);
	if (!x->datagram && *proto_conn_protocol(x->conn) &&
	    (!was || turns || proto_conn_skips(x->conn, from) >= SKIP_LEAST))
		skip_say(s, x, from, d->h.dir, *pos);
}

/* Its clear text comes from inside TLS from now on. What the parser made of the records is
 * forgotten. */
static void tls_begin(struct stream *x)
{
	proto_conn_free(x->conn);
	x->conn = NULL;
	x->tls = true;
	x->silent = false;
	x->copied = 0;
}

static void datagram_remote(const struct stream *sock, const struct l7_data *d, struct stream *x)
{
	x->told = true;
	x->datagram = true;
	x->who = sock->who;
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
	uint64_t key = datagram_key(sock, d);
	struct stream *x = find(s, key);

	sock->pos[d->h.dir] = 0; /* bytes are told with the flows */
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

static void ask(struct streams *s, struct stream *x, const struct l7_data *d)
{
	x->lost += d->size;
	x->asked = true;
	want_set(s, x, L7_WANT_CONN, 0, 0);
}

static void take_data(struct streams *s, const struct l7_data *d)
{
	struct stream *x = stream_of(s, &d->h);
	bool tls = d->h.flags & L7_F_TLS;

	x->tid = d->h.tid;
	if (!x->told) {
		x->pos[d->h.dir] = d->pos + d->size;
		ask(s, x, d);
		return;
	}
	if (d->h.flags & L7_F_DATAGRAM) {
		take_datagram(s, x, d);
		return;
	}
	if (tls && !x->tls)
		tls_begin(x);
	if (x->silent || x->tls != tls) {
		if (d->pos + d->size > x->pos[d->h.dir] && !tls)
			x->pos[d->h.dir] = d->pos + d->size;
		return;
	}
	conn_ready(s, x, x->begun && !d->pos);
	feed(s, x, d, tls ? &x->tls_pos[d->h.dir] : &x->pos[d->h.dir]);
	if (d->h.flags & L7_F_FAULT && !(x->conn && *proto_conn_protocol(x->conn)))
		x->lost += d->size - d->len;
}

/* ---- ends ---- */

static void take_end(struct streams *s, const struct l7_end *e)
{
	struct stream *x = find(s, e->h.sk);
	bool server;

	if (!x || x->ino != e->h.ino)
		return;
	server = x->side == L7_SIDE_SERVER;
	for (int i = 0; i < 2; i++) {
		uint64_t more = e->pos[i] > x->pos[i] ? e->pos[i] - x->pos[i] : 0;
		const struct proto_piece gap = {.from = (i == L7_IN) == server ? PROTO_CLIENT :
										 PROTO_SERVER,
						.pos = x->pos[i],
						.bytes = (const uint8_t *)"",
						.at_ns = (int64_t)e->h.at_ns,
						.size = more};

		if (more && x->conn && !x->tls && (e->h.what == L7_END || e->h.dir == i))
			proto_conn_feed(x->conn, &gap);
		if (e->h.what == L7_END || e->h.dir == i)
			x->pos[i] += more;
	}
	if (e->h.what == L7_END) {
		s->now_ns = (int64_t)e->h.at_ns;
		drop(s, x);
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
	if (h->what == L7_CONN)
		take_conn(s, record);
	else if (h->what == L7_DATA)
		take_data(s, record);
	else
		take_end(s, record);
}

void streams_take(struct streams *s, int64_t now_ns)
{
	int64_t until = now_ns == INT64_MAX ? now_ns : now_ns - HOLD_NS;

	inorder_take(&s->hold, until, take, s);
	s->taken_ns = until > s->taken_ns && until != INT64_MAX ? until : s->taken_ns;
}

/* ---- requests ---- */

/*
 * What both ends of a connection call one request on it: by TCP's number of its first byte. Inside
 * TLS there is none: two ends whose libraries were not read from the same byte on would give two
 * requests one name.
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
		if (x->asks->of[i].tag && x->asks->of[i].at_ns == begin_ns) {
			of->tag = x->asks->of[i].tag;
			of->how = x->asks->of[i].how;
		}
}

static void emit(void *ctx, const struct proto_request *r)
{
	struct streams *s = ctx;
	struct stream *x = r->user;
	struct sums_of of = of_stream(x);

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

/* What a server of names answers to others is none of its own doing. */
static void named(void *ctx, const struct proto_named *n)
{
	struct streams *s = ctx;
	struct sums_of of = of_stream(n->user);
	char address[INET6_ADDRSTRLEN] = "";

	if (of.side == L7_SIDE_CLIENT &&
	    inet_ntop(n->len == 4 ? AF_INET : AF_INET6, n->address, address, sizeof(address)))
		sums_named(s->sums, &of, n->name, address, n->at_ns);
}

/* ---- whole ---- */

static void idle_drop(struct streams *s, int64_t now_ns)
{
	struct stream *next;

	for (struct stream *x = s->oldest; x && x->last_ns < now_ns - UDP_IDLE_NS; x = next) {
		next = x->newer;
		if (x->datagram)
			drop(s, x);
	}
}

void streams_say(struct streams *s, int64_t now_ns, bool all)
{
	s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
	idle_drop(s, now_ns);
	for (struct stream *x = s->newest; x; x = x->older)
		if (x->told_seen != x->pos[0] + x->pos[1] + x->tls_pos[0] + x->tls_pos[1])
			bytes_tell(s, x);
	sums_say(s->sums, all ? 0 : now_ns - HOLD_NS);
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
		bytes_tell(s, x);
	sums_say(s->sums, 0);
}

struct streams *streams_new(struct l7_want *wants, struct saying *to, uint32_t bucket_s,
			    int64_t offset_ns)
{
	struct streams *s = mem_alloc(sizeof(*s));
	const struct proto_opts o = {
		.payload = PROTO_MASKED, .emit = emit, .named = named, .ctx = s};

	s->protocols = protocols_new(&o);
	s->to = to;
	s->wants = wants;
	s->sums = sums_new(s->protocols, to, bucket_s, offset_ns);
	return s;
}

void streams_free(struct streams *s)
{
	struct stream *next;

	for (struct stream *x = s->newest; x; x = next) {
		next = x->older;
		stream_free(x);
	}
	idmap_release(&s->by_key);
	inorder_release(&s->hold);
	sums_free(s->sums);
	protocols_free(s->protocols);
	free(s);
}

bool streams_held(const struct streams *s)
{
	return s->hold.n;
}

void streams_clock(struct streams *s, int64_t offset_ns)
{
	sums_clock(s->sums, offset_ns);
}

void streams_stat(const struct streams *s, struct streams_stat *out)
{
	*out = s->stat;
	out->open = s->n;
}

size_t streams_memory(const struct streams *s)
{
	size_t sum = s->hold.cap;

	for (const struct stream *x = s->newest; x; x = x->older)
		sum += sizeof(*x) + (x->conn ? proto_conn_memory(x->conn) : 0);
	return sum;
}
