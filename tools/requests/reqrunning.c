/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/reqrunning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/requests/reqstream.h"
#include "tools/select/askrows.h"

#define DUE_NS    (75 * (int64_t)NSEC_PER_SEC) /* a row is repeated every 60 s */
#define WINDOW_NS (100 * (int64_t)NSEC_PER_SEC)
#define END_NS    (2 * (int64_t)NSEC_PER_SEC)  /* an end has its row by then */
#define STALE_NS  (40 * (int64_t)NSEC_PER_SEC) /* marks come every 10 s, some time late */

static const char RUNNING[] =
	"SELECT process_id, side, protocol, service, operation, client, coalesce(port, 0), at_ns, coalesce(seen_ns, 0), coalesce(end_ns, 0), result,"
	" coalesce(first_us, -1), coalesce(request_bytes, 0), coalesce(response_bytes, 0), trace, request, coalesce(exchange, 0), coalesce(others, 0),"
	" coalesce(tid, 0) FROM running_requests WHERE ts BETWEEN ?1 AND ?2";

static const char RUN[] =
	"SELECT token, from_ns, to_ns, state IN (1, 2) FROM run WHERE family = 'l7' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";

/* A capture of one segment. */
struct capture {
	int64_t token, from_ns, to_ns;
	bool over;
};

/* One side of a request, of all its rows. */
struct part {
	struct reqrun_end who;
	char *protocol, *service, *operation, *peer, *trace, *result;
	int64_t at_ns, seen_ns, end_ns, first_us;
	uint64_t request_bytes, response_bytes, exchange;
	bool server, wanted, joined;
};

struct reading {
	const struct selection *sel;
	const struct store_dict *dict;
	const char *side;
	struct part *parts;
	size_t n, cap;
	struct idmap by_id;
	int64_t mark_ns, since_ns; /* of the newest mark */
	int64_t looked_ns;         /* of the newest row */
	struct capture *runs;
	size_t n_runs, cap_runs;
	uint64_t others;
	int64_t others_ns;
	int64_t from_ns, at_ns; /* of a moment both are the same */
	bool known;
};

const struct select_args *reqrunning_select(const struct select_args *asked, int64_t at_ns,
					    struct reqrunning_window *w)
{
	snprintf(w->from, sizeof(w->from), "%lld", (long long)((at_ns - WINDOW_NS) / NSEC_PER_SEC));
	snprintf(w->to, sizeof(w->to), "%lld", (long long)((at_ns + WINDOW_NS) / NSEC_PER_SEC));
	w->args = *asked;
	w->args.last_ns = 0;
	w->args.at = w->args.rec = NULL;
	w->args.from = w->from;
	w->args.to = w->to;
	return &w->args;
}

/* ---- rows ---- */

static void mark_take(struct reading *r, sqlite3_stmt *st)
{
	int64_t seen = sqlite3_column_int64(st, 8);

	if (seen > r->mark_ns) {
		r->mark_ns = seen;
		r->since_ns = sqlite3_column_int64(st, 7);
	}
	if (seen > r->others_ns && (seen <= r->at_ns || !r->others_ns)) {
		r->others_ns = seen;
		r->others = (uint64_t)sqlite3_column_int64(st, 17);
	}
}

static void part_release(struct part *p)
{
	char *const texts[] = {p->who.container, p->who.comm, p->protocol, p->service,
			       p->operation,     p->peer,     p->trace,    p->result};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
}

static char *peer_text(const char *address, int64_t port)
{
	struct strbuf out = STRBUF_INIT;

	if (*address)
		strbuf_addf(&out, strchr(address, ':') ? "[%s]:%lld" : "%s:%lld", address,
			    (long long)port);
	return strbuf_take(&out);
}

