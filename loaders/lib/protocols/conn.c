/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn: a piece is processed in this order: its place in the stream (overlap is cut off, a hole is
 * reported), bytes to skip, then messages, one step after the other. Messages are read from the
 * piece itself if nothing is buffered from before; the rest of the piece is buffered.
 */
#include "loaders/lib/protocols/conn.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/protocols/midway.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/proxyhead.h"
#include "schema/base/mem.h"

#define BUFFER_MAX  65536
#define BUFFER_KEPT 512 /* an empty buffer of more is freed */
#define APPEND      4096
#define SEEN_APART  24 /* from here on, adjacent pieces of one side are merged */
#define TRIES       8
/* after this many bytes a later protocol's yes counts, though an earlier one still asks for more */
#define MAYBE_BYTES 1024

static void feed_known(struct proto_conn *c, const struct proto_piece *piece);

/* ---- what is known and what is missing ---- */

static void buffer_drop(struct proto_dir *d)
{
	free(d->buf);
	d->buf = NULL;
	d->len = d->cap = 0;
}

static void buffer_keep(struct proto_dir *d, const uint8_t *p, size_t n, uint64_t pos)
{
	if (d->len + n > d->cap) {
		d->cap = d->len + n < 128 ? 128 : (d->len + n) * 2;
		d->buf = mem_realloc(d->buf, d->cap);
	}
	if (!d->len)
		d->buf_pos = pos;
	memcpy(d->buf + d->len, p, n);
	d->len += n;
}

static void buffer_cut(struct proto_dir *d, size_t off)
{
	d->len -= off;
	d->buf_pos += off;
	if (d->len)
		memmove(d->buf, d->buf + off, d->len);
	else if (d->cap > BUFFER_KEPT)
		buffer_drop(d);
}

/* A message, or a part of one, has ended, including the bytes that were skipped. */
static void passed(struct proto_conn *c, enum proto_side from)
{
	struct proto_dir *d = &c->dir[from];
	const bool cutting = c->cutting;
	struct proto_pending *p;

	d->in_message = false;
	c->cutting = false; /* this one is complete */
	if (!d->going)
		proto_tell(c, from);
	c->cutting = cutting;
	if (from == PROTO_CLIENT && (c->protocol->in_order || d->spoken)) {
		p = proto_newest(c);
		if (p && !p->first_ns)
			p->sent_ns = c->now_ns;
	}
}

/* The current step consumed k bytes. The bytes of a message that has produced no question yet are
 * kept aside until it does. */
static void count_bytes(struct proto_conn *c, enum proto_side from, uint64_t k)
{
	struct proto_dir *d = &c->dir[from];
	struct proto_pending *p;

	d->unowned = c->unowned || (from == PROTO_SERVER && c->protocol->asked_only &&
				    !proto_newest(c) && !c->done.set && !c->unasked.set);
	if (d->unowned)
		d->blind_bytes += k;
	d->skip_of = UINT64_MAX;
	if (c->unasked.set && c->unasked.from == from) {
		*(from == PROTO_CLIENT ? &c->unasked.p.request_bytes :
					 &c->unasked.p.response_bytes) += k;
		d->skip_of = c->unasked.p.begin_pos;
	} else if (from == PROTO_SERVER && c->done.set && c->done.from == PROTO_SERVER) {
		c->done.p.response_bytes += k;
		d->skip_of = c->done.p.begin_pos;
	} else if (d->going && !d->spoken &&
		   (from == PROTO_CLIENT || !c->protocol->in_order || c->apart)) {
		d->lead_bytes += k;
	} else if (from == PROTO_CLIENT) {
		/* part of which one, the protocol knows */
		if (!c->asked && !d->spoken && !c->protocol->in_order)
			return;
		p = c->count && proto_slot(c, c->count - 1)->live ? proto_slot(c, c->count - 1) :
								    NULL;
		if (p) {
			p->request_bytes += k + d->lead_bytes;
			d->skip_of = p->begin_pos;
		}
		d->lead_bytes = 0;
	} else if (c->protocol->in_order) {
		p = c->count && proto_slot(c, 0)->live ? proto_slot(c, 0) : NULL;
		if (p) {
			p->response_bytes += k;
			d->skip_of = p->begin_pos;
		}
	}
}

