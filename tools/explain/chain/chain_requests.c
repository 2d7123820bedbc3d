/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain/chain_requests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/diff/diff.h"
#include "tools/diff/stats.h"
#include "tools/requests/reqstream.h"
#include "tools/select/askrows.h"

#define UNIT 0.02 /* what one bucket adds to a mean of logarithms */

static const char RECORDED[] =
	"SELECT " ASKROWS_COUNTED_FROM ", " ASKROWS_COUNTED_TO " FROM run WHERE family = 'l7'"
	" AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";
/* View requests with the numbers of its words, of which each is looked up once (take_request): the
 * joins took longer than all else. Of an archive the columns themselves. */
#define COLUMNS "ts, process, side, protocol, service, operation, status, result, n, total_ns, hist"
static const char REQUESTS[] =
	"SELECT x.ts + t0.value, x.process, x.side, x.protocol, x.service, x.operation, x.status, x.result, x.n, x.total_ns, coalesce(x.hist, '')"
	" FROM request_row x JOIN meta t0 ON t0.key = 't0'"
	" LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts"
	" AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM request_row y WHERE y.run = h.by AND y.process = x.process))"
	" WHERE h.run IS NULL AND x.side IN (1, 2)"
	" AND x.ts >= ?1 - (SELECT value FROM meta WHERE key = 't0') AND x.ts <= ?2 - (SELECT value FROM meta WHERE key = 't0')";
static const char QUEUES[] =
	"SELECT process_id, side, protocol, coalesce(service, ''), operation, total_ns FROM request_phases WHERE ts BETWEEN ?1 AND ?2 AND phase = 'queue'";

enum result { OK = 0, ERROR = 1, OPENED = 3, NO_ANSWER = 4 }; /* of request_row */

struct reading {
	const struct selection *narrow;
	const struct store_dict *dict; /* of the segment */
	struct chain_requests *out;
	int window;
	struct idmap op_of;
	struct store_segment *seg; /* the one at hand; its own: */
	struct idmap known;        /* an operation by the numbers of a row's words, or NOT_WANTED */
	sqlite3_stmt *texts;       /* a word by its number */
	int64_t from_ns, to_ns;
};

#define NOT_WANTED UINT64_MAX

enum word { PROCESS, SIDE, PROTOCOL, SERVICE, OPERATION, STATUS, RESULT, WORDS };
struct request {
	int64_t ts, word[WORDS]; /* numbers of table text, but for process, side and result */
	uint64_t n, total_ns;
	const char *hist;
};

struct words {
	const char *side, *protocol, *service, *operation;
};

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t from = sqlite3_column_int64(st, 0), to = sqlite3_column_int64(st, 1);

	r->from_ns = !r->from_ns || from < r->from_ns ? from : r->from_ns;
	r->to_ns = to > r->to_ns ? to : r->to_ns;
	r->out->known[r->window] = true;
}

static const struct store_process_row *process_of(const struct reading *r, int64_t id)
{
	const struct store_process_row *p = store_dict_process(r->dict, id);

	return p && !p->self ? p : NULL;
}

static uint64_t op_key(const struct store_process_row *p, const struct words *w)
{
	const char *const words[] = {w->side, w->protocol, w->service, w->operation};
	uint64_t h = hash_str(HASH_SEED, *p->container ? p->container : p->comm);

	h = hash_u64(h, *p->container != '\0');
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		h = hash_str(hash_u64(h, 1), words[i]);
	return h;
}

static uint64_t place_key(const char *who, bool container)
{
	return hash_u64(hash_str(HASH_SEED, who), container);
}

static uint32_t place_new(struct chain_requests *out, const char *who, bool container)
{
	bool fresh;
	uint64_t *place = idmap_ref(&out->place_of, place_key(who, container), &fresh);

	if (fresh)
		*place = out->n_places++;
	return (uint32_t)*place;
}

uint32_t chain_place_of(const struct chain_requests *r, const char *who, bool container)
{
	uint64_t place;

	return idmap_get(&r->place_of, place_key(who, container), &place) ? (uint32_t)place :
									    CHAIN_NOWHERE;
}

