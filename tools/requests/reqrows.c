/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/reqrows.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/requests/reqstream.h"
#include "tools/select/askrows.h"

static const char RECORDED[] = "SELECT " ASKROWS_COUNTED_FROM ", " ASKROWS_COUNTED_TO
			       " FROM run WHERE family IN ('l7', 'replay')"
			       " AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";
/* View requests with the numbers of its words, of which each is looked up once (take_request); its
 * table's range is found without a look at the other rows. */
#define NUMBERS                                                                              \
	"SELECT x.process, x.side, x.protocol, x.service, x.operation, x.status, x.result, " \
	"x.n, iif(x.result IN (1, 4), x.n, 0), x.total_ns, x.max_ns, x.request_bytes, "      \
	"x.response_bytes, coalesce(x.hist, '') "
static const char REQUESTS[] = NUMBERS
	"FROM request_row x JOIN meta t0 ON t0.key = 't0'"
	" LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts"
	" AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM request_row y WHERE y.run = h.by AND y.process = x.process))"
	" WHERE h.run IS NULL AND x.ts >= ?1 - (SELECT value FROM meta WHERE key = 't0') AND x.ts <= ?2 - (SELECT value FROM meta WHERE key = 't0')";
static const char PHASES[] =
	"SELECT process_id, side, protocol, coalesce(service, ''), operation, status, phase, requests, total_ns, max_ns, coalesce(hist, '')"
	" FROM request_phases WHERE ts BETWEEN ?1 AND ?2";
static const char SINGLES[] =
	"SELECT process_id, side, protocol, service, operation, status, result, why, trace, coalesce(tid, 0), at_ns, coalesce(first_us, -1),"
	" coalesce(total_us, -1), coalesce(weight, 1), request_bytes, response_bytes FROM request_log WHERE ts BETWEEN ?1 AND ?2";
static const char BYTES[] =
	"SELECT process_id, sum(seen), sum(parsed), sum(skipped), sum(blind), sum(blind_requests) FROM request_bytes WHERE ts BETWEEN ?1 AND ?2 GROUP BY 1";

/* The same from sums (store_segment_sums), which have the tables' columns. */
#define SIDE "CASE x.side WHEN 1 THEN 'client' WHEN 2 THEN 'server' ELSE 'capture' END"
#define OF_REQUEST                \
	"SELECT x.process, " SIDE \
	", p.value, coalesce(s.value, ''), o.value, coalesce(u.value, ''), "
#define WORDS                                                                      \
	" x JOIN text p ON p.id = x.protocol LEFT JOIN text s ON s.id = x.service" \
	" JOIN text o ON o.id = x.operation LEFT JOIN text u ON u.id = x.status"
static const struct askrows_sums
	REQUESTS_SUMMED = {{"request_row"}, NUMBERS "FROM request_sum x"},
	PHASES_SUMMED =
		{{"request_phase_row"},
		 OF_REQUEST
		 "iif(x.phase = 1, 'first-byte', 'queue'), n, total_ns, max_ns, coalesce(hist, '') FROM request_phase_sum" WORDS},
	BYTES_SUMMED =
		{{"request_bytes_row"},
		 "SELECT process, sum(seen), sum(parsed), sum(skipped), sum(blind), sum(blind_requests) FROM request_bytes_sum GROUP BY 1"},
	OF_TABLES = {.sql = RECORDED};

bool reqrows_by(const char *word, enum reqrows_by *by)
{
	static const char *const words[] = {"operation", "service",  "command", "process",
					    "container", "protocol", "status"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], word)) {
			*by = (enum reqrows_by)i;
			return true;
		}
	return false;
}

/* ---- reading ---- */

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	enum reqrows_by by;
	const char *side;
	bool failed;
	struct reqrows *out;
	struct reqsingles *singles;
	size_t cap;
	struct idmap row_of;
	struct idmap twice;  /* single requests of the ring, and linked ones */
	struct idmap known;  /* of one segment: a row by the numbers of its words, or NOT_WANTED */
	sqlite3_stmt *texts; /* of one segment: a word by its number */
	int64_t from_ns, to_ns;
};

