/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flows: see the header. A flow is found by its two ends, the smaller first; side 0 is the smaller.
 * Positions in a stream are 64 bits: the sequence number's distance from the one expected next,
 * added to that one's position.
 */
#include "loaders/replay/flows.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/replay/fragments.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define SLOTS        131072 /* a power of two */
#define UDP_IDLE_NS  (120ll * 1000000000)
#define SWEEP_EVERY  4096
#define FIN_POS_NONE UINT64_MAX

struct held {
	struct held *next;
	uint64_t pos;
	int64_t at_ns;
	size_t len, size;
	uint8_t bytes[];
};

struct stream {
	uint64_t next; /* position that is expected */
	uint32_t next_seq;
	bool met;          /* next_seq holds */
	struct held *held; /* in order of position */
	size_t held_bytes;
	uint64_t fin_pos;
	bool ended;
	bool unseen; /* the other side acknowledged bytes that the capture lacks */
};

struct flow {
	struct flow *chain;         /* of a slot */
	struct flow *newer, *older; /* by their last packet */
	struct packet_end end[2];
	bool v6, udp;
	bool closed;    /* by a reset or both ends: a SYN begins a new connection */
	uint8_t opener; /* the side that is fed as CLIENT */
	uint32_t syn_seq;
	int64_t last_ns;
	uint64_t bytes;
	struct stream stream[2];
	struct proto_conn *conn;
};

struct flows {
	struct protocols *of;
	struct fragments *fragments;
	struct flow *slots[SLOTS];
	struct flow *newest, *oldest;
	size_t n;
	uint64_t since_sweep;
	struct flows_stat stat;
};

static uint32_t slot_of(const struct packet_end *a, const struct packet_end *b, bool udp)
{
	uint64_t h = hash_bytes(HASH_SEED + udp, a, sizeof(*a));

	return (uint32_t)hash_bytes(h, b, sizeof(*b)) & (SLOTS - 1);
}

/* Copies without what lies between the fields. */
static int end_order(const struct packet_end *a, const struct packet_end *b)
{
	int d = memcmp(a->address, b->address, sizeof(a->address));

	return d ? d : (int)a->port - (int)b->port;
}

static void unlink_age(struct flows *f, struct flow *w)
{
	*(w->newer ? &w->newer->older : &f->newest) = w->older;
	*(w->older ? &w->older->newer : &f->oldest) = w->newer;
	w->newer = w->older = NULL;
}

static void link_age(struct flows *f, struct flow *w)
{
	w->older = f->newest;
	w->newer = NULL;
	*(f->newest ? &f->newest->newer : &f->oldest) = w;
	f->newest = w;
}

static void feed(struct flows *f, struct flow *w, int side, uint64_t pos, int64_t at_ns,
		 const uint8_t *bytes, size_t len, size_t size)
{
	const struct proto_piece piece = {.from = side == w->opener ? PROTO_CLIENT : PROTO_SERVER,
					  .pos = pos,
					  .at_ns = at_ns,
					  .bytes = bytes,
					  .len = len,
					  .size = size};

	f->stat.missing_bytes += size - len;
	proto_conn_feed(w->conn, &piece);
}

static void held_free(struct stream *s)
{
	struct held *next;

	for (struct held *h = s->held; h; h = next) {
		next = h->next;
		free(h);
	}
	s->held = NULL;
	s->held_bytes = 0;
}

/* Adds a connection that has ended, or is dropped, to the totals. */
static void account(struct flows *f, struct flow *w)
{
	f->stat.unfinished += proto_conn_stop(w->conn, w->last_ns);
	f->stat.answers_only +=
		!w->udp && !w->stream[proto_conn_swapped(w->conn) ? !w->opener : w->opener].met;
	if (*proto_conn_protocol(w->conn)) {
		f->stat.blind_bytes += proto_conn_blind_bytes(w->conn);
	} else if (w->bytes) {
		f->stat.unknown++;
		f->stat.unknown_bytes += w->bytes;
	}
}

