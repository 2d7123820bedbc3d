/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/store_rows.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uthash.h>

#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/net/procs.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/facts/net.h"
#include "schema/store/write/facts.h"

#define EDGES_MOST 65536
#define QUIC_MOST  65536
#define QUIC       253 /* no number of a protocol: flow_key.protocol of UDP that is QUIC */
#define MARKS_MOST 256 /* rows in a flush */

struct flow_key {
	int64_t ts;
	struct store_rows_proc *who, *mate;
	uint8_t side, protocol, other, excluded;
	uint16_t family, port;
	uint8_t peer[16];
	uint64_t path; /* hash of a Unix socket's, 0: none */
};

struct store_rows_flow {
	struct flow_key key;
	uint64_t sums[FLOW_N]; /* by column */
	uint64_t open_now;
	char *path;       /* of a Unix socket */
	bool moved, read; /* read: open_now is of the reading */
	uint8_t how;
	UT_hash_handle hh;
};

static void flow_free(struct store_rows *b, struct store_rows_flow *f)
{
	HASH_DEL(b->flows, f);
	free(f->path);
	free(f);
}

void store_rows_release(struct store_rows *b)
{
	struct store_rows_flow *f, *next;

	HASH_ITER (hh, b->flows, f, next)
		flow_free(b, f);
	procs_clear(&b->procs);
	hostnames_release(&b->hosts);
	marks_release(&b->marks);
	idmap_release(&b->names);
	idmap_release(&b->edges);
	idmap_release(&b->quic);
}

static int64_t bucket_of(const struct family_host *h, int64_t now_ns)
{
	int64_t s = (now_ns + h->offset_ns) / NSEC_PER_SEC;

	return s - s % h->bucket_s;
}

/* ---- flows ---- */

static struct store_rows_flow *flow_find(struct store_rows *b, const struct flow_key *key)
{
	struct store_rows_flow *f;

	HASH_FIND(hh, b->flows, key, sizeof(*key), f);
	return f;
}

static struct store_rows_flow *flow_get(struct store_rows *b, const struct flow_key *key)
{
	struct store_rows_flow *f = flow_find(b, key);

	if (f)
		return f;
	f = mem_alloc(sizeof(*f));
	f->key = *key;
	HASH_ADD(hh, b->flows, key, sizeof(f->key), f);
	b->n_flows++;
	return f;
}

/* Has this peer had a row in this hour, or is there room for its name? */
static bool name_room(struct store_rows *b, const struct flow_key *key)
{
	uint64_t hash = hash_bytes(HASH_SEED, key->peer, sizeof(key->peer)), at;
	int64_t hour = key->ts / 3600;

	if (hour != b->hour)
		idmap_clear(&b->names);
	b->hour = hour;
	hash = hash_u64(hash_u64(hash, key->path), (uint64_t)key->family << 16 | key->port);
	if (idmap_get(&b->names, hash, &at))
		return true;
	if (b->names.n >= STORE_ROWS_NAMES)
		return false;
	idmap_set(&b->names, hash, 1);
	return true;
}

static struct store_rows_flow *flow_of(struct store_rows *b, struct flow_key *key)
{
	struct store_rows_flow *f = flow_find(b, key);

	if (f)
		return f;
	if (b->n_flows >= STORE_ROWS_FLOWS || key->who->flows >= STORE_ROWS_PEERS_OF ||
	    !name_room(b, key)) {
		key->other = 1;
		key->port = key->family = 0;
		key->path = 0;
		key->mate = NULL;
		memset(key->peer, 0, sizeof(key->peer));
	} else {
		key->who->flows++;
	}
	return flow_get(b, key);
}

static struct flow_key key_of(const struct conns *cs, const struct conn *c,
			      struct store_rows_proc *who, struct store_rows_proc *mate, int64_t ts)
{
	struct flow_key key;