#define NOT_WANTED UINT64_MAX

struct words {
	const char *side, *protocol, *service, *operation, *status;
};

static struct words words_of(sqlite3_stmt *st)
{
	return (struct words){askrows_text(st, 1), askrows_text(st, 2), askrows_text(st, 3),
			      askrows_text(st, 4), askrows_text(st, 5)};
}

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t from = sqlite3_column_int64(st, 0), to = sqlite3_column_int64(st, 1);

	r->from_ns = !r->from_ns || from < r->from_ns ? from : r->from_ns;
	r->to_ns = to > r->to_ns ? to : r->to_ns;
	if (r->out)
		r->out->known = true;
	if (r->singles)
		r->singles->known = true;
}

/* Of several stores a process outside of containers has its host's name for one
 * (schema/store/read/hosts.h). */
static bool in_container(const struct store_process_row *p)
{
	return *p->container && (!store_names_hosts() || strchr(p->container, '/'));
}

/* The process of a row; *in: the selection wants it. NULL with *in: the process is unknown, and the
 * selection has no filter. */
static const struct store_process_row *process_of(const struct reading *r, int64_t id, bool *in)
{
	const struct store_process_row *p = store_dict_process(r->dict, id);

	*in = p ? select_wants_process(r->sel, p) : !select_is_narrow(r->sel);
	return p;
}

static uint64_t operation_hash(uint64_t h, const char *protocol, const char *service,
			       const char *operation)
{
	return hash_str(hash_str(hash_str(h, protocol), service), operation);
}

static uint64_t end_hash(uint64_t h, const struct store_process_row *p)
{
	return hash_str(hash_str(h, p ? p->container : ""), p && in_container(p) ? "" :
							    p                    ? p->comm :
										   "");
}

static uint64_t row_hash(const struct reading *r, const struct store_process_row *p,
			 const struct words *w)
{
	uint64_t h = hash_str(HASH_SEED, w->side);

	switch (r->by) {
	case REQROWS_BY_END_OPERATION:
		h = end_hash(h, p); /* fall through */
	case REQROWS_BY_OPERATION:
		h = operation_hash(h, w->protocol, w->service, w->operation);
		break;
	case REQROWS_BY_SERVICE:
		h = hash_str(hash_str(h, w->protocol), w->service);
		break;
	case REQROWS_BY_PROCESS:
		h = hash_u64(h, p ? (uint64_t)p->pid : 0); /* fall through */
	case REQROWS_BY_COMMAND:
		h = hash_str(h, p ? p->comm : "");
		break;
	case REQROWS_BY_CONTAINER:
		h = hash_str(h, p ? p->container : "");
		break;
	case REQROWS_BY_PROTOCOL:
		h = hash_str(h, w->protocol);
		break;
	case REQROWS_BY_END:
		h = hash_str(end_hash(h, p), w->service);
		break;
	case REQROWS_BY_STATUS:
		h = hash_str(hash_str(hash_str(h, w->protocol), w->service), w->status);
		break;
	}
	return h;
}

static void row_new(struct reading *r, const struct store_process_row *p, const struct words *w)
{
	struct reqrows_row *x;

	mem_grow(r->out->rows, r->out->n, r->cap);
	x = &r->out->rows[r->out->n++];
	*x = (struct reqrows_row){.container = mem_strdup(p ? p->container : ""),
				  .comm = mem_strdup(p ? p->comm : ""),
				  .pid = p ? p->pid : 0,
				  .side = mem_strdup(w->side),
				  .protocol = mem_strdup(w->protocol),
				  .service = mem_strdup(w->service),
				  .operation = mem_strdup(w->operation),
				  .status = mem_strdup(w->status),
				  .self = p && p->self};
}

/* What is not the same in all of a row's parts is not its. */
static void same(char **have, const char *text)
{
	if (!strcmp(*have, text))
		return;
	free(*have);
	*have = mem_strdup("");
}

