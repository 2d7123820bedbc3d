/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn: see the headers. A piece goes: place in the stream (overlap is cut off, a hole is told),
 * then what is to be passed over, then messages, one step after the other, out of the piece itself
 * where nothing is kept from before; what remains is kept.
 */
#include "loaders/lib/protocols/conn.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "schema/base/mem.h"

#define BUFFER_MAX  65536
#define BUFFER_KEPT 512 /* an empty buffer of more is freed */
#define APPEND      4096
#define PENDING_MAX 16384
#define SEEN_BYTES  16384 /* kept until the protocol is known */
#define SEEN_PIECES 48
#define TRIES       8
/* a later protocol's yes stands after so much, though an earlier one still asks for more */
#define MAYBE_BYTES 1024

struct proto_seen {
	struct seen_piece {
		enum proto_side from;
		uint64_t pos;
		int64_t at_ns, came_ns;
		bool together;
		uint32_t at, len;
		size_t size;
		uint64_t missing; /* before it */
	} pieces[SEEN_PIECES];
	uint32_t n, n_bytes;
	uint8_t bytes[SEEN_BYTES];
};

static void feed_known(struct proto_conn *c, const struct proto_piece *piece);

/* ---- questions ---- */

static struct proto_pending *slot(const struct proto_conn *c, uint32_t i)
{
	return &c->pending[(c->head + i) & (c->cap - 1)];
}

static void emit(struct proto_conn *c, struct proto_pending *p, enum proto_result result,
		 const char *status, int64_t end_ns)
{
	const struct proto_request r = {.protocol = c->protocol->name,
					.operation = protocols_name(c->of, p->operation),
					.operation_id = p->operation,
					.status = status,
					.trace = p->trace,
					.result = result,
					.begin_ns = p->begin_ns,
					.sent_ns = p->sent_ns,
					.came_ns = p->came_ns,
					.first_ns = result == PROTO_BLIND ? 0 : p->first_ns,
					.end_ns = end_ns,
					.request_bytes = p->request_bytes,
					.response_bytes = p->response_bytes,
					.caller = p->caller,
					.begin_pos = p->begin_pos,
					.user = c->user};

	protocols_emit(c->of, &r);
	free(p->trace);
	p->trace = NULL;
}

void proto_named(struct proto_conn *c, const char *name, const uint8_t *address, size_t len)
{
	const struct proto_named x = {
		.name = name, .address = address, .len = len, .at_ns = c->now_ns, .user = c->user};

	protocols_named(c->of, &x);
}

static void pop_answered(struct proto_conn *c)
{
	while (c->count && !slot(c, 0)->live && !slot(c, 0)->hole) {
		c->head = (c->head + 1) & (c->cap - 1);
		c->count--;
	}
	if (!c->count && c->cap > 16) {
		free(c->pending);
		c->pending = NULL;
		c->cap = c->head = 0;
	}
}

static struct proto_pending *push(struct proto_conn *c)
{
	struct proto_pending *wider;

	if (c->count == c->cap) {
		uint32_t cap, n = 0;

		for (uint32_t i = 0; i < c->count; i++)
			n += slot(c, i)->live || slot(c, i)->hole;
		cap = !c->cap ? 1 : n * 2 > c->cap ? c->cap * 2 : c->cap;
		n = 0;
		wider = mem_array(cap, sizeof(*wider));
		for (uint32_t i = 0; i < c->count; i++)
			if (slot(c, i)->live || slot(c, i)->hole) /* answered ones go */
				wider[n++] = *slot(c, i);
		c->count = n;
		free(c->pending);
		c->pending = wider;
		c->cap = cap;
		c->head = 0;
	}
	wider = slot(c, c->count++);
	memset(wider, 0, sizeof(*wider));
	return wider;
}

/* Nothing can be matched with these any more. */
static void all_blind(struct proto_conn *c, enum proto_result result)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct proto_pending *p = slot(c, i);

		if (p->live)
			emit(c, p, p->doubt ? PROTO_BLIND : result, "", 0);
		p->live = p->hole = false;
	}
	pop_answered(c);
}

static void mark_hole(struct proto_conn *c)
{
	if (c->count && slot(c, c->count - 1)->hole)
		return;
	push(c)->hole = true;
}

struct proto_pending *proto_ask(struct proto_conn *c, uint32_t operation, uint64_t id)
{
	struct proto_pending *p;

