/* SPDX-License-Identifier: Apache-2.0 */
/* connask: the questions of a connection, from proto_ask to the report; and the getters of conn.h.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "schema/base/mem.h"

#define PENDING_MAX 16384

/* ---- questions ---- */

struct proto_pending *proto_slot(const struct proto_conn *c, uint32_t i)
{
	return &c->pending[(c->head + i) & (c->cap - 1)];
}

/* Of a message's bytes, those that have not come: it is cut, or was answered before its end. */
static uint64_t without_rest(const struct proto_conn *c, enum proto_side side,
			     const struct proto_pending *p, uint64_t bytes)
{
	const struct proto_dir *d = &c->dir[side];
	uint64_t rest = d->in_message && d->skip_of == p->begin_pos ? d->skip : 0;

	return bytes - (rest < bytes ? rest : bytes);
}

static struct proto_request request_of(const struct proto_conn *c, const struct proto_pending *p,
				       enum proto_result result, const char *status)
{
	return (struct proto_request){
		.protocol = p->as ? p->as : c->protocol->name,
		.operation = protocols_name(c->of, p->operation),
		.operation_id = p->operation,
		.status = status,
		.trace = p->trace,
		.result = result,
		.begin_ns = p->begin_ns,
		.sent_ns = p->sent_ns,
		.came_ns = p->came_ns,
		.first_ns = p->first_ns,
		.request_bytes = without_rest(c, PROTO_CLIENT, p, p->request_bytes),
		.response_bytes = without_rest(c, PROTO_SERVER, p, p->response_bytes),
		.caller = p->caller,
		.begin_pos = p->begin_pos,
		.user = c->user};
}

static void emit(struct proto_conn *c, struct proto_pending *p, enum proto_result result,
		 const char *status, int64_t end_ns)
{
	struct proto_request r = request_of(c, p, result, status);

	if (result == PROTO_BLIND)
		r.first_ns = 0;
	r.end_ns = end_ns && p->over_ns ? p->over_ns : end_ns;
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
	while (c->count && !proto_slot(c, 0)->live && !proto_slot(c, 0)->hole) {
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
			n += proto_slot(c, i)->live || proto_slot(c, i)->hole;
		cap = !c->cap ? 1 : n * 2 > c->cap ? c->cap * 2 : c->cap;
		n = 0;
		wider = mem_array(cap, sizeof(*wider));
		for (uint32_t i = 0; i < c->count; i++)
			if (proto_slot(c, i)->live || proto_slot(c, i)->hole) /* answered ones go */
				wider[n++] = *proto_slot(c, i);
		c->count = n;
		free(c->pending);
		c->pending = wider;
		c->cap = cap;
		c->head = 0;
	}
	wider = proto_slot(c, c->count++);
	memset(wider, 0, sizeof(*wider));
	return wider;
}

/* Nothing can be matched with these any more. */
void proto_all_blind(struct proto_conn *c, enum proto_result result)
{
	bool beyond = false; /* a hole: what was answered there cannot be known */

	for (uint32_t i = 0; i < c->count; i++) {
		struct proto_pending *p = proto_slot(c, i);

		beyond = beyond || p->hole;
		if (p->live && !p->told)
			emit(c, p, p->doubt || beyond ? PROTO_BLIND : result, "", 0);
		p->live = p->hole = false;
	}
	pop_answered(c);
}

void proto_mark_hole(struct proto_conn *c)
{
	if (c->count && proto_slot(c, c->count - 1)->hole)
		return;
	push(c)->hole = true;
}

struct proto_pending *proto_ask(struct proto_conn *c, uint32_t operation, uint64_t id)
{
	struct proto_pending *p;

	if (c->count >= PENDING_MAX) { /* the oldest will not be known */
		p = proto_slot(c, 0);
		if (p->live && !p->told)
			emit(c, p, PROTO_BLIND, "", 0);
		p->live = p->hole = false;
		pop_answered(c);
	}
	/* its number is in use again: its answer has been, unseen */
	p = c->protocol->in_order || c->datagram ? NULL : proto_find(c, id);
	if (p && p->doubt) {
		if (!p->told)
			emit(c, p, PROTO_BLIND, "", 0);
		p->live = false;
		pop_answered(c);
	}
	p = push(c);
	p->live = true;
	p->operation = operation;
	p->id = id;
	p->begin_ns = c->dir[PROTO_CLIENT].begin_ns;
	p->came_ns = c->dir[PROTO_CLIENT].came_ns;
	p->begin_pos = c->at_pos;
	p->doubt = !c->dir[PROTO_SERVER].synced; /* answers pass unread */
	p->sent_ns = c->now_ns;
	if (c->from == PROTO_CLIENT) {
		p->request_bytes = c->dir[PROTO_CLIENT].lead_bytes;
		c->dir[PROTO_CLIENT].lead_bytes = 0;
		c->dir[PROTO_CLIENT].spoken = true;
	}
	c->asked = true;
	return p;
}

