/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlpspan: requests that were kept as spans; see otlp.h, rules 4 to 7. Field numbers are those of
 * opentelemetry-proto's trace.
 *
 * When a span is sent. A request is written when it has ended, into the bucket in which it began;
 * what was asked for one that is kept is written with that one, into its bucket. So of a range are
 * sent those that
 *   1. began in it and took less than LATE_S, or were asked for one that did: they are there, since
 *      the range has settled;
 *   2. took longer and ended in it, from buckets of up to LATE_MOST_S before, with what was asked
 *      for them.
 * Parents and traces are looked for among the requests of AROUND_S before and behind the range as
 * well: what is sent does not depend on when.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/batch.h"
#include "export/push/otlp/otlp.h"
#include "export/push/otlp/otlpspanname.h"
#include "export/push/otlp/otlpwrite.h"
#include "export/push/table.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "tools/requests/traces.h"

enum { RESOURCE_ATTRIBUTES = 1, SCOPE_SPANS = 2 };
enum {
	SPAN_TRACE = 1,
	SPAN_ID = 2,
	SPAN_PARENT = 4,
	SPAN_NAME = 5,
	SPAN_KIND = 6,
	SPAN_START = 7,
	SPAN_END = 8,
	SPAN_ATTRIBUTES = 9,
	SPAN_EVENTS = 11,
	SPAN_LINKS = 13,
	SPAN_STATUS = 15
};
enum {
	KIND_SERVER = 2,
	KIND_CLIENT = 3,
	STATUS_MESSAGE = 2,
	STATUS_CODE = 3,
	STATUS_ERROR = 2,
	LINK_TRACE = 1,
	LINK_SPAN = 2,
	EVENT_TIME = 1,
	EVENT_NAME = 2
};

#define AROUND_S 120
/* what took less than LATE_S has settled by then: ROUND_BEHIND_S less LATE_S and two buckets */
#define AFTER_S     OTLP_SPANS_AFTER_S
#define LATE_S      30
#define LATE_MOST_S 900 /* these three are in LATE and SPANS, too */
#define SPAN_BYTES  8

struct whose { /* of a row: what the resource says */
	char *host, *container_id, *image, *unit;
};

struct spans {
	const struct otlp_range *range;
	struct otlp_request request;
	struct traces traces;
	size_t cap, cap_whose;
	struct whose *whose;                /* by row */
	uint32_t *node;                     /* by row */
	uint8_t (*trace)[OTLP_TRACE_BYTES]; /* by node */
	struct idmap seen;                  /* (span, side): a row that was kept twice */
	int64_t *buckets;                   /* of what was late */
	size_t n_buckets, cap_buckets;
};

/* --- what is read --- */

static const struct table SPANS = {
	"request_spans",
	"SELECT q.side, q.protocol, q.service, q.operation, q.status, q.result, q.why, q.trace, q.how, q.container, q.comm, coalesce(q.tid, 0), q.at_ns,"
	" coalesce(q.first_us, -1), coalesce(q.total_us, -1), q.span, coalesce(q.parent, 0), coalesce(q.caller, 0), q.partial, coalesce(p.pid, 0),"
	" coalesce(c.runtime_id, ''), coalesce(c.image, ''), coalesce(u.value, '') FROM %s q LEFT JOIN process p ON p.id = q.process_id"
	" LEFT JOIN container c ON c.id = p.container LEFT JOIN text u ON u.id = p.unit WHERE coalesce(p.self, 0) = 0"};

/* :from and :to are when they ended. */
static const struct table LATE = {
	"request_log",
	"SELECT DISTINCT x.ts + :t0 FROM request_log_row x WHERE x.ts >= :from - :t0 - 900 AND x.ts < :from - :t0 - 120 AND x.total_us >= 30000000"
	" AND x.at_us + x.total_us >= :from * 1000000 AND x.at_us + x.total_us < :to * 1000000"};

static char *text_at(sqlite3_stmt *st, int column)
{
	const char *s = (const char *)sqlite3_column_text(st, column);

	return mem_strdup(s ? s : "");
}