static void flow_drop(struct flows *f, struct flow *w)
{
	struct flow **link = &f->slots[slot_of(&w->end[0], &w->end[1], w->udp)];

	while (*link != w)
		link = &(*link)->chain;
	*link = w->chain;
	unlink_age(f, w);
	account(f, w);
	proto_conn_free(w->conn);
	held_free(&w->stream[0]);
	held_free(&w->stream[1]);
	free(w);
	f->n--;
}

/* Feeds held segments whose turn has come; up to position `give_up`, also those behind bytes that
 * will not come. A segment behind a hole counts as arrived when the hole was filled, at now_ns; if
 * it never was, when it arrived. */
static void release_held(struct flows *f, struct flow *w, int side, uint64_t give_up,
			 int64_t now_ns)
{
	bool filled = !give_up;

	struct stream *s = &w->stream[side];

	while (s->held && (s->held->pos <= s->next || s->next < give_up)) {
		struct held *h = s->held;

		if (h->pos > s->next)
			f->stat.missing_bytes += h->pos - s->next;
		s->held = h->next;
		s->held_bytes -= h->len;
		if (h->pos + h->size > s->next) {
			s->next_seq += (uint32_t)(h->pos + h->size - s->next);
			s->next = h->pos + h->size;
			feed(f, w, side, h->pos, filled ? now_ns : h->at_ns, h->bytes, h->len,
			     h->size);
		}
		free(h);
	}
}

static void hold(struct stream *s, uint64_t pos, int64_t at_ns, const struct packet *p)
{
	struct held **link = &s->held, *h;

	while (*link && (*link)->pos < pos)
		link = &(*link)->next;
	if (*link && (*link)->pos == pos && (*link)->size >= p->size)
		return;
	h = mem_alloc(sizeof(*h) + p->len);
	*h = (struct held){
		.next = *link, .pos = pos, .at_ns = at_ns, .len = p->len, .size = p->size};
	memcpy(h->bytes, p->bytes, p->len);
	*link = h;
	s->held_bytes += p->len + sizeof(*h);
}

static void stream_data(struct flows *f, struct flow *w, int side, const struct packet *p,
			int64_t at_ns)
{
	struct stream *s = &w->stream[side];
	int32_t ahead = (int32_t)(p->seq - s->next_seq);
	uint64_t pos;

	if (ahead < 0 && (uint64_t) - (int64_t)ahead >= p->size) {
		/* one byte of the last one again: a keep-alive */
		f->stat.again_bytes += p->size;
		return;
	}
	pos = s->next + (uint64_t)(int64_t)ahead;
	if (ahead > 0) {
		hold(s, pos, at_ns, p);
		if (s->held_bytes > HELD_MAX)
			release_held(f, w, side, UINT64_MAX, at_ns);
		return;
	}
	f->stat.again_bytes += (uint64_t) - (int64_t)ahead;
	s->next = pos + p->size;
	s->next_seq = p->seq + (uint32_t)p->size;
	w->bytes += p->size;
	feed(f, w, side, pos, at_ns, p->bytes, p->len, p->size);
	release_held(f, w, side, 0, at_ns);
}

/* If the server's bytes are not all in the capture, there may have been an answer. */
static void close_flow(struct flows *f, struct flow *w, int64_t at_ns, bool is_reset)
{
	const struct stream *server =
		&w->stream[proto_conn_swapped(w->conn) ? w->opener : !w->opener];

	if (!server->met || server->unseen)
		f->stat.unfinished += proto_conn_stop(w->conn, at_ns);
	else if (is_reset)
		proto_conn_reset(w->conn, at_ns);
	else
		proto_conn_close(w->conn, at_ns);
}

static void side_ended(struct flows *f, struct flow *w, int side, int64_t at_ns)
{
	struct stream *s = &w->stream[side];

	if (s->ended || s->fin_pos == FIN_POS_NONE || s->next < s->fin_pos)
		return;
	s->ended = true;
	proto_conn_end(w->conn, side == w->opener ? PROTO_CLIENT : PROTO_SERVER, at_ns);
	if (w->stream[0].ended && w->stream[1].ended) {
		close_flow(f, w, at_ns, false);
		w->closed = true;
	}
}

static void reset(struct flows *f, struct flow *w, int64_t at_ns)
{
	for (int i = 0; i < 2; i++)
		release_held(f, w, i, UINT64_MAX, at_ns);
	if (!w->closed)
		close_flow(f, w, at_ns, true);
	w->closed = true;
}