static struct part part_of(const struct reading *r, sqlite3_stmt *st)
{
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));

	return (struct part){.who = {.container = p ? mem_strdup(p->container) : NULL,
				     .comm = p ? mem_strdup(p->comm) : NULL,
				     .pid = p ? p->pid : 0,
				     .tid = sqlite3_column_int64(st, 18)},
			     .server = !strcmp(askrows_text(st, 1), "server"),
			     .wanted = p ? select_wants_process(r->sel, p) :
					   !select_is_narrow(r->sel),
			     .protocol = mem_strdup(askrows_text(st, 2)),
			     .service = mem_strdup(askrows_text(st, 3)),
			     .operation = mem_strdup(askrows_text(st, 4)),
			     .peer = peer_text(askrows_text(st, 5), sqlite3_column_int64(st, 6)),
			     .at_ns = sqlite3_column_int64(st, 7),
			     .seen_ns = sqlite3_column_int64(st, 8),
			     .end_ns = sqlite3_column_int64(st, 9),
			     .result = mem_strdup(askrows_text(st, 10)),
			     .first_us = sqlite3_column_int64(st, 11),
			     .request_bytes = (uint64_t)sqlite3_column_int64(st, 12),
			     .response_bytes = (uint64_t)sqlite3_column_int64(st, 13),
			     .trace = mem_strdup(askrows_text(st, 14)),
			     .exchange = (uint64_t)sqlite3_column_int64(st, 16)};
}

/* Of the rows of one request the newest one holds. */
static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	uint64_t id = (uint64_t)sqlite3_column_int64(st, 15), *at;
	struct part p, *old;
	int64_t seen = sqlite3_column_int64(st, 8);
	bool fresh;

	r->looked_ns = seen > r->looked_ns ? seen : r->looked_ns;
	if (!id) {
		mark_take(r, st);
		return;
	}
	at = idmap_ref(&r->by_id, id, &fresh);
	p = part_of(r, st);
	if (fresh) {
		*at = r->n;
		mem_grow(r->parts, r->n, r->cap);
		r->parts[r->n++] = p;
		return;
	}
	old = &r->parts[*at];
	p.end_ns = p.end_ns ? p.end_ns : old->end_ns;
	if (p.seen_ns < old->seen_ns) {
		old->end_ns = p.end_ns;
		part_release(&p);
		return;
	}
	part_release(old);
	*old = p;
}

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	r->known = true;
	mem_grow(r->runs, r->n_runs, r->cap_runs);
	r->runs[r->n_runs++] = (struct capture){.token = sqlite3_column_int64(st, 0),
						.from_ns = sqlite3_column_int64(st, 1),
						.to_ns = sqlite3_column_int64(st, 2),
						.over = sqlite3_column_int(st, 3)};
}

static const struct capture *newest_run(const struct reading *r)
{
	const struct capture *newest = NULL;

	for (size_t i = 0; i < r->n_runs; i++)
		if (!newest || r->runs[i].to_ns > newest->to_ns)
			newest = &r->runs[i];
	return newest;
}

/* A capture that began where no other one went on knows nothing of the requests before it. */
static void runs_begin(struct reading *r)
{
	for (size_t i = 0; i < r->n_runs; i++) {
		const struct capture *x = &r->runs[i];
		bool alone = x->from_ns > r->since_ns && x->from_ns <= r->at_ns;

		for (size_t k = 0; k < r->n_runs && alone; k++)
			alone = k == i || r->runs[k].from_ns > x->from_ns ||
				(r->runs[k].token != x->token && r->runs[k].to_ns < x->from_ns);
		if (alone)
			r->since_ns = x->from_ns;
	}
}

/* ---- which run ---- */

/* At the moment, or when the recording ended before it. Of a range: at some time in it. */
static bool runs(const struct reading *r, const struct part *p)
{
	int64_t known_ns = r->looked_ns > r->at_ns + DUE_NS ? r->at_ns + DUE_NS : r->looked_ns;

	if (p->at_ns > r->at_ns)
		return false;
	if (p->end_ns)
		return p->end_ns > r->from_ns;
	return p->seen_ns >= r->from_ns ||
	       (p->seen_ns >= known_ns - DUE_NS && p->seen_ns >= r->since_ns);
}