static void lose(struct proto_conn *c, enum proto_side from, uint64_t k)
{
	struct proto_dir *d = &c->dir[from];

	d->blind_bytes += k;
	d->skip = 0;
	d->in_message = d->going = false;
	d->synced = false;
	c->from = from;
	if (c->protocol->lost)
		c->protocol->lost(c, from);
	proto_tell(c, from);
	if (!c->protocol->in_order) {
		for (uint32_t i = 0; from == PROTO_SERVER && i < c->count; i++)
			proto_slot(c, i)->doubt = true;
		return;
	}
	if (from == PROTO_SERVER)
		proto_all_blind(c, PROTO_BLIND);
	proto_mark_hole(c);
}

/* ---- steps ---- */

/* The step at p looked at n bytes, or at less if it says so. What lies in the buffer came with
 * pieces before. */
static void looked_at(struct proto_conn *c, const uint8_t *p, size_t n)
{
	size_t to = c->piece_len;

	if (p >= c->piece && p < c->piece + c->piece_len)
		to = (size_t)(p - c->piece) + (c->looked && c->looked < n ? c->looked : n);
	if (to > c->needed)
		c->needed = to < c->piece_len ? to : c->piece_len;
}

/* One message at p, n > 0. Bytes of it (<= n), 0: more are needed, -1: synchrony is lost. */
static int64_t step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		    bool last)
{
	struct proto_dir *d = &c->dir[from];
	const struct protocol *protocol = c->protocol;
	int64_t k;

	c->asked = c->goes_on = c->unowned = d->unowned = c->apart = false;
	c->looked = 0;
	c->from = from;
	if (!d->going) {
		d->lead_bytes = 0;
		d->spoken = false;
		d->message_pos = c->at_pos;
	}
	c->step_pos = c->at_pos;
	c->at_pos = d->message_pos;
	k = protocol->step(c, from, p, n, last);
	looked_at(c, p, k > 0 && (uint64_t)k < n ? (size_t)k : n);
	if (c->protocol != protocol) /* switched: the rest is for the new protocol */
		return k < 0 || (uint64_t)k > n ? (int64_t)n : k;
	if (k == PROTO_MORE && !last)
		return 0;
	if (k <= 0 || (k != PROTO_ALL && k > PROTO_STEP_MAX))
		return -1;
	d->going = c->goes_on;
	if (k == PROTO_ALL) {
		d->skipping_all = true;
		count_bytes(c, from, n);
		return (int64_t)n;
	}
	count_bytes(c, from, (uint64_t)k);
	if ((uint64_t)k > n) {
		d->skip = (uint64_t)k - n;
		d->in_message = true;
		return (int64_t)n;
	}
	passed(c, from);
	return k;
}

/* Where a message may begin within n, n: nowhere. */
/* A message of this side begins with the piece at hand (`first`), or somewhere in it. */
static void begins(struct proto_conn *c, enum proto_side from, bool first)
{
	if (c->dir[from].going) /* the message started in an earlier step */
		return;
	c->dir[from].begin_ns = c->now_ns;
	c->dir[from].came_ns = first || c->together ? c->came_ns : 0;
}

static size_t find_start(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct proto_dir *d = &c->dir[from];
	size_t off = 0;

	while (off < n && !(c->protocol->starts && c->protocol->starts(c, from, p + off, n - off)))
		off++;
	d->blind_bytes += off;
	if (off < n) {
		d->synced = true;
		begins(c, from, p + off == c->piece);
	}
	return off;
}

static uint64_t pos_in_piece(const struct proto_conn *c, const uint8_t *p)
{
	return c->piece_pos + (uint64_t)(p - c->piece);
}

