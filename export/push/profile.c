/* SPDX-License-Identifier: Apache-2.0 */
/* profile: see the header. Field numbers are those of push.v1 and types.v1. */
#include "export/push/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/batch.h"
#include "export/push/pack.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "schema/store/model/kinds.h"
#include "tools/fold/fold.h"
#include "tools/fold/fold_kind.h"
#include "tools/formats/pprof.h"
#include "tools/select/select.h"

enum { REQUEST_SERIES = 1, SERIES_LABELS = 1, SERIES_SAMPLES = 2, LABEL_NAME = 1, LABEL_VALUE = 2, SAMPLE_PROFILE = 1, SAMPLE_ID = 2 };

static const struct profile {
	const char *name, *series; /* in the configuration; __name__ */
	enum store_kind kind, or;  /* `or`: where there is nothing of the first */
} PROFILES[] = {
	{"cpu", "process_cpu", STORE_KIND_CPU, 0}, {"offcpu", "offcpu", STORE_KIND_OFFCPU, 0}, {"runqueue", "runqueue", STORE_KIND_RUNQUEUE, 0},
	{"memory", "memory", STORE_KIND_INUSE, STORE_KIND_ALLOC}, {"mutex", "mutex", STORE_KIND_MUTEX, 0}, {"block", "block", STORE_KIND_BLOCK, 0},
	{"goroutine", "goroutine", STORE_KIND_GOROUTINE, 0}, {"threadcreate", "threadcreate", STORE_KIND_THREADCREATE, 0},
	{"gocpu", "gocpu", STORE_KIND_GOCPU, 0}, {"gomemory", "gomemory", STORE_KIND_GOINUSE, STORE_KIND_GOALLOC},
	{"goblock", "goblock", STORE_KIND_GOBLOCK, 0}, {"gomutex", "gomutex", STORE_KIND_GOMUTEX, 0},
};

struct group { /* a series: whose it is */
	const char *container, *unit, *comm;
	size_t comm_len;
};

struct sending {
	int64_t from_ts, to_ts;
	profile_take *take;
	void *ctx;
	struct strbuf request;
	size_t *ends;         /* of the request's profiles */
	size_t n, cap;
	uint64_t *rows, *refused;
};

bool profile_named(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(PROFILES) / sizeof(PROFILES[0]); i++)
		if (strlen(PROFILES[i].name) == len && !strncmp(PROFILES[i].name, name, len))
			return true;
	return false;
}

/* --- messages --- */

static int each_alone(struct sending *s, struct err *e)
{
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < s->n; at = s->ends[i++]) {
		rc = s->take(s->ctx, s->request.buf + at, s->ends[i] - at, 1, e);
		if (rc == -EBADMSG) {
			log_warn("%s; a profile is left out", e->what);
			++*s->refused;
			--*s->rows;
			rc = 0;
		}
	}
	return rc;
}

static int flush(struct sending *s, struct err *e)
{
	int rc = s->n ? s->take(s->ctx, s->request.buf, s->request.len, s->n, e) : 0;

	if (rc == -EBADMSG)
		rc = each_alone(s, e);
	if (!rc)
		*s->rows += s->n;
	s->n = 0;
	strbuf_reset(&s->request);
	return rc;
}

static void label_add(struct strbuf *series, const char *name, const char *value, size_t len)
{
	struct strbuf pair cleanup_strbuf = STRBUF_INIT;

	if (!len)
		return;
	proto_bytes(&pair, LABEL_NAME, name, strlen(name));
	proto_bytes(&pair, LABEL_VALUE, value, len);
	proto_bytes(series, SERIES_LABELS, pair.buf, pair.len);
}