static int row_take(void *ctx, sqlite3_stmt *st, const char *host, struct err *e)
{
	enum { TEXTS = 11 };
	struct spans *s = ctx;
	struct traces *t = &s->traces;
	const uint64_t span = (uint64_t)sqlite3_column_int64(st, 15);
	struct trace_row *r;
	char **texts[TEXTS];
	bool server, fresh;

	(void)e;
	server = sqlite3_column_text(st, 0) &&
		 !strcmp((const char *)sqlite3_column_text(st, 0), "server");
	idmap_ref(&s->seen, hash_u64(hash_u64(HASH_SEED, span), server), &fresh);
	if (!fresh || !span)
		return 0;
	mem_grow(s->whose, t->n_rows, s->cap_whose);
	s->whose[t->n_rows] =
		(struct whose){mem_strdup(host), text_at(st, 20), text_at(st, 21), text_at(st, 22)};
	mem_grow(t->rows, t->n_rows, s->cap);
	r = &t->rows[t->n_rows++];
	*r = (struct trace_row){.server = server,
				.lang = mem_strdup(""),
				.tid = sqlite3_column_int64(st, 11),
				.at_ns = sqlite3_column_int64(st, 12),
				.first_us = sqlite3_column_int64(st, 13),
				.total_us = sqlite3_column_int64(st, 14),
				.span = span,
				.parent = (uint64_t)sqlite3_column_int64(st, 16),
				.caller = (uint64_t)sqlite3_column_int64(st, 17),
				.partial = sqlite3_column_int64(st, 18) != 0,
				.pid = sqlite3_column_int64(st, 19),
				.wanted = true};
	memcpy(texts,
	       (char **[TEXTS]){NULL, &r->protocol, &r->service, &r->operation, &r->status,
				&r->result, &r->why, &r->trace, &r->how, &r->container, &r->comm},
	       sizeof(texts));
	for (int i = 1; i < TEXTS; i++)
		*texts[i] = text_at(st, i);
	return 0;
}

static int bucket_take(void *ctx, sqlite3_stmt *st, const char *host, struct err *e)
{
	struct spans *s = ctx;

	(void)host;
	(void)e;
	mem_grow(s->buckets, s->n_buckets, s->cap_buckets);
	s->buckets[s->n_buckets++] = sqlite3_column_int64(st, 0);
	return 0;
}

static int rows_read(struct spans *s, struct err *e)
{
	const struct otlp_range *r = s->range;
	int rc = batch_each(r->segments, r->n, &LATE, r->from_ts, r->to_ts, bucket_take, s, e);

	for (size_t i = 0; !rc && i < s->n_buckets; i++)
		rc = batch_each(r->segments, r->n, &SPANS, s->buckets[i], s->buckets[i] + 1,
				row_take, s, e);
	return rc ? rc :
		    batch_each(r->segments, r->n, &SPANS, r->from_ts - AROUND_S, r->to_ts + AFTER_S,
			       row_take, s, e);
}

/* --- traces --- */

static const struct trace_row *side_of(const struct traces *t, uint32_t row)
{
	return row == TRACE_NONE ? NULL : &t->rows[row];
}

static bool header_of(const struct traces *t, uint32_t node, uint8_t out[OTLP_TRACE_BYTES])
{
	const struct trace_row *q = side_of(t, t->nodes[node].asked),
			       *a = side_of(t, t->nodes[node].answered);

	return (q && otlp_trace_id(q->trace, out)) || (a && otlp_trace_id(a->trace, out));
}

/* The topmost known span: the request that the root was made for, if that was not kept. */
static uint64_t top_of(const struct traces *t, uint32_t root)
{
	const struct trace_row *r = traces_row(t, root);

	return r->parent ? r->parent : r->span;
}

/* Rule 5, of a root. */
static void root_trace(const struct traces *t, uint32_t root, uint8_t out[OTLP_TRACE_BYTES])
{
	uint64_t top = top_of(t, root), high, low;
	unsigned depth = 0;

	for (uint32_t i = root; i != TRACE_NONE; i = traces_next(t, root, i, &depth))
		if (header_of(t, i, out))
			return;
	high = hash_u64(hash_str(HASH_SEED, "trace"), top);
	low = hash_u64(high, top) | 1; /* not all zero */
	for (unsigned i = 0; i < 8; i++) {
		out[i] = (uint8_t)(high >> (56 - 8 * i));
		out[8 + i] = (uint8_t)(low >> (56 - 8 * i));
	}
}