struct proto_pending *proto_oldest(struct proto_conn *c)
{
	pop_answered(c);
	return c->count && proto_slot(c, 0)->live ? proto_slot(c, 0) : NULL;
}

struct proto_pending *proto_second(struct proto_conn *c)
{
	for (uint32_t i = 1; i < c->count && !proto_slot(c, i)->hole; i++)
		if (proto_slot(c, i)->live)
			return proto_slot(c, i);
	return NULL;
}

struct proto_pending *proto_newest(struct proto_conn *c)
{
	for (uint32_t i = c->count; i--;)
		if (proto_slot(c, i)->live)
			return proto_slot(c, i);
	return NULL;
}

struct proto_pending *proto_find(struct proto_conn *c, uint64_t id)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (proto_slot(c, i)->live && proto_slot(c, i)->id == id)
			return proto_slot(c, i);
	return NULL;
}

struct proto_pending *proto_between(struct proto_conn *c, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (proto_slot(c, i)->live && proto_slot(c, i)->id >= low &&
		    proto_slot(c, i)->id <= high)
			return proto_slot(c, i);
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
		p->first_ns = c->from == PROTO_SERVER ? c->dir[PROTO_SERVER].begin_ns : c->now_ns;
}

static void tell_done(struct proto_conn *c)
{
	struct proto_done *d = &c->done;
	bool cut = c->cutting && d->result == PROTO_OK;

	if (!d->set)
		return;
	d->set = false;
	if (cut)
		emit(c, &d->p, c->cut, c->cut == PROTO_NO_ANSWER ? "cut" : "", 0);
	else
		emit(c, &d->p, d->result, d->status, c->now_ns);
}

static void tell_unasked(struct proto_conn *c)
{
	struct proto_done *d = &c->unasked;

	if (!d->set)
		return;
	d->set = false;
	if (d->result != PROTO_ERROR)
		d->p.sent_ns = c->now_ns;
	emit(c, &d->p, d->result, d->status, d->result == PROTO_ERROR ? c->now_ns : 0);
}

void proto_tell(struct proto_conn *c, enum proto_side from)
{
	if (c->done.from == from)
		tell_done(c);
	if (c->unasked.from == from)
		tell_unasked(c);
}

void proto_tell_all(struct proto_conn *c)
{
	tell_done(c);
	tell_unasked(c);
}

static void set_status(struct proto_done *d, const char *status)
{
	size_t n = strnlen(status, PROTO_STATUS_MAX - 1);

	memcpy(d->status, status, n);
	d->status[n] = '\0';
}

void proto_answer(struct proto_conn *c, struct proto_pending *p, enum proto_result result,
		  const char *status)
{
	struct proto_dir *server = &c->dir[PROTO_SERVER];

	tell_done(c); /* the one before in the same message */
	proto_first_byte(c, p);
	if (c->protocol->ids_again && p->doubt) {
		result = PROTO_BLIND; /* this may be the answer to a later one, which is missing */
		status = "";
		c->unowned = true;
	}
	c->done.p = *p;
	c->done.result = result;
	c->done.from = c->from;
	c->done.set = true;
	set_status(&c->done, status);
	if (c->from == PROTO_SERVER && !c->protocol->in_order) {
		c->done.p.response_bytes += server->lead_bytes;
		server->lead_bytes = 0;
	}
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
	if (c->count && p == proto_slot(c, c->count - 1))
		c->count--;
	pop_answered(c);
}