/* Steps over all whole messages; returns the bytes done with. `p` is at `pos` in the stream. Stops
 * when the protocol changes. */
static size_t steps(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		    uint64_t pos, bool last)
{
	const struct protocol *protocol = c->protocol;
	struct proto_dir *d = &c->dir[from];
	size_t off = 0;

	while (off < n && c->protocol == protocol) {
		int64_t k;

		if (d->skipping_all)
			return n;
		if (!d->synced) {
			off += find_start(c, from, p + off, n - off);
			continue;
		}
		c->at_pos = pos + off;
		k = step(c, from, p + off, n - off, last);
		if (!k)
			break;
		if (k < 0) {
			c->strayed |= !last;
			lose(c, from, 1);
			off++; /* never the same place twice */
			continue;
		}
		off += (size_t)k;
		begins(c, from, false);
	}
	return off;
}

static void restart(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n);

/* Skips what no step needs; returns how many of the n bytes that is. */
static size_t pass_over(struct proto_conn *c, enum proto_side from, size_t n)
{
	struct proto_dir *d = &c->dir[from];
	size_t k = d->skip < n ? (size_t)d->skip : n;

	if (!d->skip)
		return 0;
	d->skip -= k;
	if (!d->skip && d->in_message)
		passed(c, from);
	if (!d->skip)
		begins(c, from, false);
	return k;
}

/* Either the body comes now, or the next message. */
static void optional_over(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct proto_dir *d = &c->dir[from];

	d->optional = false;
	if (d->skip && c->protocol->starts && c->protocol->starts(c, from, p, n)) {
		d->skip = 0;
		d->in_message = d->going = false;
	}
}

/* Known bytes that follow what came before. */
static void take(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct proto_dir *d = &c->dir[from];

	while (n && c->protocol) {
		const struct protocol *protocol = c->protocol;
		size_t before = d->len, some, off;

		if (d->optional)
			optional_over(c, from, p, n);
		off = pass_over(c, from, n);

		p += off;
		n -= off;
		if (d->skipping_all) {
			if (c->done.set && c->done.from == from)
				c->done.p.response_bytes += n;
			return;
		}
		if (!n)
			return;
		if (!before) {
			begins(c, from, p == c->piece);
			off = steps(c, from, p, n, pos_in_piece(c, p), false);
			p += off;
			n -= off;
			if (c->protocol != protocol)
				continue;
			if (n >= BUFFER_MAX) { /* no step may wait for that much */
				off = steps(c, from, p, n, pos_in_piece(c, p), true);
				p += off;
				n -= off;
				continue;
			}
			if (n)
				buffer_keep(d, p, n, pos_in_piece(c, p));
			return;
		}
		some = n < APPEND ? n : APPEND;
		buffer_keep(d, p, some, 0);
		off = steps(c, from, d->buf, d->len, d->buf_pos, d->len >= BUFFER_MAX);
		/* the rest lies in the piece as well */
		if (c->protocol != protocol || off >= before) {
			size_t used = off > before ? off - before : 0;

			buffer_cut(d, d->len);
			p += used;
			n -= used;
			continue;
		}
		buffer_cut(d, off);
		p += some;
		n -= some;
	}
	if (n)
		restart(c, from, p, n);
}

static void hole(struct proto_conn *c, enum proto_side from, uint64_t k)
{
	struct proto_dir *d = &c->dir[from];

	if (d->skipping_all) {
		d->left_out += k;
		return;
	}
	if (d->len) { /* the last that can be made of it */
		size_t n = d->len;
		uint8_t *held = d->buf;

		d->buf = NULL;
		d->len = d->cap = 0;
		steps(c, from, held, n, d->buf_pos, true);
		free(held);
		if (!c->protocol)
			return;
	}
	if (d->synced && !d->unowned)
		d->left_out += d->skip < k ? d->skip : k;
	if (d->synced && d->skip >= k) {
		d->skip -= k;
		if (!d->skip && d->in_message)
			passed(c, from);
		return;
	}
	if (d->synced)
		lose(c, from, k - d->skip);
	else
		d->blind_bytes += k;
}