static void acknowledged(struct flows *f, struct flow *w, int side, uint32_t ack, int64_t at_ns)
{
	struct stream *s = &w->stream[side];
	int32_t ahead = (int32_t)(ack - s->next_seq);

	if (s->held && ahead > 0)
		release_held(f, w, side, s->next + (uint32_t)ahead, at_ns);
	s->unseen = s->met && (int32_t)(ack - s->next_seq) > 1; /* 1: a FIN counts as one byte */
}

/* Which side opened the connection, where its beginning was not seen: the one with the higher port,
 * as far as that says anything. */
static uint8_t likely_opener(const struct flow *w)
{
	return w->end[0].port >= w->end[1].port ? 0 : 1;
}

static struct flow *flow_new(struct flows *f, const struct packet_end ends[2],
			     const struct packet *p, int side)
{
	struct flow *w = mem_alloc(sizeof(*w)), **slot;
	bool udp = p->what == PACKET_UDP, opens = !udp && p->flags & PACKET_SYN;

	if (f->n >= FLOWS_MAX) {
		f->stat.evicted++;
		flow_drop(f, f->oldest);
	}
	memcpy(w->end, ends, sizeof(w->end));
	w->v6 = p->v6;
	w->udp = udp;
	w->stream[0].fin_pos = w->stream[1].fin_pos = FIN_POS_NONE;
	w->opener = opens ? (uint8_t)(p->flags & PACKET_ACK ? !side : side) :
		    udp && p->to.port >= 1024 && p->from.port < 1024 ? !side :
		    udp                                              ? (uint8_t)side :
								       likely_opener(w);
	w->conn = proto_conn_new(f->of, opens, udp, w->end[!w->opener].port, w);
	slot = &f->slots[slot_of(&w->end[0], &w->end[1], udp)];
	w->chain = *slot;
	*slot = w;
	link_age(f, w);
	f->n++;
	*(udp ? &f->stat.datagram_flows : &f->stat.connections) += 1;
	return w;
}

static struct flow *flow_find(struct flows *f, const struct packet_end ends[2],
			      const struct packet *p)
{
	bool udp = p->what == PACKET_UDP;
	struct flow *w = f->slots[slot_of(&ends[0], &ends[1], udp)];

	while (w && (w->udp != udp || w->v6 != p->v6 || end_order(&w->end[0], &ends[0]) ||
		     end_order(&w->end[1], &ends[1])))
		w = w->chain;
	return w;
}

static void tcp(struct flows *f, struct flow *w, int side, const struct packet *p, int64_t at_ns)
{
	struct stream *s = &w->stream[side];
	struct packet data = *p;

	if (p->flags & PACKET_SYN) {
		s->next_seq = s->met ? s->next_seq :
				       p->seq + 1; /* one that comes again, late, changes nothing */
		s->met = true;
		data.seq++;
		w->syn_seq = p->flags & PACKET_ACK ? w->syn_seq : p->seq;
	} else if (!s->met) {
		s->met = true;
		s->next_seq = p->seq;
	}
	if (p->flags & PACKET_ACK)
		acknowledged(f, w, !side, p->ack, at_ns);
	if (data.size)
		stream_data(f, w, side, &data, at_ns);
	if (p->flags & PACKET_FIN && s->fin_pos == FIN_POS_NONE) {
		int32_t ahead = (int32_t)(data.seq + (uint32_t)data.size - s->next_seq);

		s->fin_pos = s->next + (uint64_t)(int64_t)(ahead > 0 ? ahead : 0);
	}
	for (int i = 0; i < 2; i++)
		side_ended(f, w, i, at_ns);
	if (p->flags & PACKET_RST)
		reset(f, w, at_ns);
}

/* Datagrams between two that are silent since are over; what has no answer then has none. */
static void sweep(struct flows *f, int64_t now_ns)
{
	struct flow *next;

	for (struct flow *w = f->oldest; w && w->last_ns < now_ns - UDP_IDLE_NS; w = next) {
		next = w->newer;
		if (!w->udp)
			continue;
		proto_conn_close(w->conn, w->last_ns);
		flow_drop(f, w);
	}
}