static uint64_t op_of(struct reading *r, const struct store_process_row *p, const struct words *w)
{
	struct chain_requests *out = r->out;
	const char *who = *p->container ? p->container : p->comm;
	bool fresh;
	uint64_t *at = idmap_ref(&r->op_of, op_key(p, w), &fresh);

	if (fresh) {
		*at = out->n;
		mem_grow(out->ops, out->n, out->cap);
		out->ops[out->n++] = (struct chain_op){.who = mem_strdup(who),
						       .container = *p->container,
						       .place = place_new(out, who, *p->container),
						       .server = !strcmp(w->side, "server"),
						       .protocol = mem_strdup(w->protocol),
						       .service = mem_strdup(w->service),
						       .operation = mem_strdup(w->operation)};
	}
	out->ops[*at].wanted = out->ops[*at].wanted || select_wants_process(r->narrow, p);
	return *at;
}

/* ---- words by their numbers ---- */

static void segment_turns(struct reading *r)
{
	sqlite3_finalize(r->texts);
	r->texts = NULL;
	idmap_clear(&r->known);
}

static char *word_of(struct reading *r, int64_t number)
{
	char *out = NULL;

	if (!r->texts)
		sqlite3_prepare_v2(store_segment_tables(r->seg),
				   "SELECT value FROM text WHERE id = ?1", -1, &r->texts, NULL);
	sqlite3_bind_int64(r->texts, 1, number);
	if (sqlite3_step(r->texts) == SQLITE_ROW)
		out = mem_strdup(askrows_text(r->texts, 0));
	sqlite3_reset(r->texts);
	return out ? out : mem_strdup("");
}

/* The operation of a row with these words; NOT_WANTED: of sonde's own, or a stream. */
static uint64_t op_new(struct reading *r, const struct request *q)
{
	const struct store_process_row *p = process_of(r, q->word[PROCESS]);
	cleanup_free char *protocol = word_of(r, q->word[PROTOCOL]),
			  *service = word_of(r, q->word[SERVICE]),
			  *operation = word_of(r, q->word[OPERATION]),
			  *status = word_of(r, q->word[STATUS]);
	const struct words w = {q->word[SIDE] == 1 ? "client" : "server", protocol, service,
				operation};
	const struct reqsingle s = {.protocol = protocol,
				    .status = status,
				    .result = q->word[RESULT] == OPENED ? (char[]){"opened"} :
									  (char[]){""},
				    .first_us = -1,
				    .total_us = -1};

	if (!p || reqstream_answered(&s) || reqstream_asked(protocol, service, operation))
		return NOT_WANTED;
	return op_of(r, p, &w);
}

static void status_add(struct chain_op *op, const char *name, uint64_t failed)
{
	size_t i = 0;

	while (i < op->n_statuses && strcmp(op->statuses[i].name, name))
		i++;
	if (i == CHAIN_STATUSES)
		return;
	if (i == op->n_statuses)
		op->statuses[op->n_statuses++] = (struct chain_status){.name = mem_strdup(name)};
	op->statuses[i].failed += failed;
}

static void failed_add(struct reading *r, struct chain_op *op, const struct request *q)
{
	cleanup_free char *status = word_of(r, q->word[STATUS]);
	const bool error = q->word[RESULT] == ERROR;

	status_add(op, *status ? status : error ? "error" : "no-answer", q->n);
}

static void take_request(struct reading *r, const struct request *q)
{
	const int64_t result = q->word[RESULT];
	uint64_t key = HASH_SEED, *at;
	struct chain_count *c;
	struct chain_op *op;
	bool fresh;

	for (int i = 0; i < WORDS; i++)
		key = hash_u64(key, (uint64_t)q->word[i]);
	at = idmap_ref(&r->known, key, &fresh);
	if (fresh)
		*at = op_new(r, q);
	if (*at == NOT_WANTED)
		return;
	op = &r->out->ops[*at];
	c = &op->w[r->window];
	c->n += q->n;
	if (result == ERROR || result == NO_ANSWER) {
		c->failed += q->n;
		if (r->window == DIFF_AFTER)
			failed_add(r, op, q);
	}
	if (result != OK && result != ERROR)
		return;
	c->answered += q->n;
	c->total_ns += q->total_ns;
	hist_read(&c->spread, q->hist, strlen(q->hist), HIST_FINE);
	mem_grow(c->buckets, c->n_buckets, c->cap_buckets);
	c->buckets[c->n_buckets++] = (struct chain_bucket){q->ts, q->n, q->total_ns};
}