/* ---- which protocol ---- */

static void dir_reset(struct proto_dir *d)
{
	buffer_drop(d);
	d->skip = 0;
	d->skipping_all = d->in_message = d->going = false;
	d->synced = true;
}

void proto_become(struct proto_conn *c, const struct protocol *to, bool begun)
{
	if (c->protocol && c->protocol->release)
		c->protocol->release(c);
	if (c->protocol) {
		proto_tell_all(c);
		proto_all_blind(c, PROTO_BLIND);
	}
	free(c->state);
	c->state = NULL;
	c->protocol = to;
	if (!to)
		return;
	c->state = to->state_size ? mem_alloc(to->state_size) : NULL;
	if (to->begin)
		to->begin(c, begun);
	if (!begun && to->in_order)
		proto_mark_hole(c);
}

void proto_switch(struct proto_conn *c, const struct protocol *to)
{
	proto_become(c, to, true);
	for (int i = 0; i < 2; i++) {
		c->dir[i].skip = 0;
		c->dir[i].skipping_all = c->dir[i].in_message = c->dir[i].going = false;
		c->dir[i].synced = true;
	}
	c->begun = true;
}

/* From piece number `skip` on. */
static struct proto_first first_of(const struct proto_conn *c, uint32_t skip,
				   uint8_t side[2][SEEN_BYTES])
{
	struct proto_first f = {.begun = c->begun, .datagram = c->datagram, .port = c->port};
	size_t n[2] = {0};
	uint64_t end[2] = {0};
	bool cut[2] = {false}, met[2] = {false};

	for (uint32_t i = skip; i < c->seen->n; i++) {
		const struct seen_piece *s = &c->seen->pieces[i];
		int w = s->from;

		if (cut[w] || (met[w] && s->pos != end[w]) || (c->datagram && met[w])) {
			cut[w] = true;
			continue;
		}
		memcpy(side[w] + n[w], c->seen->bytes + s->at, s->len);
		n[w] += s->len;
		end[w] = s->pos + s->len;
		met[w] = true;
		cut[w] = s->len < s->size;
	}
	f.client = side[0];
	f.n_client = n[0];
	f.server = side[1];
	f.n_server = n[1];
	return f;
}

/* Sets *maybe if a protocol that is asked earlier needs more bytes to decide, or, in the midst of a
 * connection, if several fit. */
static const struct protocol *recognise(const struct proto_conn *c, const struct proto_first *f,
					uint32_t skip, bool swapped, bool *maybe)
{
	const struct protocol *found = NULL;

	for (const struct protocol *const *p = PROTOCOLS; *p; p++) {
		enum proto_guess g;

		if (f->datagram ? !(*p)->datagram : (*p)->datagram && !(*p)->stream_too)
			continue;
		g = (*p)->recognise(f);
		if (g == PROTO_MAYBE && !found)
			*maybe = true;
		if (g != PROTO_YES ||
		    (*maybe && !f->last && f->n_client + f->n_server < MAYBE_BYTES))
			continue;
		if (f->begun || f->datagram)
			return *p;
		if (!midway_reads(c, skip, swapped, *p))
			continue;
		if (found) {
			*maybe = true;
			return NULL;
		}
		found = *p;
	}
	return found;
}

static void feed_seen(struct proto_conn *c, const struct proto_seen *seen,
		      const struct seen_piece *s, size_t from, size_t to, int64_t at_ns)
{
	const struct proto_piece piece = {.from = s->from,
					  .pos = s->pos + from,
					  .at_ns = at_ns,
					  .bytes = seen->bytes + s->at + from,
					  .len = to - from,
					  .size = to < s->len ? to - from : s->size - from};

	c->now_ns = at_ns;
	c->came_ns = from ? 0 : s->came_ns;
	c->together = s->together;
	if (c->protocol)
		feed_known(c, &piece);
}