static void texts_same(struct reqrows_row *x, const char *container, const char *comm,
		       const char *protocol, const char *service, const char *operation,
		       const char *status)
{
	same(&x->container, container);
	same(&x->comm, comm);
	same(&x->protocol, protocol);
	same(&x->service, service);
	same(&x->operation, operation);
	same(&x->status, status);
}

static void row_more(struct reqrows_row *x, const struct store_process_row *p,
		     const struct words *w)
{
	texts_same(x, p ? p->container : "", p ? p->comm : "", w->protocol, w->service,
		   w->operation, w->status);
	if (!p || x->pid != p->pid)
		x->pid = 0;
}

/* Which row this process's requests with these words are in; NOT_WANTED. */
static uint64_t place_of(struct reading *r, int64_t process, const struct words *w)
{
	const struct store_process_row *p;
	bool in, fresh;
	uint64_t *at;

	p = process_of(r, process, &in);
	if (!in || (*r->side && strcmp(r->side, w->side)))
		return NOT_WANTED;
	at = idmap_ref(&r->row_of, row_hash(r, p, w), &fresh);
	if (fresh) {
		*at = r->out->n;
		row_new(r, p, w);
	} else {
		row_more(&r->out->rows[*at], p, w);
	}
	return *at;
}

static void take_amounts(struct reqrows_row *x, sqlite3_stmt *st, bool blind)
{
	const char *hist = askrows_text(st, 13);

	x->requests += (uint64_t)sqlite3_column_int64(st, 7);
	x->errors += (uint64_t)sqlite3_column_int64(st, 8);
	if (blind)
		x->blind += (uint64_t)sqlite3_column_int64(st, 7);
	x->total_ns += (uint64_t)sqlite3_column_int64(st, 9);
	if ((uint64_t)sqlite3_column_int64(st, 10) > x->max_ns)
		x->max_ns = (uint64_t)sqlite3_column_int64(st, 10);
	x->request_bytes += (uint64_t)sqlite3_column_int64(st, 11);
	x->response_bytes += (uint64_t)sqlite3_column_int64(st, 12);
	hist_read(&x->latency, hist, strlen(hist), HIST_FINE);
}

/* ---- words by their numbers ---- */

/* Called before the rows of a segment and after them. */
static void segment_turns(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	sqlite3_finalize(r->texts);
	r->texts = NULL;
	idmap_clear(&r->known);
}

static char *word_of(struct reading *r, sqlite3_stmt *st, int column)
{
	char *out = NULL;

	if (!r->texts)
		sqlite3_prepare_v2(sqlite3_db_handle(st), "SELECT value FROM text WHERE id = ?1",
				   -1, &r->texts, NULL);
	sqlite3_bind_int64(r->texts, 1, sqlite3_column_int64(st, column));
	if (sqlite3_step(r->texts) == SQLITE_ROW)
		out = mem_strdup(askrows_text(r->texts, 0));
	sqlite3_reset(r->texts);
	return out ? out : mem_strdup("");
}

static uint64_t place_new(struct reading *r, sqlite3_stmt *st)
{
	static const char *const sides[] = {"capture", "client", "server"};
	const int64_t side = sqlite3_column_int64(st, 1);
	cleanup_free char *protocol = word_of(r, st, 2), *service = word_of(r, st, 3),
			  *operation = word_of(r, st, 4), *status = word_of(r, st, 5);
	const struct words w = {sides[side == 1 || side == 2 ? side : 0], protocol, service,
				operation, status};

	return place_of(r, sqlite3_column_int64(st, 0), &w);
}

static void take_request(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	uint64_t key = HASH_SEED, *at;
	bool fresh;

	for (int i = 0; i <= 5; i++)
		key = hash_u64(key, (uint64_t)sqlite3_column_int64(st, i));
	at = idmap_ref(&r->known, key, &fresh);
	if (fresh)
		*at = place_new(r, st);
	if (*at != NOT_WANTED)
		take_amounts(&r->out->rows[*at], st, sqlite3_column_int64(st, 6) == 5);
}