static void parts_keep(struct reading *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (runs(r, &r->parts[i]))
			r->parts[n++] = r->parts[i];
		else
			part_release(&r->parts[i]);
	}
	r->n = n;
}

/* ---- two sides ---- */

static bool may_join(const struct part *a, const struct part *b)
{
	if (a->server == b->server || a->joined || b->joined || strcmp(a->protocol, b->protocol))
		return false;
	if (a->exchange && b->exchange)
		return a->exchange == b->exchange;
	return *a->peer && !strcmp(a->peer, b->peer) && !strcmp(a->service, b->service) &&
	       !strcmp(a->operation, b->operation);
}

/* The other side; NULL: it is unknown, or there are several. */
static struct part *other_side(const struct reading *r, const struct part *p)
{
	struct part *found = NULL;

	for (size_t i = 0; i < r->n; i++) {
		if (!may_join(p, &r->parts[i]))
			continue;
		if (found)
			return NULL;
		found = &r->parts[i];
	}
	return found;
}

static char *text_take(char **from)
{
	char *s = *from;

	*from = NULL;
	return s;
}

static struct reqrun_end end_take(struct part *p)
{
	struct reqrun_end end = {.pid = 0};

	if (!p)
		return end;
	end = p->who;
	p->who.comm = p->who.container = NULL;
	return end;
}

/* To the first byte of its answer, if that had come by then. */
static int64_t first_us(const struct part *p, int64_t lasts_ns)
{
	return p->first_us <= lasts_ns / 1000 ? p->first_us : -1;
}

static bool is_stream(const struct part *p, int64_t lasts_ns)
{
	const struct reqsingle s = {.protocol = p->protocol,
				    .service = p->service,
				    .operation = p->operation,
				    .status = "",
				    .result = p->result,
				    .total_us = lasts_ns / 1000,
				    .first_us = first_us(p, lasts_ns)};

	return reqstream_is(&s);
}

/* When it was over, or was seen last, if that was before at_ns. */
static int64_t until(const struct part *p, int64_t at_ns)
{
	if (p->end_ns)
		return p->end_ns < at_ns ? p->end_ns : at_ns;
	return p->seen_ns < at_ns - DUE_NS ? p->seen_ns : at_ns;
}

static struct reqrun row_of(struct part *p, struct part *other, int64_t at_ns)
{
	int64_t to_ns = until(p, at_ns);
	struct part *client = p->server ? other : p, *server = p->server ? p : other;
	struct reqrun x = {.client = end_take(client),
			   .server = end_take(server),
			   .at_ns = p->at_ns,
			   .first_us = p->first_us,
			   .request_bytes = p->request_bytes,
			   .response_bytes = p->response_bytes};

	if (other && other->at_ns < x.at_ns)
		x.at_ns = other->at_ns;
	x.lasts_ns = to_ns > x.at_ns ? to_ns - x.at_ns : 0;
	x.over = to_ns < at_ns;
	x.first_us = first_us(p, x.lasts_ns);
	x.stream = is_stream(p, x.lasts_ns) || (other && is_stream(other, x.lasts_ns));
	x.protocol = text_take(&p->protocol);
	x.service = text_take(&p->service);
	x.operation = text_take(&p->operation);
	x.peer = text_take(&p->peer);
	x.trace = text_take(&p->trace);
	return x;
}

static void row_release(struct reqrun *x)
{
	char *const texts[] = {x->client.container,
			       x->client.comm,
			       x->server.container,
			       x->server.comm,
			       x->protocol,
			       x->service,
			       x->operation,
			       x->peer,
			       x->trace,
			       x->doing,
			       x->stack};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
}

void reqrunning_release(struct reqrunning *r)
{
	for (size_t i = 0; i < r->n; i++)
		row_release(&r->rows[i]);
	free(r->rows);
	*r = (struct reqrunning){0};
}