	memset(&key, 0, sizeof(key));
	key.ts = ts;
	key.who = who;
	key.mate = mate;
	key.side = (uint8_t)conns_side(cs, c);
	key.protocol = (uint8_t)c->r.protocol;
	if (procs_excluded(who)) {
		key.excluded = 1;
		key.mate = NULL;
		return key;
	}
	key.family = c->r.family;
	key.port = key.side == NET_SIDE_SERVER ? c->r.lport :
		   key.side == NET_SIDE_CLIENT ? c->r.dport :
						 0;
	memcpy(key.peer, c->r.peer, sizeof(key.peer));
	return key;
}

/* ---- what is new ---- */

static void connect_add(struct store_rows_flow *f, int64_t us)
{
	f->sums[FLOW_CONNECT_US] += (uint64_t)us;
	f->sums[us < 1000    ? FLOW_CONNECT_1MS :
		us < 10000   ? FLOW_CONNECT_10MS :
		us < 100000  ? FLOW_CONNECT_100MS :
		us < 1000000 ? FLOW_CONNECT_1S :
			       FLOW_CONNECT_LONG]++;
}

static void opening_add(struct store_rows_flow *f, struct conn *c)
{
	bool client = c->r.side == NET_SIDE_CLIENT,
	     entry = !(c->r.flags & (NET_F_STANDING | NET_F_NO_ENTRY));
	bool open = record_opened(&c->r);

	if (c->r.flags & NET_F_STANDING)
		return;
	if (!c->told.attempt && client)
		f->sums[FLOW_ATTEMPTS]++;
	if (!c->told.open && open) {
		f->sums[FLOW_OPENED]++;
		if (client && entry)
			connect_add(f, (int64_t)(c->r.established_ns - c->r.begin_ns) / 1000);
	}
	f->moved = f->moved || !c->told.attempt || (!c->told.open && open);
	c->told.attempt = true;
	c->told.open = c->told.open || open;
}

/* clang-format off */
static const enum flow_column RESULTS[RECORD_RESULTS] = {
	[RECORD_CLOSED] = FLOW_CLOSED, [RECORD_RESET_IN] = FLOW_RESET_IN, [RECORD_RESET_OUT] = FLOW_RESET_OUT, [RECORD_BROKEN] = FLOW_BROKEN,
	[RECORD_REFUSED] = FLOW_REFUSED, [RECORD_TIMED_OUT] = FLOW_TIMED_OUT, [RECORD_UNREACHABLE] = FLOW_UNREACHABLE,
	[RECORD_GIVEN_UP] = FLOW_GIVEN_UP, [RECORD_FAILED] = FLOW_FAILED,
};
/* clang-format on */

static uint64_t life_us(const struct net_record *r)
{
	return r->established_ns && r->time_ns > r->established_ns ?
		       (r->time_ns - r->established_ns) / 1000 :
		       0;
}

static void more64(struct store_rows_flow *f, enum flow_column column, uint64_t *told, uint64_t now)
{
	if (now > *told) {
		f->sums[column] += now - *told;
		f->moved = true;
		*told = now;
	}
}

static void more32(struct store_rows_flow *f, enum flow_column column, uint32_t *told, uint32_t now)
{
	f->sums[column] += now - *told; /* it may begin at 0 again after 2^32 */
	f->moved = f->moved || now != *told;
	*told = now;
}

/* What was before the capture is not counted. */
static void standing_begin(struct conn *c)
{
	if (c->told.at_ns || !(c->r.flags & NET_F_STANDING))
		return;
	c->told.tx = record_tx(&c->r);
	c->told.rx = record_rx(&c->r);
	c->told.segs_out = c->r.segs_out;
	c->told.segs_in = c->r.segs_in;
	c->told.retrans = record_retrans(&c->r);
	c->told.lost = c->r.lost;
}