/* Of a row that is there: each has its requests. */
static void take_phase(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct words w = words_of(st);
	const struct store_process_row *p;
	struct reqrows_part *part;
	uint64_t at, most;
	bool in;

	p = process_of(r, sqlite3_column_int64(st, 0), &in);
	if (!in || (*r->side && strcmp(r->side, w.side)) ||
	    !idmap_get(&r->row_of, row_hash(r, p, &w), &at))
		return;
	part = strcmp(askrows_text(st, 6), "queue") ? &r->out->rows[at].first :
						      &r->out->rows[at].queue;
	part->n += (uint64_t)sqlite3_column_int64(st, 7);
	part->total_ns += (uint64_t)sqlite3_column_int64(st, 8);
	most = (uint64_t)sqlite3_column_int64(st, 9);
	part->max_ns = most > part->max_ns ? most : part->max_ns;
	hist_read(&part->spread, askrows_text(st, 10), strlen(askrows_text(st, 10)), HIST_FINE);
}

static void take_bytes(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	bool in;

	process_of(r, sqlite3_column_int64(st, 0), &in);
	if (!in)
		return;
	r->out->seen += (uint64_t)sqlite3_column_int64(st, 1);
	r->out->parsed += (uint64_t)sqlite3_column_int64(st, 2);
	r->out->skipped += (uint64_t)sqlite3_column_int64(st, 3);
	r->out->blind += (uint64_t)sqlite3_column_int64(st, 4);
	r->out->blind_requests += (uint64_t)sqlite3_column_int64(st, 5);
}

static bool is_failed(sqlite3_stmt *st)
{
	const char *result = askrows_text(st, 6);

	return !strcmp("failed", askrows_text(st, 7)) ||
	       (!strcmp("ring", askrows_text(st, 7)) &&
		(!strcmp("error", result) || !strcmp("no-answer", result)));
}

/* A request that was kept for one of a later bucket ("linked") may be in the ring, too: it is there
 * once. */
static bool is_first(struct reading *r, const struct store_process_row *p, sqlite3_stmt *st)
{
	const char *why = askrows_text(st, 7);
	uint64_t key, *at;
	bool ring = !strcmp(why, "ring"), fresh;

	if (!ring && strcmp(why, "linked") != 0)
		return true;
	key = hash_u64(hash_u64(HASH_SEED, p ? (uint64_t)p->pid : 0),
		       (uint64_t)sqlite3_column_int64(st, 9));
	key = hash_u64(hash_u64(key, (uint64_t)sqlite3_column_int64(st, 10)),
		       (uint64_t)sqlite3_column_int64(st, 12));
	key = hash_str(hash_str(key, askrows_text(st, 1)), askrows_text(st, 4));
	at = idmap_ref(&r->twice, key, &fresh);
	if (fresh)
		*at = ring;
	return fresh || *at == ring;
}

static bool has_room(struct reqsingles *s, sqlite3_stmt *st)
{
	if (strcmp("ring", askrows_text(st, 7)) != 0)
		return true;
	if (s->ring == REQSINGLES_RING) {
		s->left++;
		return false;
	}
	s->ring++;
	return true;
}

static void take_single(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct reqsingles *s = r->singles;
	const struct store_process_row *p;
	bool in;

	p = process_of(r, sqlite3_column_int64(st, 0), &in);
	if (!in || (*r->side && strcmp(r->side, askrows_text(st, 1))) ||
	    (r->failed && !is_failed(st)) || !is_first(r, p, st) || !has_room(s, st))
		return;
	mem_grow(s->rows, s->n, r->cap);
	s->rows[s->n++] =
		(struct reqsingle){.container = mem_strdup(p ? p->container : ""),
				   .comm = mem_strdup(p ? p->comm : ""),
				   .pid = p ? p->pid : 0,
				   .side = mem_strdup(askrows_text(st, 1)),
				   .protocol = mem_strdup(askrows_text(st, 2)),
				   .service = mem_strdup(askrows_text(st, 3)),
				   .operation = mem_strdup(askrows_text(st, 4)),
				   .status = mem_strdup(askrows_text(st, 5)),
				   .result = mem_strdup(askrows_text(st, 6)),
				   .why = mem_strdup(askrows_text(st, 7)),
				   .trace = mem_strdup(askrows_text(st, 8)),
				   .tid = sqlite3_column_int64(st, 9),
				   .at_ns = sqlite3_column_int64(st, 10),
				   .first_us = sqlite3_column_int64(st, 11),
				   .total_us = sqlite3_column_int64(st, 12),
				   .weight = (uint64_t)sqlite3_column_int64(st, 13),
				   .request_bytes = (uint64_t)sqlite3_column_int64(st, 14),
				   .response_bytes = (uint64_t)sqlite3_column_int64(st, 15)};
}