static void take_row(void *ctx, sqlite3_stmt *st)
{
	struct request q = {.ts = sqlite3_column_int64(st, 0),
			    .n = (uint64_t)sqlite3_column_int64(st, 1 + WORDS),
			    .total_ns = (uint64_t)sqlite3_column_int64(st, 2 + WORDS)};

	for (int i = 0; i < WORDS; i++)
		q.word[i] = sqlite3_column_int64(st, 1 + i);
	q.hist = askrows_text(st, 3 + WORDS);
	take_request(ctx, &q);
}

static int take_columns(void *ctx, int64_t ts, const struct store_columns *c)
{
	struct request q = {.ts = ts,
			    .n = (uint64_t)store_columns_number(c, 1 + WORDS),
			    .total_ns = (uint64_t)store_columns_number(c, 2 + WORDS),
			    .hist = store_columns_text(c, 3 + WORDS)};

	for (int i = 0; i < WORDS; i++)
		q.word[i] = store_columns_number(c, 1 + i);
	if (q.word[SIDE] == 1 || q.word[SIDE] == 2)
		take_request(ctx, &q);
	return 0;
}

static void take_queue(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, sqlite3_column_int64(st, 0));
	const struct words w = {askrows_text(st, 1), askrows_text(st, 2), askrows_text(st, 3),
				askrows_text(st, 4)};
	uint64_t at;

	if (p && idmap_get(&r->op_of, op_key(p, &w), &at))
		r->out->ops[at].w[r->window].queue_ns += (uint64_t)sqlite3_column_int64(st, 5);
}

static int read_segment(struct reading *r, const struct selection *sel, const char *path,
			struct err *e)
{
	int rc = select_segment(sel, path, &r->seg, e);

	if (!rc)
		rc = store_segment_processes(r->seg, &r->dict, e);
	if (!rc)
		rc = askrows(sel, r->seg, path, RECORDED, take_run, r, e);
	if (!rc && store_segment_has(r->seg, "request_row") &&
	    !store_columns_each(r->seg, "request_row", COLUMNS, sel->from_ns / NSEC_PER_SEC,
				(sel->to_ns - 1) / NSEC_PER_SEC, take_columns, r, &rc, e))
		rc = askrows(sel, r->seg, path, REQUESTS, take_row, r, e);
	segment_turns(r);
	return rc ? rc : askrows(sel, r->seg, path, QUEUES, take_queue, r, e);
}

int chain_requests_read(struct selection *const wide[2], const struct selection *narrow,
			struct chain_requests *out, struct err *e)
{
	struct reading r = {.narrow = narrow, .out = out};
	int rc = 0;

	*out = (struct chain_requests){0};
	for (r.window = 0; r.window < 2 && !rc; r.window++) {
		const struct selection *sel = wide[r.window];

		r.from_ns = r.to_ns = 0;
		for (size_t i = 0; i < sel->n_segments && !rc; i++)
			rc = read_segment(&r, sel, sel->segments[i].path, e);
		out->seconds[r.window] = (double)(r.to_ns - r.from_ns) / NSEC_PER_SEC;
		out->from_ns[r.window] = r.from_ns;
		out->to_ns[r.window] = r.to_ns;
	}
	idmap_release(&r.op_of);
	idmap_release(&r.known);
	return rc;
}

void chain_requests_release(struct chain_requests *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct chain_op *op = &r->ops[i];
		char *const texts[] = {op->who, op->protocol, op->service, op->operation};

		for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
			free(texts[t]);
		for (size_t k = 0; k < op->n_statuses; k++)
			free(op->statuses[k].name);
		for (int w = 0; w < 2; w++) {
			hist_release(&op->w[w].spread);
			free(op->w[w].buckets);
		}
	}
	free(r->ops);
	idmap_release(&r->place_of);
	*r = (struct chain_requests){0};
}

