/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain_requests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
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
static const char REQUESTS[] =
	"SELECT process_id, side, protocol, coalesce(service, ''), operation, status, result, requests, errors, total_ns, ts,"
	" coalesce(hist, '') FROM requests WHERE ts BETWEEN ?1 AND ?2 AND side <> 'capture'";
static const char QUEUES[] =
	"SELECT process_id, side, protocol, coalesce(service, ''), operation, total_ns FROM request_phases WHERE ts BETWEEN ?1 AND ?2 AND phase = 'queue'";

struct reading {
	const struct selection *narrow;
	const struct store_dict *dict; /* of the segment */
	struct chain_requests *out;
	int window;
	struct idmap op_of, stream; /* stream: 1 or 0 by protocol, service and operation */
	int64_t from_ns, to_ns;
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

static uint64_t op_key(const struct store_process_row *p, sqlite3_stmt *st)
{
	uint64_t h = hash_str(HASH_SEED, *p->container ? p->container : p->comm);

	h = hash_u64(h, *p->container != '\0');
	for (int column = 1; column <= 4; column++)
		h = hash_str(hash_u64(h, 1), askrows_text(st, column));
	return h;
}

static bool is_stream(struct reading *r, sqlite3_stmt *st)
{
	const char *protocol = askrows_text(st, 2), *service = askrows_text(st, 3),
		   *operation = askrows_text(st, 4);
	bool fresh;
	uint64_t *asked = idmap_ref(
		&r->stream, hash_str(hash_str(hash_str(HASH_SEED, protocol), service), operation),
		&fresh);
	const int64_t answered = sqlite3_column_int64(st, 7);
	/* borrowed as SQLite lends them: reqstream_answered only reads */
	const struct reqsingle s = {
		.protocol = (char *)(uintptr_t)protocol,
		.status = (char *)(uintptr_t)askrows_text(st, 5),
		.result = (char *)(uintptr_t)askrows_text(st, 6),
		.first_us = -1,
		.total_us = answered ? sqlite3_column_int64(st, 9) / 1000 / answered : -1};

	if (fresh)
		*asked = reqstream_asked(protocol, service, operation);
	return *asked || reqstream_answered(&s);
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

static struct chain_op *op_of(struct reading *r, const struct store_process_row *p,
			      sqlite3_stmt *st)
{
	struct chain_requests *out = r->out;
	const char *who = *p->container ? p->container : p->comm;
	bool fresh;
	uint64_t *at = idmap_ref(&r->op_of, op_key(p, st), &fresh);

	if (fresh) {
		*at = out->n;
		mem_grow(out->ops, out->n, out->cap);
		out->ops[out->n++] =
			(struct chain_op){.who = mem_strdup(who),
					  .container = *p->container,
					  .place = place_new(out, who, *p->container),
					  .server = !strcmp(askrows_text(st, 1), "server"),
					  .protocol = mem_strdup(askrows_text(st, 2)),
					  .service = mem_strdup(askrows_text(st, 3)),
					  .operation = mem_strdup(askrows_text(st, 4))};
	}
	out->ops[*at].wanted = out->ops[*at].wanted || select_wants_process(r->narrow, p);
	return &out->ops[*at];
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

static void take_request(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, sqlite3_column_int64(st, 0));
	const char *text = askrows_text(st, 11), *result = askrows_text(st, 6);
	const uint64_t n = (uint64_t)sqlite3_column_int64(st, 7),
		       failed = (uint64_t)sqlite3_column_int64(st, 8),
		       total_ns = (uint64_t)sqlite3_column_int64(st, 9);
	const bool answered = !strcmp(result, "ok") || !strcmp(result, "error");
	struct chain_count *c;
	struct chain_op *op;

	if (!p || is_stream(r, st))
		return;
	op = op_of(r, p, st);
	c = &op->w[r->window];
	c->n += n;
	c->failed += failed;
	if (failed && r->window == DIFF_AFTER)
		status_add(op, *askrows_text(st, 5) ? askrows_text(st, 5) : result, failed);
	if (!answered)
		return;
	c->answered += n;
	c->total_ns += total_ns;
	hist_read(&c->spread, text, strlen(text), HIST_FINE);
	mem_grow(c->buckets, c->n_buckets, c->cap_buckets);
	c->buckets[c->n_buckets++] =
		(struct chain_bucket){sqlite3_column_int64(st, 10), n, total_ns};
}

static void take_queue(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, sqlite3_column_int64(st, 0));
	uint64_t at;

	if (p && idmap_get(&r->op_of, op_key(p, st), &at))
		r->out->ops[at].w[r->window].queue_ns += (uint64_t)sqlite3_column_int64(st, 5);
}

int chain_requests_read(struct selection *const wide[2], const struct selection *narrow,
			struct chain_requests *out, struct err *e)
{
	struct reading r = {.narrow = narrow, .out = out};
	const struct askrows_part parts[] = {
		{RECORDED, take_run, &r}, {REQUESTS, take_request, &r}, {QUEUES, take_queue, &r}};
	int rc = 0;

	*out = (struct chain_requests){0};
	for (r.window = 0; r.window < 2 && !rc; r.window++) {
		r.from_ns = r.to_ns = 0;
		rc = askrows_each(wide[r.window], &r.dict, parts, ARRAY_SIZE(parts), e);
		out->seconds[r.window] = (double)(r.to_ns - r.from_ns) / NSEC_PER_SEC;
		out->from_ns[r.window] = r.from_ns;
		out->to_ns[r.window] = r.to_ns;
	}
	idmap_release(&r.op_of);
	idmap_release(&r.stream);
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