static bool has_side(const char *side, const struct part *p, const struct part *other)
{
	return !*side || other || p->server == !strcmp(side, "server");
}

/* The server's side says what it is about: its times have no way in them. */
static void rows_make(struct reading *r, bool streams, struct reqrunning *out)
{
	size_t cap = 0;

	for (int server = 1; server >= 0; server--)
		for (size_t i = 0; i < r->n; i++) {
			struct part *p = &r->parts[i], *other;
			struct reqrun x;

			if (p->joined || p->server != server)
				continue;
			other = other_side(r, p);
			p->joined = true;
			if (other)
				other->joined = true;
			if (!(p->wanted || (other && other->wanted)) ||
			    !has_side(r->side, p, other))
				continue;
			x = row_of(p, other, out->at_ns);
			if (x.stream && !streams) {
				out->streams++;
				row_release(&x);
				continue;
			}
			mem_grow(out->rows, out->n, cap);
			out->rows[out->n++] = x;
		}
}

static int longest(const void *a, const void *b)
{
	const struct reqrun *x = a, *y = b;

	return x->at_ns != y->at_ns ? x->at_ns > y->at_ns ? 1 : -1 :
				      strcmp(x->operation, y->operation);
}

static int read_all(struct reading *r, bool streams, struct reqrunning *out, struct err *e)
{
	const struct askrows_part parts[] = {{RUNNING, take, r}, {RUN, take_run, r}};
	const struct capture *run;
	int64_t at_ns = r->at_ns;
	int rc;

	*out = (struct reqrunning){.at_ns = at_ns};
	rc = askrows_each(r->sel, &r->dict, parts, ARRAY_SIZE(parts), e);
	out->known = r->known;
	run = newest_run(r);
	if (run && !run->over && run->to_ns - END_NS > r->looked_ns)
		r->looked_ns = run->to_ns - END_NS; /* what ended by then has its row */
	out->ended = run &&
		     (run->to_ns < at_ns - STALE_NS || (run->over && run->to_ns - END_NS <= at_ns));
	runs_begin(r);
	if (r->looked_ns && r->looked_ns < at_ns)
		out->at_ns = r->looked_ns;
	parts_keep(r);
	rows_make(r, streams, out);
	out->others = r->others;
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), longest);
	for (size_t i = 0; i < r->n; i++)
		part_release(&r->parts[i]);
	free(r->parts);
	free(r->runs);
	idmap_release(&r->by_id);
	return rc;
}

int reqrunning_read(const struct selection *sel, int64_t at_ns, const char *side, bool streams,
		    struct reqrunning *out, struct err *e)
{
	struct reading r = {.sel = sel, .side = side, .from_ns = at_ns, .at_ns = at_ns};

	return read_all(&r, streams, out, e);
}

int reqrunning_hung(const struct selection *sel, int64_t least_ns, struct reqrunning *out,
		    struct err *e)
{
	struct reading r = {.sel = sel, .side = "", .from_ns = sel->from_ns, .at_ns = sel->to_ns};
	int rc = read_all(&r, false, out, e);
	size_t n = 0;

	for (size_t i = 0; i < out->n; i++) {
		if (out->rows[i].lasts_ns >= least_ns && !reqstream_is_engine(out->rows[i].service))
			out->rows[n++] = out->rows[i];
		else
			row_release(&out->rows[i]);
	}
	out->n = n;
	return rc;
}

int reqrunning_at(const struct select_args *asked, const char *store, char *const *words,
		  size_t n_words, int64_t at_ns, struct reqrunning *out, struct err *e)
{
	struct reqrunning_window w;
	struct selection *sel = NULL;
	int rc = select_new(reqrunning_select(asked, at_ns, &w), store, words, n_words, true, &sel,
			    e);

	*out = (struct reqrunning){.at_ns = at_ns};
	if (!rc)
		rc = reqrunning_read(sel, at_ns, "", false, out, e);
	select_free(sel);
	return rc;
}