static void moving_add(struct store_rows_flow *f, struct conn *c)
{
	bool moved = c->r.segs_out != c->told.segs_out || c->r.segs_in != c->told.segs_in;

	/* while it closes, a FIN may be among them: the end tells */
	if (c->ended || c->r.state == TCP_ESTABLISHED) {
		more64(f, FLOW_TX, &c->told.tx, record_tx(&c->r));
		more64(f, FLOW_RX, &c->told.rx, record_rx(&c->r));
	}
	more32(f, FLOW_SEGS_OUT, &c->told.segs_out, c->r.segs_out);
	more32(f, FLOW_SEGS_IN, &c->told.segs_in, c->r.segs_in);
	more32(f, FLOW_RETRANS, &c->told.retrans, record_retrans(&c->r));
	more32(f, FLOW_LOST, &c->told.lost, c->r.lost);
	if (moved && c->r.srtt_us >> 3) {
		f->sums[FLOW_RTT_SUM] += c->r.srtt_us >> 3;
		f->sums[FLOW_RTT_N]++;
	}
}

/* ---- single ones ---- */

static void single_put(struct store_rows *b, struct family_host *h, const struct conn *c,
		       const struct flow_key *key, enum record_result result)
{
	struct fact_row row = {0};
	char peer[RECORD_ADDRESS], port[8], other[8];

	if (key->other || key->excluded || b->n_singles >= STORE_ROWS_SINGLES ||
	    (key->who && key->who->singles >= STORE_ROWS_SINGLES_OF))
		return;
	if (result == RECORD_CLOSED && life_us(&c->r) < 1000000)
		return;
	b->n_singles++;
	if (key->who)
		key->who->singles++;
	snprintf(port, sizeof(port), "%u", key->port);
	snprintf(other, sizeof(other), "%u",
		 key->side == NET_SIDE_SERVER ? c->r.dport : c->r.lport);
	fact_put(&row, CONNECTION_PROCESS, procs_row(key->who, h));
	fact_put_text(&row, CONNECTION_SIDE, procs_side(key->side));
	fact_put_text(&row, CONNECTION_PROTOCOL, "tcp");
	fact_put_text(&row, CONNECTION_PEER, record_address(key->family, key->peer, peer));
	fact_put_text(&row, CONNECTION_PORT, port);
	fact_put_text(&row, CONNECTION_OTHER_PORT, other);
	fact_put(&row, CONNECTION_MATE, procs_row(key->mate, h));
	fact_put_text(&row, CONNECTION_RESULT, RECORD_RESULT_NAMES[result]);
	if (c->r.established_ns)
		fact_put(&row, CONNECTION_LIFE, life_us(&c->r));
	if (c->r.side == NET_SIDE_CLIENT && c->r.begin_ns)
		fact_put(&row, CONNECTION_CONNECT,
			 ((c->r.established_ns ?: c->r.time_ns) - c->r.begin_ns) / 1000);
	fact_put(&row, CONNECTION_TX, record_tx(&c->r));
	fact_put(&row, CONNECTION_RX, record_rx(&c->r));
	fact_put(&row, CONNECTION_RETRANS, record_retrans(&c->r));
	if (c->r.srtt_us >> 3)
		fact_put(&row, CONNECTION_RTT, c->r.srtt_us >> 3);
	if (store_fact(h->store, h->run, key->ts * NSEC_PER_SEC, &CONNECTION_FACT, &row))
		h->refused++;
	else
		h->added++;
}

/* ---- what the other host's end comes to as well ---- */

static void mark_put(struct store_rows *b, struct family_host *h, const struct conn *c,
		     const struct flow_key *key)
{
	struct flow_key flow = *key;
	struct fact_row row = {0};
	char peer[RECORD_ADDRESS], port[8];
	uint64_t mark = record_mark(&c->r, (enum net_side)key->side);

	flow.ts = 0;
	flow.who = NULL; /* which is another one in each flush */
	if (b->mark_epoch != store_epoch(h->store))
		marks_again(&b->marks);
	b->mark_epoch = store_epoch(h->store);
	if (key->mate || key->other || key->excluded || key->side == NET_SIDE_UNKNOWN ||
	    record_is_loopback(key->family, key->peer) || b->n_marks >= MARKS_MOST ||
	    !marks_take(&b->marks,
			hash_bytes(hash_u64(HASH_SEED, key->who->as.start_ns ^ key->who->as.tgid),
				   &flow, sizeof(flow)),
			mark, key->ts))
		return;
	b->n_marks++;
	snprintf(port, sizeof(port), "%u", key->port);
	fact_put(&row, FLOW_MARK_PROCESS, procs_row(key->who, h));
	fact_put_text(&row, FLOW_MARK_SIDE, procs_side(key->side));
	fact_put_text(&row, FLOW_MARK_PEER, record_address(key->family, key->peer, peer));
	fact_put_text(&row, FLOW_MARK_PORT, port);
	fact_put(&row, FLOW_MARK_MARK, mark);
	fact_put(&row, FLOW_MARK_COUNT, 1);
	if (store_fact(h->store, h->run, key->ts * NSEC_PER_SEC, &FLOW_MARK_FACT, &row))
		h->refused++;
	else
		h->added++;
}

