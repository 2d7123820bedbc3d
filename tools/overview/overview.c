/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/overview/overview.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/fold/fold.h"
#include "tools/fold/fold_kind.h"
#include "tools/processes/hostload.h"
#include "tools/processes/process_usage.h"
#include "tools/record/recorder.h"
#include "tools/requests/reqstream.h"
#include "tools/select/askrows.h"
#include "tools/timeline/incidents.h"

#define RANGE_NS (900ll * NSEC_PER_SEC)
#define SLOWEST  3
#define BEFORE_S                                                                        \
	30 /* so long, or half as long as now: less of the time before is no comparison \
	    */

const char *const OVERVIEW_FAMILY_NAMES[OVERVIEW_FAMILIES] = {"cpu", "offcpu", "host", "net", "l7"};

static const char FAMILIES_SQL[] =
	"SELECT family, " ASKROWS_COUNTED_FROM ", " ASKROWS_COUNTED_TO " FROM run"
	" WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";
static const char SYNCS[] =
	"SELECT sum(us), sum(calls) FROM fsyncs WHERE ts BETWEEN ?1 AND ?2 AND self = 0";
static const char ERRORS[] = "SELECT sum(errors) FROM block_stats WHERE ts BETWEEN ?1 AND ?2";

/* ---- the two windows ---- */

static int windows(const char *store, const struct select_args *select, struct selection *out[2],
		   struct err *e)
{
	struct select_args args = *select;
	char from[48], to[48];
	int64_t length;
	int rc = select_new(&args, store, NULL, 0, true, &out[OVERVIEW_NOW], e);

	if (rc)
		return rc;
	length = out[OVERVIEW_NOW]->to_ns - out[OVERVIEW_NOW]->from_ns;
	length = length > 0 ? length : RANGE_NS;
	snprintf(from, sizeof(from), "%lld.%09lld",
		 (long long)((out[OVERVIEW_NOW]->from_ns - length) / NSEC_PER_SEC),
		 (long long)((out[OVERVIEW_NOW]->from_ns - length) % NSEC_PER_SEC));
	snprintf(to, sizeof(to), "%lld.%09lld",
		 (long long)(out[OVERVIEW_NOW]->from_ns / NSEC_PER_SEC),
		 (long long)(out[OVERVIEW_NOW]->from_ns % NSEC_PER_SEC));
	args.last_ns = 0;
	args.at = args.rec = NULL;
	args.from = from;
	args.to = to;
	return select_new(&args, store, NULL, 0, true, &out[OVERVIEW_BEFORE], e);
}

/* ---- the host ---- */

struct span { /* that a run recorded */
	int family;
	int64_t from_ns, to_ns;
};

struct reading {
	struct overview *o;
	int w;
	struct span *spans; /* of the window */
	size_t n_spans, cap_spans;
};

static void take_family(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const int64_t from = sqlite3_column_int64(st, 1), to = sqlite3_column_int64(st, 2);

	r->o->any = r->o->any || r->w == OVERVIEW_NOW;
	for (int f = 0; f < OVERVIEW_FAMILIES; f++) {
		if (strcmp(OVERVIEW_FAMILY_NAMES[f], askrows_text(st, 0)) != 0)
			continue;
		r->o->known[r->w][f] = true;
		mem_grow(r->spans, r->n_spans, r->cap_spans);
		r->spans[r->n_spans++] = (struct span){f, from, to};
	}
}