/* ---- what changed ---- */

double chain_mean(const struct chain_count *c)
{
	return c->answered ? (double)c->total_ns / (double)c->answered : 0;
}

double chain_extra(const struct chain_requests *r, const struct chain_op *op, bool fresh)
{
	const struct chain_count *before = &op->w[DIFF_BEFORE], *after = &op->w[DIFF_AFTER];
	const double seconds = r->seconds[DIFF_AFTER];

	if (!after->answered || seconds <= 0 || (!before->answered && !fresh))
		return 0;
	return (chain_mean(after) - chain_mean(before)) * (double)after->answered / NSEC_PER_SEC /
	       seconds;
}

static int by_ts(const void *a, const void *b)
{
	const struct chain_bucket *x = a, *y = b;

	return (x->ts > y->ts) - (x->ts < y->ts);
}

void chain_series_init(struct chain_series *s, const struct chain_count *c)
{
	struct chain_bucket *all = mem_array(c->n_buckets + 1, sizeof(*all));

	*s = (struct chain_series){.sums = all,
				   .logs = mem_array(c->n_buckets + 1, sizeof(*s->logs)),
				   .mean_ns = chain_mean(c)};
	if (c->n_buckets) {
		memcpy(all, c->buckets, c->n_buckets * sizeof(*all));
		qsort(all, c->n_buckets, sizeof(*all), by_ts);
	}
	for (size_t i = 0; i < c->n_buckets;) {
		struct chain_bucket sum = all[i++];

		for (; i < c->n_buckets && all[i].ts == sum.ts; i++) {
			sum.answered += all[i].answered;
			sum.total_ns += all[i].total_ns;
		}
		if (!sum.answered)
			continue;
		s->logs[s->n] = log((double)(sum.total_ns + 1) / (double)sum.answered);
		all[s->n++] = sum;
	}
}

void chain_series_release(struct chain_series *s)
{
	free(s->sums);
	free(s->logs);
	*s = (struct chain_series){0};
}

/* A window of one bucket is compared with all buckets before: it is above each of them. */
static bool is_above_all(const double *before, size_t n, double value)
{
	for (size_t i = 0; i < n; i++)
		if (before[i] >= value)
			return false;
	return n >= 5;
}

double chain_p(const struct chain_series *before, const double *logs, size_t n, double mean_ns)
{
	struct stats_test t = {.p = 1};

	if (before->n >= 2 && n >= 2)
		(mean_ns >= CHAIN_PLAINLY * before->mean_ns ? stats_welch_plain : stats_welch)(
			before->logs, before->n, UNIT, logs, n, UNIT, &t);
	return t.p;
}

bool chain_is_slower(const struct chain_op *op)
{
	const double before = chain_mean(&op->w[DIFF_BEFORE]),
		     after = chain_mean(&op->w[DIFF_AFTER]);
	struct chain_series s[2];
	bool slower;

	if (op->w[DIFF_BEFORE].answered < 3 || op->w[DIFF_AFTER].answered < 3 ||
	    after < CHAIN_RATIO * before || after - before < CHAIN_LEAST_NS)
		return false;
	for (int w = 0; w < 2; w++)
		chain_series_init(&s[w], &op->w[w]);
	slower = chain_p(&s[0], s[1].logs, s[1].n, after) <= CHAIN_P ||
		 (s[1].n == 1 && is_above_all(s[0].logs, s[0].n, s[1].logs[0]));
	for (int w = 0; w < 2; w++)
		chain_series_release(&s[w]);
	return slower;
}

bool chain_fails_more(const struct chain_op *op)
{
	const struct chain_count *before = &op->w[DIFF_BEFORE], *after = &op->w[DIFF_AFTER];
	const double n = (double)before->n + (double)after->n;
	double share[2];

	if (after->failed < CHAIN_FAILED_N || !after->n)
		return false;
	share[0] = before->n ? (double)before->failed / (double)before->n : 0;
	share[1] = (double)after->failed / (double)after->n;
	if (share[1] < CHAIN_FAILED || share[1] < 2 * share[0])
		return false;
	return !before->n || stats_counts((double)before->failed, (double)after->failed,
					  (double)after->n / n) <= CHAIN_P;
}