/* The pieces that were kept go in as if they came now. */
static void replay_seen(struct proto_conn *c)
{
	struct proto_seen *seen = c->seen;

	c->seen = NULL;
	for (uint32_t i = 0; i < seen->n; i++) {
		const struct seen_piece *s = &seen->pieces[i];

		c->now_ns = s->at_ns;
		if (s->missing && c->protocol)
			hole(c, s->from, s->missing);
		if (s->last)
			feed_seen(c, seen, s, 0, s->last, s->at_ns);
		feed_seen(c, seen, s, s->last, s->len, s->last ? s->last_ns : s->at_ns);
	}
	free(seen);
}

/* The position of each side is swapped with its pieces. */
static void swap_seen(struct proto_conn *c)
{
	struct proto_dir client = c->dir[PROTO_CLIENT];

	c->dir[PROTO_CLIENT] = c->dir[PROTO_SERVER];
	c->dir[PROTO_SERVER] = client;
	for (uint32_t i = 0; i < c->seen->n; i++)
		c->seen->pieces[i].from = !c->seen->pieces[i].from;
	c->turned = !c->turned;
}

/* What the pieces that were kept speak, without the first `skip`, as far as it is plain; NULL: see
 * *maybe. */
static const struct protocol *look(struct proto_conn *c, uint32_t skip, bool last, bool *maybe)
{
	uint8_t(*side)[SEEN_BYTES] = mem_alloc(2 * SEEN_BYTES);
	struct proto_first f = first_of(c, skip, side);
	const struct protocol *found;

	*maybe = false;
	f.last = last;
	found = recognise(c, &f, skip, false, maybe);
	if (!found && !c->role_known) {
		struct proto_first other = {.client = f.server,
					    .n_client = f.n_server,
					    .server = f.client,
					    .n_server = f.n_client,
					    .begun = f.begun,
					    .datagram = f.datagram,
					    .last = f.last};

		found = recognise(c, &other, skip, true, maybe);
		if (found)
			swap_seen(c);
	}
	free(side);
	return found;
}

/* The oldest piece is the end of something whose begin was not seen. */
static void drop_oldest(struct proto_conn *c)
{
	struct proto_seen *s = c->seen;
	enum proto_side from = s->pieces[0].from;

	c->dir[from].blind_bytes += s->pieces[0].size;
	memmove(s->pieces, s->pieces + 1, --s->n * sizeof(s->pieces[0]));
	for (uint32_t i = 0; i < s->n; i++)
		if (s->pieces[i].from == from) { /* its side begins here */
			c->dir[from].blind_bytes += s->pieces[i].missing;
			s->pieces[i].missing = 0;
			break;
		}
}

/* How many pieces one side sent before the other one spoke, if the sides have taken turns three
 * times since; else 0. */
static uint32_t joined_within(const struct proto_seen *s)
{
	uint32_t turns = 0, first = 0;

	for (uint32_t i = 1; i < s->n; i++) {
		if (s->pieces[i].from == s->pieces[i - 1].from)
			continue;
		first = turns++ ? first : i;
	}
	return turns > 3 ? first : 0;
}

/* What one side said first may be the end of something: what the rest speaks. */
static const struct protocol *look_behind(struct proto_conn *c)
{
	uint32_t skip = c->begun || c->datagram ? 0 : joined_within(c->seen);
	const struct protocol *found;
	bool maybe;

	found = skip ? look(c, skip, false, &maybe) : NULL;
	while (found && skip--)
		drop_oldest(c);
	return found;
}