static void labels_add(struct strbuf *series, const struct group *g, const char *name, const char *host)
{
	const char *service = *g->container ? g->container : *g->unit ? g->unit : g->comm;

	label_add(series, "__name__", name, strlen(name));
	label_add(series, "__delta__", "false", 5);
	label_add(series, "service_name", service, service == g->comm ? g->comm_len : strlen(service));
	label_add(series, "comm", g->comm, g->comm_len);
	label_add(series, "container", g->container, strlen(g->container));
	label_add(series, "unit", g->unit, strlen(g->unit));
	label_add(series, "host", host ? host : "", host ? strlen(host) : 0);
}

/* Rule 4: a UUID (RFC 9562, version 8) of the series and its time. */
static void id_add(struct strbuf *sample, const struct strbuf *labels, int64_t ts)
{
	uint64_t a = hash_bytes((uint64_t)ts, labels->buf, labels->len), b = hash_bytes(hash_u64(HASH_SEED, a), labels->buf, labels->len);
	char id[40];

	snprintf(id, sizeof(id), "%08x-%04x-8%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
		 ((unsigned)(b >> 48) & 0x3fff) | 0x8000, b & 0xffffffffffffull);
	proto_bytes(sample, SAMPLE_ID, id, strlen(id));
}

static int series_add(struct sending *s, const struct fold *f, const struct group *g, const char *name, struct err *e)
{
	struct strbuf raw cleanup_strbuf = STRBUF_INIT, packed cleanup_strbuf = STRBUF_INIT, sample cleanup_strbuf = STRBUF_INIT,
		      series cleanup_strbuf = STRBUF_INIT;
	int rc;

	pprof_encode_bare(f, &raw);
	rc = pack(&raw, &packed, e);
	if (rc)
		return rc;
	labels_add(&series, g, name, f->host);
	proto_bytes(&sample, SAMPLE_PROFILE, packed.buf, packed.len);
	id_add(&sample, &series, s->from_ts);
	proto_bytes(&series, SERIES_SAMPLES, sample.buf, sample.len);
	proto_bytes(&s->request, REQUEST_SERIES, series.buf, series.len);
	mem_grow(s->ends, s->n, s->cap);
	s->ends[s->n++] = s->request.len;
	return s->request.len >= BATCH_BYTES ? flush(s, e) : 0;
}

/* --- groups --- */

static struct group group_of(const struct fold_process *p)
{
	struct group g = {.container = p->container, .unit = *p->container ? "" : p->unit, .comm = p->comm, .comm_len = strlen(p->comm)};

	if (!*p->container && !*p->unit && !*p->exe && *p->comm != '/')
		g.comm_len = strcspn(p->comm, "/");
	return g;
}

static int group_order(const struct group *a, const struct group *b)
{
	size_t len = a->comm_len < b->comm_len ? a->comm_len : b->comm_len;
	int d = strcmp(a->container, b->container);

	if (!d)
		d = strcmp(a->unit, b->unit);
	if (!d)
		d = memcmp(a->comm, b->comm, len);
	return d ? d : (a->comm_len > b->comm_len) - (a->comm_len < b->comm_len);
}

static int leaf_order(const void *a, const void *b, void *ctx)
{
	const struct fold *f = ctx;
	const struct fold_leaf *x = &f->leaves[*(const uint32_t *)a], *y = &f->leaves[*(const uint32_t *)b];
	struct group g = group_of(&f->processes[x->process]), h = group_of(&f->processes[y->process]);
	int d = x->process == y->process ? 0 : group_order(&g, &h);

	return d ? d : x->node != y->node ? (x->node > y->node) - (x->node < y->node) : (x->process > y->process) - (x->process < y->process);
}

/* Leaf `leaf` of `f` into the last one of `g`, if that is of the same stack, else behind it. */
static void leaf_put(struct fold *g, const struct fold *f, uint32_t leaf)
{
	const struct fold_leaf *x = &f->leaves[leaf];

	if (!g->n_leaves || g->leaves[g->n_leaves - 1].node != x->node) {
		g->leaves[g->n_leaves] = *x;
		if (f->with)
			g->with[g->n_leaves] = f->with[leaf];
		g->n_leaves++;
		return;
	}
	g->leaves[g->n_leaves - 1].samples += x->samples;
	g->leaves[g->n_leaves - 1].ns += x->ns;
	if (f->with) {
		g->with[g->n_leaves - 1].samples += f->with[leaf].samples;
		g->with[g->n_leaves - 1].ns += f->with[leaf].ns;
	}
}