/* ---- whom it asked ---- */

static const char *port_of(const char *service)
{
	const char *colon = strrchr(service, ':');

	return colon ? colon : service;
}

/* Docker's name server has this address in each container; what is sent there arrives at another
 * port of it, which is dockerd's. */
#define DOCKER_NAMES "127.0.0.11:"

static bool is_docker_names(const struct chain_op *server, const struct chain_op *asked)
{
	const size_t n = sizeof(DOCKER_NAMES) - 1;

	return !strncmp(server->service, DOCKER_NAMES, n) &&
	       !strncmp(asked->service, DOCKER_NAMES, n);
}

const struct chain_op *chain_server_of(const struct chain_requests *r, const struct chain_op *asked)
{
	const struct chain_op *by_port = NULL;
	bool several = false;

	for (size_t i = 0; i < r->n; i++) {
		const struct chain_op *op = &r->ops[i];

		if (!op->server || strcmp(op->operation, asked->operation) != 0 ||
		    strcmp(op->protocol, asked->protocol) != 0)
			continue;
		if (!strcmp(op->service, asked->service) || is_docker_names(op, asked))
			return op;
		if (strcmp(port_of(op->service), port_of(asked->service)) != 0 ||
		    op->place == asked->place) /* a proxy asks what it is asked */
			continue;
		several = by_port && (by_port->container != op->container ||
				      strcmp(by_port->who, op->who) != 0);
		by_port = op;
	}
	return several ? NULL : by_port;
}

/* ---- for which statement a lock was held ---- */

static const char SERVED[] =
	"SELECT process_id, operation, sum(total_ns) FROM requests WHERE ts BETWEEN ?1 AND ?2 AND side = 'server' GROUP BY 1, 2";

struct serving {
	const struct store_dict *dict; /* of the segment */
	const char *who;
	bool container;
	uint32_t pid;
	int64_t most_ns;
	char *operation;
};

/* It begins or ends a transaction, or a connection. */
static bool is_frame(const char *operation)
{
	static const char *const all[] = {
		"BEGIN", "COMMIT", "END", "ROLLBACK", "ABORT", "START TRANSACTION", "CONNECT"};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i], operation))
			return true;
	return false;
}

static void take_served(void *ctx, sqlite3_stmt *st)
{
	struct serving *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *operation = askrows_text(st, 1);
	const int64_t ns = sqlite3_column_int64(st, 2);

	if (!p || p->pid != r->pid || ns <= r->most_ns || is_frame(operation) ||
	    strcmp(r->container ? p->container : p->comm, r->who) != 0)
		return;
	r->most_ns = ns;
	free(r->operation);
	r->operation = mem_strdup(operation);
}

static const char *asker_of(const struct chain_requests *r, const char *operation)
{
	const struct chain_op *one = NULL;

	for (size_t i = 0; i < r->n; i++) {
		const struct chain_op *op = &r->ops[i];

		if (op->server || !op->w[DIFF_AFTER].n || strcmp(op->operation, operation) != 0)
			continue;
		if (one && one->place != op->place)
			return NULL;
		one = op;
	}
	return one ? one->who : NULL;
}

void chain_holder_find(const struct selection *window, const struct chain_requests *r,
		       const char *who, bool container, uint32_t pid, struct chain_holder *out)
{
	struct serving x = {.who = who, .container = container, .pid = pid};
	const struct askrows_part part = {.sql = SERVED, .row = take_served, .ctx = &x};
	struct err ignored = {0};

	*out = (struct chain_holder){0};
	if (!pid || askrows_each(window, &x.dict, &part, 1, &ignored)) {
		free(x.operation);
		return;
	}
	out->operation = x.operation;
	if (x.operation)
		out->asker = asker_of(r, x.operation);
}

void chain_holder_release(struct chain_holder *h)
{
	free(h->operation);
	*h = (struct chain_holder){0};
}