/* ---- connections ---- */

/* Its program has closed it, and the kernel goes on sending to the other end, which may be
 * unreachable: for minutes. */
static bool is_leaving(const struct net_record *r)
{
	return r->state == TCP_FIN_WAIT1 || r->state == TCP_CLOSING || r->state == TCP_LAST_ACK;
}

void store_rows_conn(struct store_rows *b, struct family_host *h, const struct conns *cs,
		     struct conn *c, int64_t now_ns)
{
	enum record_result result = record_result(&c->r);
	enum net_owner_how how;
	struct net_owner owner = conns_owner(cs, c, &how), mate = conns_mate(cs, c);
	struct store_rows_proc *who = procs_get(&b->procs, h, &owner, &c->r.holder), *other;
	struct flow_key key;
	struct store_rows_flow *f;

	if (!procs_covered(who, h))
		return;
	other = mate.start_ns ? procs_get(&b->procs, h, &mate, NULL) : NULL;
	key = key_of(cs, c, who, other, bucket_of(h, now_ns));
	f = flow_of(b, &key);
	f->how = (uint8_t)how;
	if (result <= RECORD_BROKEN)
		mark_put(b, h, c, &key);
	standing_begin(c);
	opening_add(f, c);
	moving_add(f, c);
	if (!c->ended) {
		f->read = f->read || key.ts == b->reading_ts;
		f->open_now += !is_leaving(&c->r);
		f->moved = f->moved || now_ns - c->told.at_ns >= STORE_ROWS_IDLE_NS;
	} else {
		b->stored++;
		b->other += key.other;
		f->sums[RESULTS[result ?: RECORD_CLOSED]]++;
		f->sums[FLOW_LIFE_US] += life_us(&c->r);
		f->moved = true;
		single_put(b, h, c, &key, result ?: RECORD_CLOSED);
	}
	if (f->moved)
		c->told.at_ns = now_ns;
}

void store_rows_reading(struct store_rows *b, const struct family_host *h, int64_t now_ns)
{
	b->reading_ts = bucket_of(h, now_ns);
}

/* ---- listeners ---- */

static const char *reach(const struct net_record *r)
{
	return record_is_loopback(r->family, r->local) ? "host" : "network";
}

void store_rows_listener(struct store_rows *b, struct family_host *h, struct conn *c,
			 int64_t now_ns)
{
	struct store_rows_proc *who = procs_get(&b->procs, h, &c->r.owner, &c->r.holder);
	struct fact_row row = {0};
	char address[RECORD_ADDRESS], port[8];
	uint32_t dropped = c->told.at_ns               ? c->r.drops - c->told.lost :
			   c->r.flags & NET_F_STANDING ? 0 :
							 c->r.drops;
	uint32_t repeated = c->told.at_ns ? c->r.repeated - c->told.retrans : c->r.repeated;
	bool still = !dropped && !repeated && c->r.backlog == c->told.segs_in;

	if (!procs_covered(who, h) || procs_excluded(who) ||
	    (c->told.at_ns && still && now_ns - c->told.at_ns < STORE_ROWS_IDLE_NS))
		return;
	snprintf(port, sizeof(port), "%u", c->r.lport);
	fact_put(&row, LISTENER_PROCESS, procs_row(who, h));
	fact_put_text(&row, LISTENER_PROTOCOL, "tcp");
	fact_put_text(&row, LISTENER_ADDRESS, record_address(c->r.family, c->r.local, address));
	fact_put_text(&row, LISTENER_PORT, port);
	fact_put(&row, LISTENER_CONTAINER, procs_container(who, h));
	fact_put_text(&row, LISTENER_OPEN_TO, reach(&c->r));
	fact_put(&row, LISTENER_BACKLOG, c->r.backlog);
	fact_put(&row, LISTENER_BACKLOG_MAX, c->r.backlog_max);
	fact_put(&row, LISTENER_DROPPED, dropped);
	fact_put(&row, LISTENER_REPEATED, repeated);
	if (store_fact(h->store, h->run, now_ns + h->offset_ns, &LISTENER_FACT, &row)) {
		h->refused++;
		return;
	}
	h->added++;
	c->told.at_ns = now_ns;
	c->told.lost = c->r.drops;
	c->told.retrans = c->r.repeated;
	c->told.segs_in = c->r.backlog;
}