	if (c->count >= PENDING_MAX) { /* the oldest will not be known */
		p = slot(c, 0);
		if (p->live)
			emit(c, p, PROTO_BLIND, "", 0);
		p->live = p->hole = false;
		pop_answered(c);
	}
	p = push(c);
	p->live = true;
	p->operation = operation;
	p->id = id;
	p->begin_ns = c->dir[PROTO_CLIENT].begin_ns;
	p->came_ns = c->dir[PROTO_CLIENT].came_ns;
	p->begin_pos = c->at_pos;
	p->sent_ns = c->now_ns;
	c->asked = true;
	return p;
}

struct proto_pending *proto_oldest(struct proto_conn *c)
{
	pop_answered(c);
	return c->count && slot(c, 0)->live ? slot(c, 0) : NULL;
}

struct proto_pending *proto_second(struct proto_conn *c)
{
	for (uint32_t i = 1; i < c->count && !slot(c, i)->hole; i++)
		if (slot(c, i)->live)
			return slot(c, i);
	return NULL;
}

struct proto_pending *proto_newest(struct proto_conn *c)
{
	for (uint32_t i = c->count; i--;)
		if (slot(c, i)->live)
			return slot(c, i);
	return NULL;
}

struct proto_pending *proto_find(struct proto_conn *c, uint64_t id)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (slot(c, i)->live && slot(c, i)->id == id)
			return slot(c, i);
	return NULL;
}

struct proto_pending *proto_between(struct proto_conn *c, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (slot(c, i)->live && slot(c, i)->id >= low && slot(c, i)->id <= high)
			return slot(c, i);
	return NULL;
}

void proto_trace(struct proto_pending *p, const uint8_t *text, size_t n)
{
	free(p->trace);
	p->trace = mem_strndup((const char *)text, n < 128 ? n : 128);
}

void proto_first_byte(struct proto_conn *c, struct proto_pending *p)
{
	if (!p->first_ns)
		p->first_ns = c->dir[PROTO_SERVER].begin_ns;
}

static void tell_done(struct proto_conn *c)
{
	if (!c->done.set)
		return;
	c->done.set = false;
	emit(c, &c->done.p, c->done.result, c->done.status, c->now_ns);
}

void proto_answer(struct proto_conn *c, struct proto_pending *p, enum proto_result result,
		  const char *status)
{
	size_t n = strnlen(status, PROTO_STATUS_MAX - 1);

	tell_done(c); /* the one before in the same message */
	proto_first_byte(c, p);
	c->done.p = *p;
	c->done.result = result;
	c->done.set = true;
	memcpy(c->done.status, status, n);
	c->done.status[n] = '\0';
	p->trace = NULL;
	p->live = false;
	pop_answered(c);
}

void proto_opened(struct proto_conn *c, struct proto_pending *p, const char *status)
{
	proto_answer(c, p, PROTO_OPENED, status);
	tell_done(c);
}

void proto_forget(struct proto_conn *c, struct proto_pending *p)
{
	free(p->trace);
	p->trace = NULL;
	p->live = false;
	if (c->count && p == slot(c, c->count - 1))
		c->count--;
	pop_answered(c);
}

static void tell_at_once(struct proto_conn *c, uint32_t operation, enum proto_result result)
{
	struct proto_pending p = {.operation = operation,
				  .sent_ns = c->now_ns,
				  .begin_pos = c->at_pos,
				  .came_ns = c->dir[PROTO_CLIENT].came_ns,
				  .begin_ns = c->dir[PROTO_CLIENT].begin_ns ?
						      c->dir[PROTO_CLIENT].begin_ns :
						      c->now_ns};

	emit(c, &p, result, "", 0);
}

void proto_one_way(struct proto_conn *c, uint32_t operation)
{
	tell_at_once(c, operation, PROTO_ONE_WAY);
}

void proto_blind(struct proto_conn *c, uint32_t operation)
{
	tell_at_once(c, operation, PROTO_BLIND);
}

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

/* A message (with what was passed over) is over. */
static void passed(struct proto_conn *c, enum proto_side from)
{
	struct proto_pending *p;

	c->dir[from].in_message = false;
	if (from == PROTO_SERVER)
		tell_done(c);
	if (from == PROTO_CLIENT && c->protocol->in_order) {
		p = proto_newest(c);
		if (p && !p->first_ns)
			p->sent_ns = c->now_ns;
	}
}

static void count_bytes(struct proto_conn *c, enum proto_side from, uint64_t k)
{
	struct proto_pending *p;

	if (from == PROTO_CLIENT) {
		if (!c->asked && !c->protocol->in_order) /* part of which one, the protocol knows */
			return;
		p = c->count && slot(c, c->count - 1)->live ? slot(c, c->count - 1) : NULL;
		if (p)
			p->request_bytes += k;
	} else if (c->done.set) {
		c->done.p.response_bytes += k;
	} else if (c->protocol->in_order) {
		p = c->count && slot(c, 0)->live ? slot(c, 0) : NULL;
		if (p)
			p->response_bytes += k;
	}
}