/* `last`: no more bytes will come. */
static void guess(struct proto_conn *c, bool last)
{
	const struct protocol *found;
	enum proto_side first;
	bool maybe;

	last = last || c->seen->n >= SEEN_PIECES || c->seen->n_bytes >= SEEN_BYTES;
	found = look(c, 0, last, &maybe);
	if (!found && maybe && !last)
		found = look_behind(c);
	/* what one side said first may be the end of something: then what follows the turn begins
	 */
	for (first = c->seen->pieces[0].from; !found && (last || !maybe) && !c->begun &&
					      !c->datagram && c->seen->n > 1 &&
					      c->seen->pieces[0].from == first;) {
		drop_oldest(c);
		if (c->seen->pieces[0].from != first)
			found = look(c, 0, last, &maybe);
	}
	if (found) {
		c->role_known = true;
		proto_become(c, found, c->begun);
		replay_seen(c);
		return;
	}
	if (maybe && !last)
		return;
	for (uint32_t i = 0; i < c->seen->n; i++)
		c->dir[c->seen->pieces[i].from].blind_bytes += c->seen->pieces[i].size;
	free(c->seen);
	c->seen = NULL;
	c->begun = false;
	if (++c->n_tries >= TRIES)
		c->given_up = true;
}

/* Does it go on where the one before ends? Then it is part of that. */
static bool continues(const struct seen_piece *before, const struct proto_piece *piece,
		      uint64_t missing)
{
	return before->from == piece->from && before->len == before->size &&
	       piece->len == piece->size && !missing && before->pos + before->size == piece->pos;
}

static void feed_unknown(struct proto_conn *c, const struct proto_piece *piece, uint64_t missing)
{
	struct proto_seen *s;
	size_t room, n;

	if (!c->seen)
		c->seen = mem_alloc(sizeof(*c->seen));
	s = c->seen;
	room = SEEN_BYTES - s->n_bytes;
	n = piece->len < room ? piece->len : room;
	if (s->n >= SEEN_APART && !c->datagram && continues(&s->pieces[s->n - 1], piece, missing) &&
	    n == piece->len) {
		s->pieces[s->n - 1].last = s->pieces[s->n - 1].len;
		s->pieces[s->n - 1].last_ns = piece->at_ns;
		s->pieces[s->n - 1].len += (uint32_t)n;
		s->pieces[s->n - 1].size += piece->size;
		s->pieces[s->n - 1].together = false;
		memcpy(s->bytes + s->n_bytes, piece->bytes, n);
		s->n_bytes += (uint32_t)n;
		guess(c, false);
		return;
	}
	s->pieces[s->n++] = (struct seen_piece){.from = piece->from,
						.pos = piece->pos,
						.at_ns = piece->at_ns,
						.came_ns = c->came_ns,
						.together = c->together,
						.at = s->n_bytes,
						.len = (uint32_t)n,
						.size = piece->size,
						.missing = missing};
	memcpy(s->bytes + s->n_bytes, piece->bytes, n);
	s->n_bytes += (uint32_t)n;
	guess(c, false);
}

/* In the middle of a piece the two sides went over to something else, that is not known. */
static void restart(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct proto_piece piece = {.from = from,
				    .pos = c->dir[from].pos - n,
				    .at_ns = c->now_ns,
				    .bytes = p,
				    .len = n,
				    .size = n,
				    .came_ns = c->together ? c->came_ns : 0,
				    .together = c->together};

	dir_reset(&c->dir[from]);
	if (!c->given_up)
		feed_unknown(c, &piece, 0);
}

/* ---- pieces ---- */