/* ---- Unix and UDP ---- */

static const char *protocol_word(uint8_t protocol)
{
	return protocol == IPPROTO_TCP ? "tcp" :
	       protocol == IPPROTO_UDP ? "udp" :
	       protocol == QUIC        ? "quic" :
					 "unix";
}

/* Once a flow of UDP was seen to be QUIC it is, also where nothing tells any more. */
static void quic_mark(struct store_rows *b, struct flow_key *key, bool seen)
{
	uint64_t hash = hash_bytes(hash_u64(HASH_SEED, key->who->as.start_ns ^ key->who->as.tgid),
				   key->peer, sizeof(key->peer));

	hash = hash_u64(hash, (uint64_t)key->family << 16 | key->port);
	if (key->protocol != IPPROTO_UDP || (!seen && !idmap_get(&b->quic, hash, &(uint64_t){0})))
		return;
	if (b->quic.n >= QUIC_MOST)
		idmap_clear(&b->quic);
	idmap_set(&b->quic, hash, 1);
	key->protocol = QUIC;
}

void store_rows_other(struct store_rows *b, struct family_host *h, const struct others_edge *x,
		      bool quic, int64_t now_ns)
{
	const struct net_record *r = &x->own->r;
	struct store_rows_proc *who = procs_get(&b->procs, h, &r->owner, NULL),
			       *mate = x->mate ? procs_get(&b->procs, h, &x->mate->r.owner, NULL) :
						 NULL;
	struct flow_key key;
	struct store_rows_flow *f;

	if (!procs_covered(who, h) || (mate == who && r->family == AF_UNIX))
		return; /* a process's talk with itself is no edge */
	memset(&key, 0, sizeof(key));
	key.ts = bucket_of(h, now_ns);
	key.who = who;
	key.side = (uint8_t)x->side;
	key.protocol = r->family == AF_UNIX ? 0 : (uint8_t)r->protocol;
	if (procs_excluded(who)) {
		key.excluded = 1;
	} else {
		key.mate = mate;
		key.family = r->family;
		key.port = x->side == NET_SIDE_SERVER ? r->lport : r->dport;
		memcpy(key.peer, r->peer, r->family == AF_UNIX ? 0 : sizeof(key.peer));
		key.path = *x->peer ? hash_str(HASH_SEED, x->peer) : 0;
		quic_mark(b, &key, quic);
	}
	f = flow_of(b, &key);
	if (key.path && !f->path)
		f->path = mem_strdup(x->peer);
	f->how = NET_OWNER_HOLDER;
	f->open_now++;
	f->read = f->moved = true;
}

/* Of a UDP socket; its own address takes the place of a Unix socket's path. */
static void talk_udp(const struct talks_sum *x, const struct others *os, struct flow_key *key,
		     struct net_owner *mate)
{
	const struct net_other *other;
	uint8_t local[16];

