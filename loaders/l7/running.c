/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/running.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/model/stored.h"

#define SERVICE_MAX 128

/* A request that is reported. */
struct told {
	struct msg_running m;             /* its last message */
	const char *protocol, *operation; /* borrowed from the protocols */
	char service[SERVICE_MAX], client[64], trace[64];
	int64_t begin_ns, told_ns; /* boot clock */
	uint32_t walk;             /* in which it was seen last */
};

struct running {
	struct protocols *protocols;
	struct message_writer *to;
	struct told told[RUNNING_MOST];
	uint32_t n, walk, fresh;   /* fresh: first reported in this round */
	struct idmap by_id;        /* id -> index */
	struct idmap by_operation; /* operation -> how many are reported */
	uint64_t others;
	int64_t since_ns, round_ns, now_ns, offset_ns;
	bool last, marked; /* marked: the last mark said that some run */
};

struct running *running_new(struct protocols *p, struct message_writer *to)
{
	struct running *r = mem_alloc(sizeof(*r));

	r->protocols = p;
	r->to = to;
	return r;
}

void running_free(struct running *r)
{
	if (!r)
		return;
	idmap_release(&r->by_id);
	idmap_release(&r->by_operation);
	free(r);
}

bool running_any(const struct running *r)
{
	return r->n;
}

/* ---- writing ---- */

static void text_put(char *to, size_t room, const char *text)
{
	size_t n = text ? strnlen(text, room - 1) : 0;

	if (n)
		memcpy(to, text, n);
	to[n] = '\0';
}

static void tell(struct running *r, struct told *t, int64_t seen_ns)
{
	const struct message_tail tail = {.text = {[MSG_PROTOCOL] = t->protocol,
						   [MSG_SERVICE] = t->service,
						   [MSG_OPERATION] = protocols_operation_now(
							   r->protocols, t->operation, t->protocol,
							   proto_service_port(t->service)),
						   [MSG_TRACE] = t->trace,
						   [MSG_ADDRESS] = t->client}};

	t->told_ns = seen_ns;
	t->m.seen_ns = seen_ns + r->offset_ns;
	t->m.about.utc_ns = t->m.seen_ns;
	message_write(r->to, MSG_RUNNING, &t->m, &tail);
}

static void mark(struct running *r)
{
	struct msg_running m = {.about.utc_ns = r->now_ns + r->offset_ns,
				.at_ns = r->since_ns + r->offset_ns,
				.seen_ns = r->now_ns + r->offset_ns,
				.others = r->others};

	message_write(r->to, MSG_RUNNING, &m, NULL);
}

/* ---- which are reported ---- */

static uint64_t *of_operation(struct running *r, const char *operation)
{
	bool fresh;

	return idmap_ref(&r->by_operation, (uint64_t)(uintptr_t)operation, &fresh);
}

static void drop(struct running *r, uint32_t i)
{
	struct told *t = &r->told[i];
	uint64_t *n = of_operation(r, t->operation);

	*n -= *n > 0;
	if (!*n)
		idmap_del(&r->by_operation, (uint64_t)(uintptr_t)t->operation);
	idmap_del(&r->by_id, t->m.id);
	if (i != --r->n) {
		*t = r->told[r->n];
		idmap_set(&r->by_id, t->m.id, i);
	}
}

static struct told *put(struct running *r, uint64_t id, const struct proto_request *q)
{
	uint64_t *n = of_operation(r, q->operation);
	struct told *t;

	if (r->n >= RUNNING_MOST || r->fresh >= RUNNING_FRESH || *n >= RUNNING_EACH) {
		r->others++;
		return NULL;
	}
	++*n;
	r->fresh++;
	t = &r->told[r->n];
	*t = (struct told){.m.id = id,
			   .protocol = q->protocol,
			   .operation = q->operation,
			   .begin_ns = q->begin_ns};
	text_put(t->trace, sizeof(t->trace), q->trace);
	idmap_set(&r->by_id, id, r->n++);
	return t;
}

static void numbers_take(const struct running *r, struct told *t, const struct proto_request *q)
{
	t->m.at_ns = q->begin_ns + r->offset_ns;
	t->m.first_ns = q->first_ns > q->begin_ns ? (uint64_t)(q->first_ns - q->begin_ns) : 0;
	t->m.request_bytes = q->request_bytes;
	t->m.response_bytes = q->response_bytes;
	t->m.about.result = (uint8_t)q->result;
}

static bool due(const struct running *r, const struct told *t)
{
	int64_t every =
		r->now_ns - t->begin_ns < RUNNING_YOUNG_NS ? RUNNING_ROUND_NS : RUNNING_OLD_NS;

	return r->last || !t->told_ns || r->now_ns - t->told_ns >= every;
}

/* ---- the walk ---- */

void running_walk(struct running *r, int64_t now_ns, int64_t offset_ns, bool last)
{
	r->now_ns = now_ns;
	r->offset_ns = offset_ns;
	r->since_ns = r->since_ns ? r->since_ns : now_ns;
	r->last = last;
	r->walk++;
	r->others = 0;
	if (now_ns - r->round_ns >= RUNNING_ROUND_NS)
		r->fresh = 0;
}

void running_seen(struct running *r, uint64_t id, const struct sums_of *of,
		  const struct running_client *client, const struct proto_request *q)
{
	struct told *t;
	uint64_t at;

	if (r->now_ns - q->begin_ns < RUNNING_LEAST_NS)
		return;
	t = idmap_get(&r->by_id, id, &at) ? &r->told[at] : put(r, id, q);
	if (!t)
		return;
	t->walk = r->walk;
	numbers_take(r, t, q);
	t->m.about.process = of->process;
	t->m.about.side = of->side;
	t->m.tid = of->tid;
	t->m.exchange = of->exchange;
	t->m.port = client->port;
	text_put(t->service, sizeof(t->service), of->service);
	text_put(t->client, sizeof(t->client), client->address);
	if (due(r, t))
		tell(r, t, r->now_ns);
}

void running_walked(struct running *r)
{
	for (uint32_t i = r->n; i-- > 0;) {
		struct told *t = &r->told[i];

		if (t->walk == r->walk)
			continue;
		t->m.end_ns = r->now_ns + r->offset_ns;
		t->m.about.result = STORE_RESULT_BLIND;
		tell(r, t, r->now_ns);
		drop(r, i);
	}
	if (r->last || !r->round_ns || r->now_ns - r->round_ns >= RUNNING_ROUND_NS) {
		bool some = r->n || r->others;

		if (some || r->marked)
			mark(r);
		r->marked = some;
		r->round_ns = r->now_ns;
	}
}

void running_over(struct running *r, uint64_t id, const struct proto_request *q, int64_t at_ns)
{
	int64_t end_ns = q->end_ns ? q->end_ns : at_ns;
	struct told *t;
	uint64_t at;

	if (!idmap_get(&r->by_id, id, &at))
		return;
	t = &r->told[at];
	numbers_take(r, t, q);
	t->m.end_ns = end_ns + r->offset_ns;
	tell(r, t, end_ns);
	drop(r, (uint32_t)at);
}