/* The protocol is known: reports holes, cuts off what was seen before. */
static void feed_known(struct proto_conn *c, const struct proto_piece *piece)
{
	enum proto_side from = piece->from;
	struct proto_dir *d = &c->dir[from];

	if (c->count && from == PROTO_CLIENT && c->any_before && c->before == PROTO_SERVER &&
	    proto_slot(c, 0)->hole)
		proto_all_blind(c,
				PROTO_BLIND); /* the client speaks again: all before is answered */
	c->turn = !c->any_before || c->before != from;
	c->piece = piece->bytes;
	c->piece_len = piece->len;
	c->piece_pos = c->at_pos = piece->pos;
	c->needed = 0;
	c->before = from;
	c->any_before = true;
	if (c->datagram) {
		d->going = d->spoken = false;
		d->lead_bytes = 0;
		c->from = from;
		begins(c, from, true);
		d->synced = true;
		if (piece->len && c->protocol->step(c, from, piece->bytes, piece->len, true) > 0)
			count_bytes(c, from, piece->size);
		else
			d->blind_bytes += piece->size;
		if (c->done.set)
			c->done.p.response_bytes += c->done.p.response_bytes ? 0 : piece->size;
		proto_tell_all(c);
		return;
	}
	take(c, from, piece->bytes, piece->len);
	if (piece->size > piece->len && c->protocol)
		hole(c, from, piece->size - piece->len);
}

static bool place(struct proto_conn *c, struct proto_piece *piece, uint64_t *missing)
{
	struct proto_dir *d = &c->dir[piece->from];
	int64_t ahead;

	*missing = 0;
	if (!d->met) {
		d->met = d->synced = true;
		d->pos = piece->pos;
	}
	ahead = (int64_t)(piece->pos - d->pos);
	if (ahead < 0) {
		uint64_t old = (uint64_t)-ahead;

		if (old >= piece->size)
			return false;
		piece->pos += old;
		piece->size -= old;
		piece->bytes += old < piece->len ? old : piece->len;
		piece->len -= old < piece->len ? old : piece->len;
	} else {
		*missing = (uint64_t)ahead;
	}
	d->pos = piece->pos + piece->size;
	return true;
}

/* A balancer's words before the client's first ones are no part of what is spoken. */
static void proxyhead_skip(struct proto_conn *c, struct proto_piece *piece)
{
	struct proto_dir *d = &c->dir[PROTO_CLIENT];
	size_t n;

	if (!c->begun || c->datagram || piece->from != PROTO_CLIENT || d->met)
		return;
	n = proxyhead_size(piece->bytes, piece->len);
	d->met = d->synced = n > 0;
	piece->bytes += n;
	piece->len -= n;
	piece->size -= n;
	piece->pos += n;
	d->pos = piece->pos;
}

void proto_conn_feed(struct proto_conn *c, const struct proto_piece *given)
{
	struct proto_piece piece = *given;
	uint64_t missing = 0;

	if (c->turned)
		piece.from = !piece.from;
	proxyhead_skip(c, &piece);
	if (!piece.size || piece.size < piece.len || (!c->datagram && !place(c, &piece, &missing)))
		return;
	c->now_ns = c->dir[piece.from].last_ns = piece.at_ns;
	c->came_ns = piece.bytes == given->bytes || piece.together ? piece.came_ns : 0;
	c->together = piece.together;
	if (c->given_up) {
		c->dir[piece.from].blind_bytes += piece.size;
		return;
	}
	if (missing && c->protocol)
		hole(c, piece.from, missing);
	if (c->protocol)
		feed_known(c, &piece);
	else
		feed_unknown(c, &piece, missing);
}

/* This side has ended. An answer whose last bytes never came becomes `cut`. */
static void side_over(struct proto_conn *c, enum proto_side from, enum proto_result cut, bool reset)
{
	struct proto_dir *d = &c->dir[from];

	d->ended = true;
	c->cut = cut;
	c->cutting = (d->len && d->synced) || d->skip || d->going || (reset && d->skipping_all);
	c->from = from;
	if (d->len && d->synced)
		hole(c, from, 0);
	if (c->protocol && c->protocol->ended)
		c->protocol->ended(c, from);
	if (c->protocol)
		proto_tell(c, from);
	c->cutting = false;
}

static void time_is(struct proto_conn *c, int64_t at_ns)
{
	c->now_ns = at_ns > c->now_ns ? at_ns : c->now_ns;
}