/* What is no fragment. */
static void whole_packet(struct flows *f, const struct packet *p, int64_t at_ns)
{
	struct packet_end ends[2];
	struct flow *w;
	int side;

	f->stat.others += p->what == PACKET_OTHER;
	if (p->what != PACKET_TCP && p->what != PACKET_UDP)
		return;
	f->stat.bytes += p->size;
	if (++f->since_sweep >= SWEEP_EVERY) {
		f->since_sweep = 0;
		sweep(f, at_ns);
	}
	side = end_order(&p->from, &p->to) > 0;
	memset(ends, 0, sizeof(ends));
	ends[side] = p->from;
	ends[!side] = p->to;
	w = flow_find(f, ends, p);
	if (w && p->what == PACKET_TCP && (p->flags & (PACKET_SYN | PACKET_ACK)) == PACKET_SYN &&
	    (w->closed || w->syn_seq != p->seq)) {
		reset(f, w, at_ns); /* a new connection at the same ports */
		flow_drop(f, w);
		w = NULL;
	}
	if (!w && p->what == PACKET_TCP && !p->size && !(p->flags & PACKET_SYN))
		return;
	if (!w)
		w = flow_new(f, ends, p, side);
	w->last_ns = at_ns;
	unlink_age(f, w);
	link_age(f, w);
	if (p->what == PACKET_TCP) {
		tcp(f, w, side, p, at_ns);
		return;
	}
	w->bytes += p->size;
	if (p->size)
		feed(f, w, side, 0, at_ns, p->bytes, p->len, p->size);
}

/* Of packets whose rest will not come: what there is. */
static void give_up(struct flows *f, int64_t at_ns, bool all)
{
	struct packet first;
	uint64_t n;

	while (fragments_give_up(f->fragments, at_ns, all, &first, &n)) {
		f->stat.fragments += n;
		if (first.what != PACKET_OTHER && first.what != PACKET_FRAGMENT)
			whole_packet(f, &first, at_ns);
	}
}

/* A reassembled packet may be a tunnel that carries a fragment. */
static void put_together(struct flows *f, const struct packet *p, int64_t at_ns)
{
	struct packet whole, part = *p;

	while (part.what == PACKET_FRAGMENT) { /* each time one tunnel deeper, so it ends */
		if (!fragments_add(f->fragments, &part, at_ns, &whole))
			return;
		part = whole;
	}
	whole_packet(f, &part, at_ns);
}

void flows_packet(struct flows *f, const struct packet *p, int64_t at_ns)
{
	struct packet whole;

	f->stat.packets++;
	give_up(f, at_ns, false);
	if (p->what != PACKET_FRAGMENT)
		whole_packet(f, p, at_ns);
	else if (fragments_add(f->fragments, p, at_ns, &whole))
		put_together(f, &whole, at_ns);
}

void flows_end(struct flows *f)
{
	give_up(f, f->newest ? f->newest->last_ns : 0, true);
	for (struct flow *w = f->oldest; w; w = w->newer) {
		for (int i = 0; i < 2; i++)
			release_held(f, w, i, UINT64_MAX, w->last_ns);
		if (w->udp)
			proto_conn_close(w->conn, w->last_ns);
	}
	while (f->oldest)
		flow_drop(f, f->oldest);
}

struct flows *flows_new(struct protocols *s)
{
	struct flows *f = mem_alloc(sizeof(*f));

	f->of = s;
	f->fragments = fragments_new();
	return f;
}

void flows_stat(const struct flows *f, struct flows_stat *out)
{
	*out = f->stat;
}

void flows_free(struct flows *f)
{
	if (!f)
		return;
	while (f->oldest)
		flow_drop(f, f->oldest);
	fragments_free(f->fragments);
	free(f);
}

void flow_ends(const void *user, struct flow_ends *out)
{
	const struct flow *w = user;
	int client = proto_conn_swapped(w->conn) ? !w->opener : w->opener;

	*out = (struct flow_ends){
		.client = w->end[client], .server = w->end[!client], .v6 = w->v6, .udp = w->udp};
}