static void traces_make(struct spans *s)
{
	struct traces *t = &s->traces;

	s->node = mem_array(t->n_rows + 1, sizeof(*s->node));
	s->trace = mem_array(t->n_nodes + 1, sizeof(*s->trace));
	for (uint32_t i = 0; i < t->n_rows; i++)
		s->node[i] = TRACE_NONE; /* one that goes in a circle, in a store that is wrong, is
					    in no tree */
	for (size_t i = 0; i < t->n_roots; i++) {
		uint32_t root = t->roots[i];
		unsigned depth = 0;

		for (uint32_t n = root; n != TRACE_NONE; n = traces_next(t, root, n, &depth)) {
			if (n == root)
				root_trace(t, root, s->trace[n]);
			else if (!header_of(t, n, s->trace[n]))
				memcpy(s->trace[n], s->trace[t->nodes[n].parent], OTLP_TRACE_BYTES);
			if (t->nodes[n].asked != TRACE_NONE)
				s->node[t->nodes[n].asked] = n;
			if (t->nodes[n].answered != TRACE_NONE)
				s->node[t->nodes[n].answered] = n;
		}
	}
}

/* --- when --- */

/* Sent only with another one. */
static bool is_linked(const struct trace_row *r)
{
	return !strcmp(r->why, "linked") || !strcmp(r->why, "ring");
}

/* When one that was kept for itself is sent by: 0, if neither side was. */
static int64_t due_kept(const struct traces *t, uint32_t node)
{
	const uint32_t sides[] = {t->nodes[node].asked, t->nodes[node].answered};
	int64_t due = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct trace_row *r = side_of(t, sides[i]);
		int64_t at = !r || is_linked(r)                ? 0 :
			     r->total_us >= LATE_S * 1000000ll ? r->at_ns + r->total_us * 1000 :
								 r->at_ns;

		if (at > due)
			due = at;
	}
	return due;
}

static int64_t due_ns(const struct spans *s, uint32_t row)
{
	const struct traces *t = &s->traces;
	const struct trace_row *r = &t->rows[row];
	int64_t due;

	if (!is_linked(r))
		return r->total_us >= LATE_S * 1000000ll ? r->at_ns + r->total_us * 1000 : r->at_ns;
	for (uint32_t n = s->node[row]; n != TRACE_NONE; n = t->nodes[n].parent) {
		due = due_kept(t, n);
		if (due)
			return due > r->at_ns ? due : r->at_ns;
	}
	return r->at_ns;
}

/* --- spans --- */

static void id_put(struct strbuf *out, unsigned field, uint64_t id)
{
	uint8_t bytes[SPAN_BYTES];

	for (unsigned i = 0; i < SPAN_BYTES; i++)
		bytes[i] = (uint8_t)(id >> (56 - 8 * i));
	proto_bytes(out, field, bytes, sizeof(bytes));
}

/* Its parent span: of a server's side the client's; of a client's side the server's during which it
 * was made. *of: the node whose trace that is. */
static uint64_t parent_of(const struct traces *t, uint32_t row, uint32_t node, uint32_t *of)
{
	const struct trace_node *n = &t->nodes[node];

	*of = node;
	if (t->rows[row].server)
		return n->asked != TRACE_NONE ? t->rows[n->asked].span : 0;
	if (n->lost_parent)
		return t->rows[row].parent;
	if (n->parent == TRACE_NONE)
		return 0;
	*of = n->parent;
	return t->rows[t->nodes[n->parent].answered].span;
}