static void end_side(struct proto_conn *c, enum proto_side from, int64_t at_ns, bool reset)
{
	int64_t now_ns;

	if (c->dir[from].ended)
		return;
	c->dir[from].ended = true;
	if (!c->protocol)
		return;
	time_is(c, at_ns);
	now_ns = c->now_ns; /* what ends so was there with its last byte, whenever the end came */
	c->now_ns = c->dir[from].skipping_all ? c->dir[from].last_ns : now_ns;
	side_over(c, from, PROTO_NO_ANSWER, reset);
	c->now_ns = now_ns;
}

/* No more bytes will come: accept a protocol that fits what is there. */
static void guess_at_last(struct proto_conn *c)
{
	if (c->protocol || !c->seen)
		return;
	guess(c, true);
}

void proto_conn_end(struct proto_conn *c, enum proto_side from, int64_t at_ns)
{
	end_side(c, c->turned ? !from : from, at_ns, false);
}

/* The result of a question that has no answer; `ended`: the server will send no more. */
static enum proto_result unanswered(const struct proto_conn *c, bool ended)
{
	bool hole = c->count && c->protocol->in_order && proto_slot(c, 0)->hole;

	return ended && c->dir[PROTO_SERVER].synced && !hole ? PROTO_NO_ANSWER : PROTO_BLIND;
}

static void close_both(struct proto_conn *c, int64_t at_ns, bool reset)
{
	if (!c->protocol) {
		guess_at_last(c);
		c->dir[0].ended = c->dir[1].ended = false;
	}
	end_side(c, PROTO_CLIENT, at_ns, reset);
	end_side(c, PROTO_SERVER, at_ns, reset);
	if (!c->protocol)
		return;
	proto_tell_all(c);
	proto_all_blind(c, unanswered(c, true));
}

void proto_conn_close(struct proto_conn *c, int64_t at_ns)
{
	close_both(c, at_ns, false);
}

void proto_conn_reset(struct proto_conn *c, int64_t at_ns)
{
	close_both(c, at_ns, true);
}

size_t proto_conn_stop(struct proto_conn *c, int64_t at_ns)
{
	size_t open;

	guess_at_last(c);
	if (!c->protocol)
		return 0;
	time_is(c, at_ns);
	for (int i = 0; i < 2 && c->protocol; i++)
		if (!c->dir[i].ended && c->dir[i].len && c->dir[i].synced) {
			c->cut = PROTO_BLIND;
			c->cutting = true;
			hole(c, (enum proto_side)i, 0);
		}
	open = proto_conn_open(c);
	c->cut = PROTO_BLIND;
	c->cutting = true;
	proto_tell_all(c);
	c->cutting = false;
	if (c->protocol)
		proto_all_blind(c, unanswered(c, c->dir[PROTO_SERVER].ended));
	return open;
}

struct proto_conn *proto_conn_new(struct protocols *s, bool begun, bool datagram, uint16_t port,
				  void *user)
{
	struct proto_conn *c = mem_alloc(sizeof(*c));

	c->of = s;
	c->begun = begun;
	c->role_known = begun;
	c->datagram = datagram;
	c->port = port;
	c->user = user;
	c->dir[0].synced = c->dir[1].synced = true;
	return c;
}

void proto_conn_free(struct proto_conn *c)
{
	if (!c)
		return;
	if (c->protocol && c->protocol->release)
		c->protocol->release(c);
	for (uint32_t i = 0; i < c->count; i++)
		free(proto_slot(c, i)->trace);
	if (c->done.set)
		free(c->done.p.trace);
	proto_inner_free(c);
	free(c->pending);
	free(c->state);
	free(c->seen);
	free(c->dir[0].buf);
	free(c->dir[1].buf);
	free(c);
}

size_t proto_conn_memory(const struct proto_conn *c)
{
	return sizeof(*c) + c->cap * sizeof(*c->pending) +
	       (c->protocol ? c->protocol->state_size : 0) + c->dir[0].cap + c->dir[1].cap +
	       (c->seen ? sizeof(*c->seen) : 0);
}