	key->protocol = IPPROTO_UDP;
	key->family = x->key.family;
	memcpy(key->peer, x->key.at, sizeof(key->peer));
	memcpy(local, x->now.path, sizeof(local));
	other = others_bound(os, x->key.netns, key->family, key->peer, local, x->key.port);
	record_unmap(&key->family, key->peer);
	key->side = x->key.lport && !other ? NET_SIDE_SERVER : NET_SIDE_CLIENT;
	key->port = key->side == NET_SIDE_SERVER ? x->key.lport : x->key.port;
	if (other)
		*mate = other->r.owner;
}

void store_rows_talk(struct store_rows *b, struct family_host *h, const struct talks_sum *x,
		     const struct others *os, int64_t now_ns)
{
	const struct net_other *other =
		x->key.family == AF_UNIX ? others_socket(os, x->now.peer_sk) : NULL;
	struct net_owner mate =
		x->mate.start_ns ? x->mate :
		other && other->peer_sk == x->now.sk && other->peer_inode == x->now.inode ?
				   other->r.owner :
				   (struct net_owner){0};
	struct store_rows_proc *who = procs_get(&b->procs, h, &x->key.owner, NULL);
	char path[NET_PATH + 4] = "";
	struct flow_key key;
	struct store_rows_flow *f;

	memset(&key, 0, sizeof(key));
	key.ts = bucket_of(h, now_ns);
	key.who = who;
	key.side = x->key.side;
	if (x->key.family == AF_UNIX) {
		key.family = AF_UNIX;
		others_path(x->now.path, x->now.path_len, path);
		key.path = *path ? hash_str(HASH_SEED, path) : 0;
	} else {
		talk_udp(x, os, &key, &mate);
		quic_mark(b, &key, x->now.quic);
	}
	key.mate = mate.start_ns ? procs_get(&b->procs, h, &mate, NULL) : NULL;
	if (!procs_covered(who, h) || (key.mate == who && x->key.family == AF_UNIX))
		return;
	if (procs_excluded(who)) {
		memset(key.peer, 0, sizeof(key.peer));
		key.mate = NULL;
		key.family = key.port = 0;
		key.path = 0;
		key.excluded = 1;
	}
	f = flow_of(b, &key);
	if (key.path && !f->path)
		f->path = mem_strdup(path);
	f->how = NET_OWNER_HOLDER;
	f->sums[FLOW_TX] += x->tx;
	f->sums[FLOW_RX] += x->rx;
	f->moved = true;
}

void store_rows_waiting(struct store_rows *b, struct family_host *h, const struct others_edge *x,
			int64_t now_ns)
{
	const struct net_record *r = &x->own->r;
	struct store_rows_proc *who = procs_get(&b->procs, h, &r->owner, NULL);
	struct fact_row row = {0};
	char address[RECORD_ADDRESS], port[8] = "";

	if (!procs_covered(who, h) || procs_excluded(who))
		return;
	if (r->lport)
		snprintf(port, sizeof(port), "%u", r->lport);
	fact_put(&row, LISTENER_PROCESS, procs_row(who, h));
	fact_put_text(&row, LISTENER_PROTOCOL, r->family == AF_UNIX ? "unix" : "udp");
	fact_put_text(&row, LISTENER_ADDRESS,
		      r->family == AF_UNIX ? x->peer :
					     record_address(r->family, r->local, address));
	fact_put_text(&row, LISTENER_PORT, port);
	fact_put(&row, LISTENER_CONTAINER, procs_container(who, h));
	fact_put_text(&row, LISTENER_OPEN_TO,
		      r->family == AF_UNIX || record_is_loopback(r->family, r->local) ? "host" :
											"network");
	if (r->family == AF_UNIX && r->type != SOCK_DGRAM)
		fact_put(&row, LISTENER_BACKLOG_MAX, r->backlog_max);
	if (store_fact(h->store, h->run, now_ns + h->offset_ns, &LISTENER_FACT, &row))
		h->refused++;
	else
		h->added++;
}

/* ---- to the store ---- */

static const char *const HOW[] = {
	[NET_OWNER_NONE] = "",
	[NET_OWNER_OPENER] = "opener",
	[NET_OWNER_CLOSER] = "closer",
	[NET_OWNER_HOLDER] = "holder",
	[NET_OWNER_LISTENER] = "listener",
};