static void parent_add(const struct spans *s, uint32_t row, struct strbuf *span)
{
	struct strbuf link cleanup_strbuf = STRBUF_INIT;
	uint32_t node = s->node[row], of;
	uint64_t parent = parent_of(&s->traces, row, node, &of);

	if (!parent)
		return;
	if (!memcmp(s->trace[of], s->trace[node], OTLP_TRACE_BYTES)) {
		id_put(span, SPAN_PARENT, parent);
		return;
	}
	proto_bytes(&link, LINK_TRACE, s->trace[of], OTLP_TRACE_BYTES);
	id_put(&link, LINK_SPAN, parent);
	proto_bytes(span, SPAN_LINKS, link.buf, link.len);
}

static void exchange_add(const struct spans *s, uint32_t row, struct strbuf *span)
{
	const struct trace_row *r = &s->traces.rows[row];
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, r->server ? r->parent : r->span);
	if (!r->server || r->parent)
		otlp_text(span, SPAN_ATTRIBUTES, "sonde.exchange", text);
}

static void attributes_add(const struct spans *s, uint32_t row, const struct otlp_span *what,
			   struct strbuf *span)
{
	const struct trace_row *r = &s->traces.rows[row];
	const struct trace_node *n = &s->traces.nodes[s->node[row]];

	otlp_span_attributes(span, SPAN_ATTRIBUTES, what);
	if (r->tid)
		otlp_int(span, SPAN_ATTRIBUTES, "thread.id", r->tid);
	otlp_text(span, SPAN_ATTRIBUTES, "sonde.why", r->why);
	otlp_text(span, SPAN_ATTRIBUTES, "sonde.linked_by",
		  r->server ? (n->asked == TRACE_NONE ? "" :
			       n->by_header           ? "header" :
							r->how) :
			      n->how);
	otlp_text(span, SPAN_ATTRIBUTES, "sonde.trace", r->trace);
	exchange_add(s, row, span);
	if (r->partial)
		otlp_int(span, SPAN_ATTRIBUTES, "sonde.partial", 1);
}

static void status_add(const struct otlp_span *what, struct strbuf *span)
{
	struct strbuf status cleanup_strbuf = STRBUF_INIT;

	if (!otlp_span_failed(what))
		return;
	proto_bytes(&status, STATUS_MESSAGE, what->result, strlen(what->result));
	proto_uint(&status, STATUS_CODE, STATUS_ERROR);
	proto_bytes(span, SPAN_STATUS, status.buf, status.len);
}

static void first_byte_add(const struct trace_row *r, struct strbuf *span)
{
	static const char name[] = "first byte of the answer";
	struct strbuf event cleanup_strbuf = STRBUF_INIT;

	if (r->first_us < 0)
		return;
	proto_fixed64(&event, EVENT_TIME, (uint64_t)(r->at_ns + r->first_us * 1000));
	proto_bytes(&event, EVENT_NAME, name, sizeof(name) - 1);
	proto_bytes(span, SPAN_EVENTS, event.buf, event.len);
}

static void span_add(const struct spans *s, uint32_t row, struct strbuf *items)
{
	const struct trace_row *r = &s->traces.rows[row];
	const struct otlp_span what = {.protocol = r->protocol,
				       .service = r->service,
				       .operation = r->operation,
				       .status = r->status,
				       .result = r->result,
				       .server = r->server};
	const char *name = *r->operation ? r->operation : r->protocol;
	struct strbuf span cleanup_strbuf = STRBUF_INIT;

	proto_bytes(&span, SPAN_TRACE, s->trace[s->node[row]], OTLP_TRACE_BYTES);
	id_put(&span, SPAN_ID, r->span);
	parent_add(s, row, &span);
	proto_bytes(&span, SPAN_NAME, name, strlen(name));
	proto_uint(&span, SPAN_KIND, r->server ? KIND_SERVER : KIND_CLIENT);
	proto_fixed64(&span, SPAN_START, (uint64_t)r->at_ns);
	proto_fixed64(&span, SPAN_END,
		      (uint64_t)(r->at_ns + (r->total_us > 0 ? r->total_us * 1000 : 0)));
	attributes_add(s, row, &what, &span);
	first_byte_add(r, &span);
	status_add(&what, &span);
	proto_bytes(items, SCOPE_SPANS, span.buf, span.len);
}