static int read_rows(struct reading *r, struct err *e)
{
	static const char ONE[] = "SELECT 1";
	static const struct askrows_sums none = {.sql = ONE};
	const struct askrows_part parts[] = {{RECORDED, take_run, r, OF_TABLES},
					     {ONE, segment_turns, r, none},
					     {REQUESTS, take_request, r, REQUESTS_SUMMED},
					     {ONE, segment_turns, r, none},
					     {BYTES, take_bytes, r, BYTES_SUMMED},
					     {PHASES, take_phase, r, PHASES_SUMMED}};
	int rc = askrows_each_day(r->sel, &r->dict, parts, ARRAY_SIZE(parts), e);

	segment_turns(r, NULL);
	idmap_release(&r->row_of);
	idmap_release(&r->known);
	return rc;
}

static int read_singles(struct reading *r, struct err *e)
{
	const struct askrows_part parts[] = {{RECORDED, take_run, r, OF_TABLES},
					     {SINGLES, take_single, r}};

	return askrows_each(r->sel, &r->dict, parts, ARRAY_SIZE(parts), e);
}

static int by_time(const void *a, const void *b)
{
	const struct reqrows_row *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->requests != y->requests ? x->requests < y->requests ? 1 : -1 :
					    strcmp(x->operation, y->operation);
}

static int by_errors(const void *a, const void *b)
{
	const struct reqrows_row *x = a, *y = b;

	return x->errors != y->errors ? x->errors < y->errors ? 1 : -1 : by_time(a, b);
}

int reqrows_read(const struct selection *sel, enum reqrows_by by, const char *side, bool failed,
		 struct reqrows *out, struct err *e)
{
	struct reading r = {.sel = sel, .by = by, .side = side, .out = out};
	int rc;

	*out = (struct reqrows){0};
	rc = read_rows(&r, e);
	out->seconds = r.to_ns > r.from_ns ? (double)(r.to_ns - r.from_ns) / 1e9 : 0;
	for (size_t i = 0; i < out->n; i++)
		out->rows[i].answered = hist_total(&out->rows[i].latency);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), failed ? by_errors : by_time);
	return rc;
}

static int slower(const void *a, const void *b)
{
	const struct reqsingle *x = a, *y = b;

	return x->total_us != y->total_us ? x->total_us < y->total_us ? 1 : -1 :
					    (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static int newer(const void *a, const void *b)
{
	const struct reqsingle *x = a, *y = b;

	return (x->at_ns < y->at_ns) - (x->at_ns > y->at_ns);
}

static void single_release(struct reqsingle *x)
{
	char *const texts[] = {x->container, x->comm,   x->side,   x->protocol, x->service,
			       x->operation, x->status, x->result, x->why,      x->trace};

	for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
		free(texts[t]);
}

static void streams_mark(struct reqsingles *s, bool keep)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct reqsingle *x = &s->rows[i];

		x->stream = reqstream_is(x);
		if (x->stream && !keep) {
			single_release(x);
			s->streams++;
		} else {
			s->rows[n++] = *x;
		}
	}
	s->n = n;
}