static void unasked(struct proto_conn *c, uint32_t operation, enum proto_result result,
		    const char *status)
{
	struct proto_dir *d = &c->dir[c->from];
	struct proto_done *u = &c->unasked;

	tell_unasked(c); /* the one before in the same message */
	u->p = (struct proto_pending){.operation = operation,
				      .begin_pos = c->at_pos,
				      .came_ns = d->came_ns,
				      .begin_ns = d->begin_ns ? d->begin_ns : c->now_ns};
	u->p.sent_ns = u->p.begin_ns;
	u->p.first_ns = result == PROTO_ERROR ? u->p.begin_ns : 0;
	*(c->from == PROTO_CLIENT ? &u->p.request_bytes : &u->p.response_bytes) = d->lead_bytes;
	d->lead_bytes = 0;
	d->spoken = true;
	u->result = result;
	u->from = c->from;
	u->set = true;
	set_status(u, status);
}

void proto_one_way(struct proto_conn *c, uint32_t operation)
{
	unasked(c, operation, PROTO_ONE_WAY, "");
}

void proto_blind(struct proto_conn *c, uint32_t operation)
{
	unasked(c, operation, PROTO_BLIND, "");
}

void proto_refused(struct proto_conn *c, uint32_t operation, const char *status)
{
	unasked(c, operation, PROTO_ERROR, status);
}

void proto_begins_here(struct proto_conn *c)
{
	struct proto_dir *d = &c->dir[c->from];

	d->begin_ns = c->now_ns;
	d->came_ns = c->together ? c->came_ns : 0;
	c->at_pos = d->message_pos = c->step_pos;
}

void proto_begins_anew(struct proto_conn *c)
{
	struct proto_dir *d = &c->dir[c->from];

	if (!d->going)
		return;
	proto_tell(c, c->from);
	d->going = d->spoken = false;
	d->lead_bytes = 0;
	proto_begins_here(c);
}

void proto_unowned(struct proto_conn *c)
{
	c->unowned = true;
}

void proto_apart(struct proto_conn *c)
{
	c->apart = true;
}

void proto_goes_on(struct proto_conn *c)
{
	c->goes_on = true;
}

/* ---- getters ---- */

const char *proto_conn_protocol(const struct proto_conn *c)
{
	return c->protocol ? c->protocol->name : "";
}

bool proto_conn_swapped(const struct proto_conn *c)
{
	return c->turned;
}

uint64_t proto_conn_blind_bytes(const struct proto_conn *c)
{
	return c->dir[0].blind_bytes + c->dir[1].blind_bytes;
}

uint64_t proto_conn_left_out(const struct proto_conn *c)
{
	return c->dir[0].left_out + c->dir[1].left_out;
}

uint64_t proto_conn_blind_bytes_of(const struct proto_conn *c, enum proto_side side)
{
	return c->dir[c->turned ? !side : side].blind_bytes;
}

uint64_t proto_conn_skips(const struct proto_conn *c, enum proto_side from)
{
	const struct proto_dir *d = &c->dir[c->turned ? !from : from];

	if (!c->protocol || c->datagram)
		return 0;
	return d->skipping_all ? UINT64_MAX : d->len ? 0 : d->skip;
}

size_t proto_conn_needed(const struct proto_conn *c)
{
	return c->ends_matter ? c->piece_len : c->needed;
}

bool proto_conn_hopeless(const struct proto_conn *c)
{
	return c->given_up;
}

const char *proto_result_name(enum proto_result r)
{
	static const char *const names[PROTO_RESULTS] = {"ok",     "error",     "one-way",
							 "opened", "no-answer", "blind"};

	return (unsigned)r < PROTO_RESULTS ? names[r] : "";
}

size_t proto_conn_open(const struct proto_conn *c)
{
	size_t n = c->done.set;

	for (uint32_t i = 0; i < c->count; i++)
		n += proto_slot(c, i)->live && !proto_slot(c, i)->told;
	return n;
}

/* Where answers come in order and one may be missing, an open question is only known to be without
 * one while the client has spoken last. */
void proto_conn_each_open(const struct proto_conn *c,
			  void (*each)(void *ctx, const struct proto_request *r), void *ctx)
{
	bool hole = c->protocol && c->protocol->in_order && c->count && proto_slot(c, 0)->hole;
	struct proto_request r;

	if (!c->protocol)
		return;
	if (c->done.set) {
		r = request_of(c, &c->done.p, PROTO_BLIND, "");
		each(ctx, &r);
	}
	if (hole && c->before != PROTO_CLIENT)
		return;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct proto_pending *p = proto_slot(c, i);

		if (!p->live || p->doubt)
			continue;
		r = request_of(c, p, p->told ? PROTO_OPENED : PROTO_BLIND, "");
		each(ctx, &r);
	}
}