static void resource_of(const struct spans *s, uint32_t row, struct strbuf *out)
{
	const struct trace_row *r = &s->traces.rows[row];
	const struct whose *w = &s->whose[row];

	otlp_text(out, RESOURCE_ATTRIBUTES, "host.name", w->host);
	otlp_text(out, RESOURCE_ATTRIBUTES, "service.name",
		  *r->container ? r->container :
		  *w->unit      ? w->unit :
		  *r->comm      ? r->comm :
				  "unknown");
	otlp_text(out, RESOURCE_ATTRIBUTES, "systemd.unit", *r->container ? "" : w->unit);
	otlp_text(out, RESOURCE_ATTRIBUTES, "container.name", r->container);
	otlp_text(out, RESOURCE_ATTRIBUTES, "container.id", w->container_id);
	otlp_text(out, RESOURCE_ATTRIBUTES, "container.image.name", w->image);
	otlp_text(out, RESOURCE_ATTRIBUTES, "process.executable.name", r->comm);
	if (r->pid)
		otlp_int(out, RESOURCE_ATTRIBUTES, "process.pid", r->pid);
}

static int row_order(const void *a, const void *b, void *ctx)
{
	const struct spans *s = ctx;
	const struct trace_row *x = &s->traces.rows[*(const uint32_t *)a],
			       *y = &s->traces.rows[*(const uint32_t *)b];
	int d = strcmp(x->container, y->container);

	if (!d)
		d = strcmp(x->comm, y->comm);
	if (!d)
		d = (x->pid > y->pid) - (x->pid < y->pid);
	if (!d)
		d = (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
	return d ? d : (x->span > y->span) - (x->span < y->span);
}

static bool same_process(const struct spans *s, uint32_t a, uint32_t b)
{
	const struct trace_row *x = &s->traces.rows[a], *y = &s->traces.rows[b];

	return x->pid == y->pid && !strcmp(x->comm, y->comm) &&
	       !strcmp(x->container, y->container) && !strcmp(s->whose[a].host, s->whose[b].host);
}

static int spans_send(struct spans *s, struct err *e)
{
	uint32_t *rows = mem_array(s->traces.n_rows + 1, sizeof(*rows));
	size_t n = 0;
	int rc = 0;

	for (uint32_t i = 0; i < s->traces.n_rows; i++) {
		int64_t due = s->node[i] == TRACE_NONE ? -1 : due_ns(s, i);

		if (due >= s->range->from_ts * NSEC_PER_SEC && due < s->range->to_ts * NSEC_PER_SEC)
			rows[n++] = i;
	}
	qsort_r(rows, n, sizeof(*rows), row_order, s);
	for (size_t i = 0, end; !rc && i < n; i = end) {
		struct strbuf resource cleanup_strbuf = STRBUF_INIT,
				       items cleanup_strbuf = STRBUF_INIT;

		for (end = i;
		     end < n && same_process(s, rows[i], rows[end]) && items.len < BATCH_BYTES;
		     end++)
			span_add(s, rows[end], &items);
		resource_of(s, rows[i], &resource);
		rc = otlp_resource(&s->request, &resource, &items, end - i, e);
	}
	free(rows);
	return rc ? rc : otlp_flush(&s->request, e);
}

static void release(struct spans *s)
{
	for (size_t i = 0; i < s->traces.n_rows; i++) {
		free(s->whose[i].host);
		free(s->whose[i].container_id);
		free(s->whose[i].image);
		free(s->whose[i].unit);
	}
	free(s->whose);
	free(s->node);
	free(s->trace);
	free(s->buckets);
	idmap_release(&s->seen);
	traces_release(&s->traces);
	otlp_release(&s->request);
}

int otlp_spans(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx,
	       struct err *e)
{
	struct spans s = {.range = r,
			  .request = {.path = "/v1/traces", .target = t, .take = take, .ctx = ctx}};
	int rc = rows_read(&s, e);

	if (!rc) {
		traces_link(&s.traces);
		traces_make(&s);
		rc = spans_send(&s, e);
	}
	release(&s);
	return rc;
}