int reqsingles_read(const struct selection *sel, const char *side, bool failed, bool streams,
		    struct reqsingles *out, struct err *e)
{
	struct reading r = {.sel = sel, .side = side, .failed = failed, .singles = out};
	int rc;

	*out = (struct reqsingles){0};
	rc = read_singles(&r, e);
	idmap_release(&r.twice);
	streams_mark(out, streams);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), failed ? newer : slower);
	return rc;
}

void reqrows_release(struct reqrows *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct reqrows_row *x = &r->rows[i];
		char *const texts[] = {x->container, x->comm,      x->side,  x->protocol,
				       x->service,   x->operation, x->status};

		for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
			free(texts[t]);
		hist_release(&x->latency);
		hist_release(&x->first.spread);
		hist_release(&x->queue.spread);
	}
	free(r->rows);
	*r = (struct reqrows){0};
}

void reqsingles_release(struct reqsingles *r)
{
	for (size_t i = 0; i < r->n; i++)
		single_release(&r->rows[i]);
	free(r->rows);
	*r = (struct reqsingles){0};
}

/* ---- what a row says ---- */

static void part_sum(struct reqrows_part *to, const struct reqrows_part *p)
{
	hist_merge(&to->spread, &p->spread);
	to->n += p->n;
	to->total_ns += p->total_ns;
	to->max_ns = p->max_ns > to->max_ns ? p->max_ns : to->max_ns;
}

void reqrows_sum(struct reqrows_row *to, const struct reqrows_row *r)
{
	hist_merge(&to->latency, &r->latency);
	part_sum(&to->first, &r->first);
	part_sum(&to->queue, &r->queue);
	to->requests += r->requests;
	to->errors += r->errors;
	to->blind += r->blind;
	to->answered += r->answered;
	to->total_ns += r->total_ns;
	to->max_ns = r->max_ns > to->max_ns ? r->max_ns : to->max_ns;
	to->request_bytes += r->request_bytes;
	to->response_bytes += r->response_bytes;
}

uint64_t reqrows_quantile(const struct reqrows_row *r, double q)
{
	uint64_t ns = (uint64_t)hist_quantile(&r->latency, q);

	return ns < r->max_ns ? ns : r->max_ns;
}

uint64_t reqrows_part_quantile(const struct reqrows_part *p, double q)
{
	uint64_t ns = (uint64_t)hist_quantile(&p->spread, q);

	return ns < p->max_ns ? ns : p->max_ns;
}

/* ---- rows of other rows ---- */

static struct reqrows_row *operation_of(struct reqrows *out, size_t *cap, struct idmap *row_of,
					const struct reqrows_row *r)
{
	bool fresh;
	uint64_t *at = idmap_ref(
		row_of, operation_hash(HASH_SEED, r->protocol, r->service, r->operation), &fresh);
	struct reqrows_row *x;

	if (fresh) {
		*at = out->n;
		mem_grow(out->rows, out->n, *cap);
		out->rows[out->n++] = (struct reqrows_row){.container = mem_strdup(r->container),
							   .comm = mem_strdup(r->comm),
							   .pid = r->pid,
							   .side = mem_strdup(r->side),
							   .protocol = mem_strdup(r->protocol),
							   .service = mem_strdup(r->service),
							   .operation = mem_strdup(r->operation),
							   .status = mem_strdup(r->status),
							   .self = r->self};
	}
	x = &out->rows[*at];
	texts_same(x, r->container, r->comm, r->protocol, r->service, r->operation, r->status);
	x->pid = x->pid == r->pid ? r->pid : 0;
	return x;
}

void reqrows_operations(const struct reqrows *ends, const char *side, struct reqrows *out)
{
	struct idmap row_of = {0};
	size_t cap = 0;

	*out = *ends;
	out->rows = NULL;
	out->n = out->shown = 0;
	for (size_t i = 0; i < ends->n; i++)
		if (!strcmp(ends->rows[i].side, side))
			reqrows_sum(operation_of(out, &cap, &row_of, &ends->rows[i]),
				    &ends->rows[i]);
	idmap_release(&row_of);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_time);
}