static int groups_add(struct sending *s, const struct fold *f, const char *name, struct err *e)
{
	cleanup_free uint32_t *order = mem_array(f->n_leaves + 1, sizeof(*order));
	cleanup_free struct fold_leaf *leaves = mem_array(f->n_leaves + 1, sizeof(*leaves));
	cleanup_free struct fold_with *with = mem_array(f->n_leaves + 1, sizeof(*with));
	struct fold part = *f;
	int rc = 0;

	for (uint32_t i = 0; i < f->n_leaves; i++)
		order[i] = i;
	qsort_r(order, f->n_leaves, sizeof(*order), leaf_order, (void *)f);
	part.leaves = leaves;
	part.with = f->with ? with : NULL;
	part.n_losses = 0; /* are the whole host's */
	part.from_ns = s->from_ts * NSEC_PER_SEC;
	part.to_ns = s->to_ts * NSEC_PER_SEC;
	for (size_t i = 0, begin = 0; !rc && i < f->n_leaves; i++) {
		struct group g = group_of(&f->processes[f->leaves[order[i]].process]), next;

		if (i == begin)
			part.n_leaves = 0;
		leaf_put(&part, f, order[i]);
		if (i + 1 < f->n_leaves) {
			next = group_of(&f->processes[f->leaves[order[i + 1]].process]);
			if (!group_order(&g, &next))
				continue;
		}
		part.processes = &f->processes[f->leaves[order[i]].process]; /* whose executable is the first mapping */
		part.n_processes = 1;
		rc = series_add(s, &part, &g, name, e);
		begin = i + 1;
	}
	return rc;
}

/* --- ranges --- */

static int kind_add(struct sending *s, const struct selection *sel, const struct profile *p, uint32_t kinds, struct err *e)
{
	struct fold_opts opts = {.leaves = true, .with = true};
	const enum store_kind tries[] = {p->kind, p->or};
	struct fold *f = NULL;
	struct err why = {0};
	int rc = -ENODATA;

	for (size_t i = 0; rc && i < 2; i++) {
		if (!tries[i] || !(kinds & 1u << tries[i]))
			continue;
		opts.kind = tries[i];
		rc = fold_make(sel, &opts, &f, &why);
		if (rc && why.exit != EXIT_NOTHING) {
			*e = why;
			return rc;
		}
	}
	if (rc)
		return 0;
	rc = groups_add(s, f, p->series, e);
	fold_free(f);
	return rc;
}

int profile_range(const char *store, const struct target *t, int64_t from_ts, int64_t to_ts, profile_take *take, void *ctx, uint64_t *rows,
		  uint64_t *refused, struct err *e)
{
	struct sending s = {.from_ts = from_ts, .to_ts = to_ts, .take = take, .ctx = ctx, .rows = rows, .refused = refused};
	char from[32], to[32];
	struct selection *sel = NULL;
	uint32_t kinds = 0;
	int rc;

	snprintf(from, sizeof(from), "%" PRId64, from_ts);
	snprintf(to, sizeof(to), "%" PRId64, to_ts);
	rc = select_new(&(struct select_args){.from = from, .to = to}, store, NULL, 0, true, &sel, e);
	if (!rc)
		rc = fold_kinds_there(sel, &kinds, e);
	for (size_t i = 0; !rc && i < sizeof(PROFILES) / sizeof(PROFILES[0]); i++)
		if (target_wants(t->profiles, PROFILES[i].name))
			rc = kind_add(&s, sel, &PROFILES[i], kinds, e);
	if (!rc)
		rc = flush(&s, e);
	select_free(sel);
	strbuf_release(&s.request);
	free(s.ends);
	return rc;
}