static void lose(struct proto_conn *c, enum proto_side from, uint64_t k)
{
	struct proto_dir *d = &c->dir[from];

	d->blind_bytes += k;
	d->skip = 0;
	d->in_message = false;
	d->synced = false;
	if (c->protocol->lost)
		c->protocol->lost(c, from);
	if (c->done.set && from == PROTO_SERVER)
		tell_done(c);
	if (!c->protocol->in_order) {
		for (uint32_t i = 0; from == PROTO_SERVER && i < c->count; i++)
			slot(c, i)->doubt = true;
		return;
	}
	if (from == PROTO_SERVER)
		all_blind(c, PROTO_BLIND);
	mark_hole(c);
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

	c->asked = false;
	c->looked = 0;
	k = protocol->step(c, from, p, n, last);
	looked_at(c, p, k > 0 && (uint64_t)k < n ? (size_t)k : n);
	if (c->protocol != protocol) /* switched: the rest is for somebody else */
		return k < 0 || (uint64_t)k > n ? (int64_t)n : k;
	if (k == PROTO_MORE && !last)
		return 0;
	if (k <= 0 || (k != PROTO_ALL && k > PROTO_STEP_MAX))
		return -1;
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

/* As many messages as are whole; bytes that are done with. `p` stands at `pos`. Stops where the
 * protocol is another one. */
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

/* What nobody needs to look at; bytes of the n that belong to it. */
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

/* Known bytes that follow what came before. */
static void take(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct proto_dir *d = &c->dir[from];

	while (n && c->protocol) {
		const struct protocol *protocol = c->protocol;
		size_t before = d->len, some, off = pass_over(c, from, n);

		p += off;
		n -= off;
		if (d->skipping_all) {
			if (c->done.set && from == PROTO_SERVER)
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
			if (n >= BUFFER_MAX) { /* nobody waits for so much */
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

	if (d->skipping_all)
		return;
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
	d->skipping_all = d->in_message = false;
	d->synced = true;
}

static void become(struct proto_conn *c, const struct protocol *to, bool begun)
{
	if (c->protocol && c->protocol->release)
		c->protocol->release(c);
	if (c->protocol) {
		tell_done(c);
		all_blind(c, PROTO_BLIND);
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
		mark_hole(c);
}

void proto_switch(struct proto_conn *c, const struct protocol *to)
{
	become(c, to, true);
	for (int i = 0; i < 2; i++) {
		c->dir[i].skip = 0;
		c->dir[i].skipping_all = c->dir[i].in_message = false;
		c->dir[i].synced = true;
	}
	c->begun = true;
}

static struct proto_first first_of(const struct proto_conn *c, uint8_t side[2][SEEN_BYTES])
{
	struct proto_first f = {.begun = c->begun, .datagram = c->datagram, .port = c->port};
	size_t n[2] = {0};
	uint64_t end[2] = {0};
	bool cut[2] = {false}, met[2] = {false};

	for (uint32_t i = 0; i < c->seen->n; i++) {
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

static const struct protocol *recognise(const struct proto_first *f, bool *maybe)
{
	for (const struct protocol *const *p = PROTOCOLS; *p; p++) {
		enum proto_guess g;

		if (f->datagram ? !(*p)->datagram : (*p)->datagram && !(*p)->stream_too)
			continue;
		g = (*p)->recognise(f);
		if (g == PROTO_MAYBE)
			*maybe = true;
		if (g == PROTO_YES && (!*maybe || f->n_client + f->n_server >= MAYBE_BYTES))
			return *p;
	}
	return NULL;
}

/* The pieces that were kept go in as if they came now. */
static void replay_seen(struct proto_conn *c)
{
	struct proto_seen *seen = c->seen;

	c->seen = NULL;
	for (uint32_t i = 0; i < seen->n; i++) {
		const struct seen_piece *s = &seen->pieces[i];
		const struct proto_piece piece = {.from = s->from,
						  .pos = s->pos,
						  .at_ns = s->at_ns,
						  .bytes = seen->bytes + s->at,
						  .len = s->len,
						  .size = s->size};

		c->now_ns = s->at_ns;
		c->came_ns = s->came_ns;
		c->together = s->together;
		if (s->missing && c->protocol)
			hole(c, s->from, s->missing);
		if (c->protocol)
			feed_known(c, &piece);
	}
	free(seen);
}

/* With the pieces goes where each side stands. */
static void swap_seen(struct proto_conn *c)
{
	struct proto_dir client = c->dir[PROTO_CLIENT];

	c->dir[PROTO_CLIENT] = c->dir[PROTO_SERVER];
	c->dir[PROTO_SERVER] = client;
	for (uint32_t i = 0; i < c->seen->n; i++)
		c->seen->pieces[i].from = !c->seen->pieces[i].from;
	c->turned = !c->turned;
}

static void guess(struct proto_conn *c)
{
	uint8_t(*side)[SEEN_BYTES] = mem_alloc(2 * SEEN_BYTES);
	struct proto_first f = first_of(c, side);
	bool maybe = false;
	const struct protocol *found = recognise(&f, &maybe);

	if (!found && !c->role_known) {
		struct proto_first other = {.client = f.server,
					    .n_client = f.n_server,
					    .server = f.client,
					    .n_server = f.n_client,
					    .begun = f.begun,
					    .datagram = f.datagram};

		found = recognise(&other, &maybe);
		if (found)
			swap_seen(c);
	}
	free(side);
	if (found) {
		c->role_known = true;
		become(c, found, c->begun);
		replay_seen(c);
		return;
	}
	if (maybe && c->seen->n < SEEN_PIECES && c->seen->n_bytes < SEEN_BYTES)
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
	if (s->n && !c->datagram && continues(&s->pieces[s->n - 1], piece, missing) &&
	    n == piece->len) {
		s->pieces[s->n - 1].len += (uint32_t)n;
		s->pieces[s->n - 1].size += piece->size;
		s->pieces[s->n - 1].together = false;
		memcpy(s->bytes + s->n_bytes, piece->bytes, n);
		s->n_bytes += (uint32_t)n;
		guess(c);
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
	guess(c);
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

/* The protocol is known: holes are told, what was seen before is cut off. */
static void feed_known(struct proto_conn *c, const struct proto_piece *piece)
{
	enum proto_side from = piece->from;
	struct proto_dir *d = &c->dir[from];

	if (c->count && from == PROTO_CLIENT && c->any_before && c->before == PROTO_SERVER &&
	    slot(c, 0)->hole)
		all_blind(c, PROTO_BLIND); /* the client speaks again: all before is answered */
	c->turn = !c->any_before || c->before != from;
	c->piece = piece->bytes;
	c->piece_len = piece->len;
	c->piece_pos = c->at_pos = piece->pos;
	c->needed = 0;
	c->before = from;
	c->any_before = true;
	if (c->datagram) {
		begins(c, from, true);
		d->synced = true;
		if (piece->len && c->protocol->step(c, from, piece->bytes, piece->len, true) > 0)
			count_bytes(c, from, piece->size);
		else
			d->blind_bytes += piece->size;
		if (c->done.set)
			c->done.p.response_bytes += c->done.p.response_bytes ? 0 : piece->size;
		tell_done(c);
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

void proto_conn_feed(struct proto_conn *c, const struct proto_piece *given)
{
	struct proto_piece piece = *given;
	uint64_t missing = 0;

	if (c->turned)
		piece.from = !piece.from;
	if (!piece.size || piece.size < piece.len || (!c->datagram && !place(c, &piece, &missing)))
		return;
	c->now_ns = piece.at_ns;
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

void proto_conn_end(struct proto_conn *c, enum proto_side from, int64_t at_ns)
{
	struct proto_dir *d;

	if (c->turned)
		from = !from;
	d = &c->dir[from];
	if (d->ended)
		return;
	d->ended = true;
	if (!c->protocol)
		return;
	c->now_ns = at_ns > c->now_ns ? at_ns : c->now_ns;
	if (d->len && d->synced)
		hole(c, from, 0);
	if (c->protocol && c->protocol->ended)
		c->protocol->ended(c, from);
	if (c->done.set && from == PROTO_SERVER)
		tell_done(c);
}

void proto_conn_close(struct proto_conn *c, int64_t at_ns)
{
	proto_conn_end(c, c->turned ? PROTO_SERVER : PROTO_CLIENT, at_ns);
	proto_conn_end(c, c->turned ? PROTO_CLIENT : PROTO_SERVER, at_ns);
	if (!c->protocol)
		return;
	tell_done(c);
	all_blind(c, c->dir[PROTO_SERVER].synced &&
				     !(c->count && c->protocol->in_order && slot(c, 0)->hole) ?
			     PROTO_NO_ANSWER :
			     PROTO_BLIND);
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
		free(slot(c, i)->trace);
	if (c->done.set)
		free(c->done.p.trace);
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