static void flow_names(const struct store_rows_flow *f, struct family_host *h, struct fact_row *row,
		       char peer[RECORD_ADDRESS], char port[8])
{
	const struct flow_key *k = &f->key;

	*port = '\0';
	if (k->port)
		snprintf(port, 8, "%u", k->port);
	fact_put(row, FLOW_PROCESS, procs_row(k->who, h));
	fact_put_text(row, FLOW_SIDE, procs_side(k->side));
	fact_put_text(row, FLOW_PROTOCOL, protocol_word(k->protocol));
	fact_put_text(row, FLOW_PEER,
		      k->other    ? STORE_ROWS_OTHER :
		      k->excluded ? NAMING_EXCLUDED :
		      f->path     ? f->path :
				    record_address(k->family, k->peer, peer));
	fact_put_text(row, FLOW_PORT, port);
	fact_put(row, FLOW_MATE, procs_row(k->mate, h));
	fact_put_text(row, FLOW_OWNER, HOW[f->how]);
	fact_put(row, FLOW_CONTAINER, procs_container(k->who, h));
}

/* Live views show a new edge before its bucket is over. */
static void edge_note(struct store_rows *b, const struct store_rows_flow *f)
{
	struct flow_key key = f->key;
	uint64_t hash = hash_u64(HASH_SEED, f->key.who->as.start_ns ^ f->key.who->as.tgid);

	hash = hash_u64(hash, f->key.mate ? f->key.mate->as.start_ns ^ f->key.mate->as.tgid : 0);
	key.who = key.mate = NULL;
	key.ts = 0;
	hash = hash_bytes(hash, &key, sizeof(key));
	if (b->edges.n > EDGES_MOST)
		idmap_clear(&b->edges);
	b->fresh = b->fresh || !idmap_get(&b->edges, hash, &(uint64_t){0});
	idmap_set(&b->edges, hash, 1);
}

/* How many of a flow are open by this reading: also where its row is of an earlier bucket, in which
 * one of them ended. */
static uint64_t open_by_now(struct store_rows *b, const struct store_rows_flow *f)
{
	struct flow_key key = f->key;

	if (f->read || f->key.ts == b->reading_ts)
		return f->open_now;
	key.ts = b->reading_ts;
	f = flow_find(b, &key);
	return f ? f->open_now : 0;
}

static void flow_put(struct store_rows *b, struct family_host *h, const struct store_rows_flow *f)
{
	struct fact_row row = {0};
	char peer[RECORD_ADDRESS], port[8];
	int err = -1;

	edge_note(b, f);
	for (int i = 0; i < 3 && err; i++) { /* after the epoch changed, ids are made again */
		row.set = 0;
		flow_names(f, h, &row, peer, port);
		for (int c = FLOW_ATTEMPTS; c < FLOW_N; c++)
			if (c != FLOW_OPEN_NOW && f->sums[c])
				fact_put(&row, c, f->sums[c]);
		fact_put(&row, FLOW_OPEN_NOW, open_by_now(b, f));
		err = store_fact(h->store, h->run, f->key.ts * NSEC_PER_SEC, &FLOW_FACT, &row);
	}
	if (err)
		h->refused++;
	else
		h->added++;
	if (f->key.side != NET_SIDE_SERVER && !f->key.mate && !f->key.other && !f->key.excluded &&
	    f->key.family != AF_UNIX)
		hostnames_store(&b->hosts, h, f->key.who,
				record_address(f->key.family, f->key.peer, peer), f->key.ts);
}

size_t store_rows_flush(struct store_rows *b, struct family_host *h)
{
	struct store_rows_flow *f, *next;
	size_t n = 0;

	HASH_ITER (hh, b->flows, f, next) {
		if (f->moved)
			flow_put(b, h, f);
		n += f->moved;
	}
	HASH_ITER (hh, b->flows, f, next)
		flow_free(b, f);
	b->n_flows = b->n_singles = b->n_marks = 0;
	procs_clear(&b->procs);
	if (b->fresh)
		store_flush(h->store);
	b->fresh = false;
	return n;
}