static int by_family(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->family != y->family ? x->family - y->family :
					(x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* For how long each family recorded: without the gaps between runs, and each moment once. Too
 * little of the time before is not known. */
static void seconds_find(struct reading *r)
{
	double *const seconds = r->o->seconds[r->w], *const now = r->o->seconds[OVERVIEW_NOW];
	int64_t last = 0;

	if (r->n_spans)
		qsort(r->spans, r->n_spans, sizeof(*r->spans), by_family);
	for (size_t i = 0; i < r->n_spans; i++) {
		const struct span *s = &r->spans[i];
		const bool first = !i || r->spans[i - 1].family != s->family;
		const int64_t from = first || s->from_ns > last ? s->from_ns : last;

		if (s->to_ns > from)
			seconds[s->family] += (double)(s->to_ns - from) / NSEC_PER_SEC;
		last = first || s->to_ns > last ? s->to_ns : last;
	}
	for (int f = 0; f < OVERVIEW_FAMILIES && r->w == OVERVIEW_BEFORE; f++)
		r->o->known[r->w][f] =
			r->o->known[r->w][f] && seconds[f] >= fmin(BEFORE_S, now[f] / 2);
	r->n_spans = 0;
}

static void add_to(double *sum, sqlite3_stmt *st, int column)
{
	if (sqlite3_column_type(st, column) != SQLITE_NULL)
		*sum = (*sum < 0 ? 0 : *sum) + sqlite3_column_double(st, column);
}

static void take_syncs(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	add_to(&r->o->host.fsync_us[r->w], st, 0);
	add_to(&r->o->host.fsyncs[r->w], st, 1);
}

static void take_errors(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	add_to(&r->o->host.disk_errors[r->w], st, 0);
}

static void host_take(struct overview_host *h, int w, const struct hostload *x)
{
	h->cores[w] = x->cores;
	h->load[w] = x->load;
	h->waited_cpu[w] = x->waited_cpu;
	h->waited_mem[w] = x->waited_mem;
	h->waited_io[w] = x->waited_io;
	h->mem_used[w] = x->mem_used;
	h->swapped[w] = x->swapped;
	h->disk_busy[w] = x->disk_busy;
	if (h->cpus < 0)
		h->cpus = x->cpus;
	if (h->mem_total < 0)
		h->mem_total = x->mem_total;
	if (w == OVERVIEW_NOW)
		snprintf(h->disk, sizeof(h->disk), "%s", x->disk);
}

static int host_read(struct overview *o, struct err *e)
{
	struct reading r = {.o = o};
	const struct askrows_part parts[] = {{FAMILIES_SQL, take_family, &r},
					     {SYNCS, take_syncs, &r},
					     {ERRORS, take_errors, &r}};
	struct overview_host *h = &o->host;
	struct hostload x;
	int rc = 0;

	*h = (struct overview_host){.mem_total = -1, .cpus = -1};
	for (int w = 0; w < 2; w++)
		h->fsync_us[w] = h->fsyncs[w] = h->disk_errors[w] = -1;
	for (r.w = OVERVIEW_NOW; r.w >= OVERVIEW_BEFORE && !rc; r.w--) {
		rc = askrows_each(o->sel[r.w], NULL, parts, ARRAY_SIZE(parts), e);
		seconds_find(&r);
		if (!rc)
			rc = hostload_read(o->sel[r.w], r.w == OVERVIEW_NOW ? NULL : h->disk, &x,
					   e);
		if (!rc)
			host_take(h, r.w, &x);
	}
	free(r.spans);
	return rc;
}

/* ---- rows ---- */

static struct overview_row *row_named(struct overview *o, const char *name, bool container)
{
	bool fresh;
	uint64_t *at =
		idmap_ref(&o->row_of, hash_u64(hash_str(HASH_SEED, name), container), &fresh);

	if (fresh) {
		*at = o->n;
		mem_grow(o->rows, o->n, o->cap);
		o->rows[o->n++] =
			(struct overview_row){.name = mem_strdup(name), .container = container};
	}
	return &o->rows[*at];
}

static void use_add(struct overview *o, int w, const char *name, bool container,
		    const struct process_usage_row *u, bool ended)
{
	const double seconds = o->seconds[w][OVERVIEW_HOST];
	struct overview_row *r = row_named(o, name, container);

	if (seconds <= 0)
		return;
	r->has_cpu = r->there[w] = true;
	r->alive[w] = r->alive[w] || !ended;
	r->has_mem[w] = r->has_mem[w] || u->has_mem;
	r->has_io[w] = r->has_io[w] || u->has_io;
	r->has_net[w] = r->has_net[w] || u->has_net;
	r->cpu[w] += (double)u->cpu_us / 1e6 / seconds;
	r->mem[w] += (double)u->held;
	r->io[w] += (double)(u->read_bytes + u->write_bytes) / seconds;
	r->net[w] += (double)(u->rx_bytes + u->tx_bytes) / seconds;
}

static int used_read(struct overview *o, int w, struct err *e)
{
	struct process_usage used;
	int rc = process_usage_containers(o->sel[w], &used, e);

	for (size_t i = 0; !rc && i < used.n; i++)
		use_add(o, w, used.rows[i].name, true, &used.rows[i], !used.rows[i].has_mem);
	process_usage_release(&used);
	if (rc)
		return rc;
	rc = process_usage_processes(o->sel[w], &used, e);
	for (size_t i = 0; !rc && i < used.n; i++) {
		struct process_usage_row *u = &used.rows[i];
		const bool ended = u->who.end_ns && u->who.end_ns <= o->sel[w]->to_ns;

		if (*u->who.container || u->who.self)
			continue;
		/* Of a name's processes what they hold together: those that ended hold nothing. */
		if (ended) {
			u->has_mem = false;
			u->held = 0;
		}
		use_add(o, w, u->who.comm, false, u, ended);
	}
	process_usage_release(&used);
	return rc;
}

/* Where family host recorded nothing: CPU time from samples. */
static int sampled_read(struct overview *o, int w, struct err *e)
{
	const struct fold_opts opts = {.kind = STORE_KIND_CPU, .group = FOLD_BY_WHO};
	struct fold *f = NULL;
	int rc = fold_make(o->sel[w], &opts, &f, e);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	o->host.cores[w] = fold_cores(f, f->nodes[0].total_ns);
	o->host.cpus = f->cpus ? (double)f->cpus : -1;
	for (size_t i = 1; i < f->n_nodes; i++) {
		const struct fold_frame *frame = &f->frames[f->nodes[i].frame];
		struct overview_row *r;

		if (f->nodes[i].parent || frame->origin != FOLD_GROUP ||
		    o->seconds[w][OVERVIEW_CPU] <= 0)
			continue;
		r = row_named(o, frame->name, !strcmp(frame->module, FOLD_CONTAINER));
		r->has_cpu = true;
		r->cpu[w] += fold_cores(f, f->nodes[i].total_ns);
	}
	fold_free(f);
	return 0;
}

static int happened_read(struct overview *o, int w, struct err *e)
{
	struct incidents x;
	int rc = incidents_read(o->sel[w], &x, e);

	for (size_t i = 0; !rc && i < x.n; i++) {
		const struct incident_container *c = &x.rows[i];
		struct overview_row *r;

		if (!incident_restarts(c)->n && !c->oom.n)
			continue;
		r = row_named(o, c->name, true);
		r->restarts[w] = incident_restarts(c)->n;
		r->oom[w] = c->oom.n;
	}
	if (!rc)
		incidents_release(&x);
	return rc;
}

static void answered_add(struct overview *o, int w, const struct reqrows *ends)
{
	for (size_t i = 0; i < ends->n; i++) {
		const struct reqrows_row *q = &ends->rows[i];
		struct overview_row *r;

		if (strcmp(q->side, "server") || q->self || (!*q->container && !*q->comm))
			continue;
		r = row_named(o, *q->container ? q->container : q->comm, *q->container);
		r->requests[w] += (double)q->requests;
		r->failed[w] += (double)q->errors;
	}
}

/* Once for each window: who answered, and the operations. */
static int requests_read(struct overview *o, struct err *e)
{
	const char *side = "server";
	int rc = 0;

	for (int w = OVERVIEW_NOW; w >= OVERVIEW_BEFORE && !rc; w--) {
		struct reqrows ends;

		rc = reqrows_read(o->sel[w], REQROWS_BY_END_OPERATION, "", false, &ends, e);
		if (!rc) {
			answered_add(o, w, &ends);
			reqrows_operations(&ends, side, &o->ops[w]);
		}
		if (!rc && w == OVERVIEW_NOW && !o->ops[w].n) {
			side = "client";
			reqrows_release(&o->ops[w]);
			reqrows_operations(&ends, side, &o->ops[w]);
		}
		reqrows_release(&ends);
	}
	return rc;
}

static double positive(double v)
{
	return v > 0 ? v : 0;
}

static void score(struct overview *o, struct overview_row *r)
{
	const double cpus = o->host.cpus > 0 ? o->host.cpus : 1;
	const double memory = o->host.mem_total > 0 ? o->host.mem_total : 8e9;

	r->score = r->cpu[OVERVIEW_NOW] / cpus + r->mem[OVERVIEW_NOW] / memory +
		   (r->io[OVERVIEW_NOW] + r->net[OVERVIEW_NOW]) / 50e6;
	r->score += positive(r->cpu[OVERVIEW_NOW] - r->cpu[OVERVIEW_BEFORE]) / cpus;
	r->score += 2.0 * (double)(r->oom[OVERVIEW_NOW] > 0) +
		    (double)(r->restarts[OVERVIEW_NOW] > 0) +
		    (double)(r->failed[OVERVIEW_NOW] > 0) / 2 + (r->container ? 0.02 : 0);
}

static int by_score(const void *a, const void *b)
{
	const struct overview_row *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int rows_read(struct overview *o, struct err *e)
{
	int rc = 0;

	for (int w = OVERVIEW_NOW; w >= OVERVIEW_BEFORE && !rc; w--) {
		if (o->known[w][OVERVIEW_HOST])
			rc = used_read(o, w, e);
		else if (o->known[w][OVERVIEW_CPU])
			rc = sampled_read(o, w, e);
		if (!rc)
			rc = happened_read(o, w, e);
	}
	return rc;
}

/* Those whose operations are slowest count as if a tenth of the host were theirs, those that became
 * slower as if all of it: they are what one looks for. */
static void rank(struct overview *o)
{
	struct overview_op slow[SLOWEST];
	const size_t n = overview_slowest(o, slow, SLOWEST);

	for (size_t i = 0; i < o->n; i++)
		score(o, &o->rows[i]);
	for (size_t i = 0; i < n; i++) {
		const struct reqrows_row *q = slow[i].now;
		const char *who = *q->container ? q->container : q->comm;

		if (*who)
			row_named(o, who, *q->container)->score +=
				overview_is_slower(&slow[i]) ? 1 : 0.1;
	}
	if (o->n)
		qsort(o->rows, o->n, sizeof(*o->rows), by_score);
}

/* ---- checks, requests ---- */

static int checks_read(struct overview *o, const char *store, struct err *e)
{
	struct checkfiles files;
	int rc = checkfiles_read(NULL, &files, e);

	if (rc)
		return rc;
	rc = checks_run_now(store, &files, o->sel[OVERVIEW_NOW]->to_ns / NSEC_PER_SEC / 10 * 10,
			    &o->checks, e);
	if (rc)
		checkfiles_release(&files);
	else
		o->files = files;
	return rc;
}

/* ---- pairs of operations ---- */

static bool is_stream(const struct reqrows_row *r)
{
	const struct reqsingle s = {
		.protocol = r->protocol,
		.service = r->service,
		.operation = r->operation,
		.status = r->status,
		.result = (char[]){""},
		.first_us = r->first.n ? (int64_t)(r->first.total_ns / r->first.n / 1000) : -1,
		.total_us = r->answered ? (int64_t)(r->total_ns / r->answered / 1000) : -1};

	return r->self || reqstream_is(&s);
}

static uint64_t op_key(const struct reqrows_row *r)
{
	return hash_str(hash_str(hash_str(HASH_SEED, r->protocol), r->service), r->operation);
}

static void pairs_make(struct overview *o)
{
	const struct reqrows *now = &o->ops[OVERVIEW_NOW], *before = &o->ops[OVERVIEW_BEFORE];
	struct idmap at = {0};
	uint64_t found;

	for (size_t i = 0; i < before->n; i++)
		idmap_set(&at, op_key(&before->rows[i]), i);
	o->pairs = mem_array(now->n + 1, sizeof(*o->pairs));
	for (size_t i = 0; i < now->n; i++)
		if (!is_stream(&now->rows[i]))
			o->pairs[o->n_pairs++] = (struct overview_op){
				&now->rows[i], idmap_get(&at, op_key(&now->rows[i]), &found) ?
						       &before->rows[found] :
						       NULL};
	idmap_release(&at);
}

static bool is_live(const char *store)
{
	struct select_recording *all = NULL;
	size_t n = 0;
	bool live = false;

	if (select_recordings(store, &all, &n, NULL))
		return false;
	for (size_t i = 0; i < n && !live; i++)
		live = recorder_is_live(&all[i]);
	select_recordings_free(all, n);
	return live;
}

int overview_read(const char *store, const struct select_args *select, struct overview *out,
		  struct err *e)
{
	int rc;

	*out = (struct overview){0};
	rc = windows(store, select, out->sel, e);
	if (!rc)
		rc = host_read(out, e);
	if (!rc && !out->any)
		rc = select_nothing(out->sel[OVERVIEW_NOW], NULL, NULL, "nothing was recorded",
				    "sonde status", e);
	if (!rc)
		rc = rows_read(out, e);
	if (!rc)
		rc = requests_read(out, e);
	if (!rc)
		rc = checks_read(out, store, e);
	if (!rc)
		rc = reqrunning_at(select, store, NULL, 0, out->sel[OVERVIEW_NOW]->to_ns,
				   &out->running, e);
	if (!rc) {
		pairs_make(out);
		rank(out);
	}
	out->ended = rc || !is_live(store);
	return rc;
}

void overview_release(struct overview *o)
{
	for (size_t i = 0; i < o->n; i++)
		free(o->rows[i].name);
	free(o->rows);
	free(o->pairs);
	idmap_release(&o->row_of);
	check_results_release(&o->checks);
	checkfiles_release(&o->files);
	for (int w = 0; w < 2; w++) {
		reqrows_release(&o->ops[w]);
		select_free(o->sel[w]);
	}
	reqrunning_release(&o->running);
	*o = (struct overview){0};
}

/* ---- operations ---- */

static double mean(const struct reqrows_row *r)
{
	return r && r->answered ? (double)r->total_ns / (double)r->answered : 0;
}

/* What it took more than before; where that is nothing, a thousandth of its p95. An engine's comes
 * after all others. */
static double slowness(const struct overview_op *x)
{
	const double more = x->before && x->before->answered ? mean(x->now) - mean(x->before) : 0;

	return (positive(more) * (double)x->now->answered +
		(double)reqrows_quantile(x->now, 0.95) / 1000) /
	       (reqstream_is_engine(x->now->service) ? 1e9 : 1);
}

bool overview_is_slower(const struct overview_op *x)
{
	const double now = mean(x->now), before = mean(x->before);

	return x->before && x->before->answered >= 3 && now >= OVERVIEW_SLOWER * before &&
	       now - before >= 1e6;
}

static double failures(const struct overview_op *x)
{
	return (double)x->now->errors;
}

static size_t most_of(const struct overview *o, double (*weight)(const struct overview_op *x),
		      struct overview_op *out, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n_pairs; i++) {
		const struct overview_op x = o->pairs[i];
		size_t at = n;

		if (weight(&x) <= 0)
			continue;
		while (at && weight(&out[at - 1]) < weight(&x))
			at--;
		if (at == most)
			continue;
		n += n < most;
		memmove(&out[at + 1], &out[at], (n - 1 - at) * sizeof(*out));
		out[at] = x;
	}
	return n;
}

size_t overview_slowest(const struct overview *o, struct overview_op *out, size_t most)
{
	return most_of(o, slowness, out, most);
}

size_t overview_failing(const struct overview *o, struct overview_op *out, size_t most)
{
	return most_of(o, failures, out, most);
}
