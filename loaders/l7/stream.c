/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define SERVICE_MAX 128

/* What records of TLS add: to a connection (a session's tickets, its end), to a call, to its bytes
 * (1 / 32: records of 1 KB). */
#define TLS_ADDS      4096
#define TLS_ADDS_CALL 64
#define TLS_ADDS_PART 32
#define UPGRADE_NS    2000000000ll /* from a connection's begin to its first clear text */

static void endpoint(char *to, size_t room, uint16_t family, const uint8_t at[16], uint16_t port)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char address[INET6_ADDRSTRLEN] = "";
	bool v4 = family == AF_INET || (family == AF_INET6 && !memcmp(at, mapped, sizeof(mapped)));

	inet_ntop(v4 ? AF_INET : AF_INET6, family == AF_INET6 && v4 ? at + 12 : at, address,
		  sizeof(address));
	snprintf(to, room, v4 ? "%s:%u" : "[%s]:%u", address, port);
}

uint8_t stream_side(const struct stream *x)
{
	if (!x->conn || !proto_conn_swapped(x->conn))
		return x->side;
	return x->side == L7_SIDE_CLIENT ? L7_SIDE_SERVER : L7_SIDE_CLIENT;
}

struct sums_of stream_sums_of(struct stream *x)
{
	uint8_t side = stream_side(x);

	if (x->family != AF_UNIX && side != x->service_side) {
		bool server = side == L7_SIDE_SERVER;
		char service[SERVICE_MAX];

		endpoint(service, sizeof(service), x->family, server ? x->local : x->peer,
			 server ? x->lport : x->dport);
		free(x->service);
		x->service = mem_strdup(service);
		x->service_side = side;
	}
	return (struct sums_of){.process = x->process,
				.tid = x->tid,
				.side = side,
				.service = x->service ? x->service : ""};
}

/* What it moved: the socket's bytes. Of records of TLS whose clear text is read, the connection's
 * end has the number: until then the clear text counts. */
uint64_t stream_seen(const struct stream *x)
{
	uint64_t moved = x->pos[0] + x->pos[1], clear = x->tls_pos[0] + x->tls_pos[1];

	return moved > clear ? moved : clear;
}

/* Bytes of records whose clear text did not come: more than what records add to what came. */
static uint64_t tls_unread(const struct stream *x)
{
	uint64_t moved = x->pos[0] + x->pos[1], clear = x->tls_pos[0] + x->tls_pos[1],
		 read = x->outer + clear,
		 added = TLS_ADDS + TLS_ADDS_CALL * x->tls_calls + clear / TLS_ADDS_PART;

	return x->tls && moved > read + added ? moved - read : 0;
}

static uint64_t blind_of(const struct stream *x, bool known)
{
	uint64_t blind = x->lost + tls_unread(x);

	if (known)
		return blind + proto_conn_blind_bytes(x->conn);
	if (x->torn)
		return stream_seen(x);
	return blind + (x->tls ? x->tls_pos[0] + x->tls_pos[1] : 0);
}

static uint64_t grown(uint64_t to, uint64_t from, uint64_t most)
{
	uint64_t more = to > from ? to - from : 0;

	return more < most ? more : most;
}

/* A handshake of TLS, after which its clear text may come: its records are not blind yet. */
static bool upgrading(const struct stream *x, int64_t now_ns)
{
	return !x->tls && now_ns - x->first_ns < UPGRADE_NS &&
	       !strcmp(proto_conn_protocol(x->conn), "tls");
}

/*
 * Reports what happened to its bytes since the last report. While it is not known what the
 * connection speaks that is not known either: they are reported later, or at the `last` report.
 */
void stream_report(struct stream *x, struct sums *sums, int64_t now_ns, bool last)
{
	bool known = x->conn && *proto_conn_protocol(x->conn);
	uint64_t seen = stream_seen(x), blind = blind_of(x, known), parsed, skipped, since;
	struct byte_counts more;
	struct sums_of of;

	if (!last && !x->datagram && x->conn && (!known || upgrading(x, now_ns)))
		return;
	of = stream_sums_of(x);
	blind = blind < seen ? blind : seen;
	parsed = known ? seen - blind : 0;
	skipped = known ? proto_conn_left_out(x->conn) : 0;
	parsed -= skipped < parsed ? skipped : parsed;
	parsed = x->copied < parsed ? x->copied : parsed;
	skipped = seen - blind - parsed;
	since = seen - x->reported_seen;
	/* The store's sums only grow: what was reported as one and turned out to be another comes
	 * with the bytes that are reported next. */
	more = (struct byte_counts){.seen = since,
				    .blind = grown(blind, x->reported_blind, since),
				    .blind_requests =
					    x->blind_requests - x->reported_blind_requests};
	more.skipped = grown(skipped, x->reported_skipped, since - more.blind);
	more.parsed = since - more.blind - more.skipped;
	if (more.seen || more.blind_requests)
		sums_bytes(sums, &of,
			   known  ? proto_conn_protocol(x->conn) :
			   x->tls ? "tls" :
				    "",
			   now_ns, &more);
	x->reported_seen = seen;
	x->reported_skipped += more.skipped;
	x->reported_blind += more.blind;
	x->reported_blind_requests = x->blind_requests;
}

/* IPv4 as mapped IPv6: the same for both ends, whichever family their sockets have. */
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
 * Of the socket, and of the remote end unless it is the connected peer: a resolver sends to its
 * peer without an address, but receives with one.
 */
uint64_t stream_datagram_key(const struct stream *sock, const struct l7_data *d)
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
 * Each network namespace has its own loopback. */
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

/* If the side is unknown, the lower port counts as the server's until the protocol tells. */
void stream_ends_set(struct stream *x, const struct l7_conn *c)
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

void stream_free(struct stream *x)
{
	proto_conn_free(x->conn);
	free(x->service);
	free(x->asks);
	free(x->early);
	free(x);
}
