/* SPDX-License-Identifier: Apache-2.0 */
/* profile: see the header. Field numbers are those of push.v1 and types.v1. */
#include "export/push/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/batch.h"
#include "export/push/pack.h"
#include "export/push/profilegroup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "tools/formats/pprof.h"

enum {
	REQUEST_SERIES = 1,
	SERIES_LABELS = 1,
	SERIES_SAMPLES = 2,
	LABEL_NAME = 1,
	LABEL_VALUE = 2,
	SAMPLE_PROFILE = 1,
	SAMPLE_ID = 2
};

struct sending {
	int64_t from_ts;
	profile_take *take;
	void *ctx;
	struct strbuf request;
	size_t *ends; /* of the request's profiles */
	size_t n, cap;
	uint64_t *rows, *refused;
};

/* --- messages --- */

static int each_alone(struct sending *s, struct err *e)
{
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < s->n; at = s->ends[i++]) {
		rc = s->take(s->ctx, s->request.buf + at, s->ends[i] - at, 1, e);
		if (rc == -EBADMSG) {
			log_warn("%s; a profile was skipped", e->what);
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

static void labels_add(struct strbuf *series, const struct profile_group *g, const char *name,
		       const char *host)
{
	const char *service = *g->container ? g->container : *g->unit ? g->unit : g->comm;

	label_add(series, "__name__", name, strlen(name));
	label_add(series, "__delta__", "false", 5);
	label_add(series, "service_name", service,
		  service == g->comm ? g->comm_len : strlen(service));
	label_add(series, "comm", g->comm, g->comm_len);
	label_add(series, "container", g->container, strlen(g->container));
	label_add(series, "unit", g->unit, strlen(g->unit));
	label_add(series, "host", host ? host : "", host ? strlen(host) : 0);
}

/* Rule 4: a UUID (RFC 9562, version 8) of the series and its time. */
static void id_add(struct strbuf *sample, const struct strbuf *labels, int64_t ts)
{
	uint64_t a = hash_bytes((uint64_t)ts, labels->buf, labels->len),
		 b = hash_bytes(hash_u64(HASH_SEED, a), labels->buf, labels->len);
	char id[40];

	snprintf(id, sizeof(id), "%08x-%04x-8%03x-%04x-%012llx", (unsigned)(a >> 32),
		 (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
		 ((unsigned)(b >> 48) & 0x3fff) | 0x8000, b & 0xffffffffffffull);
	proto_bytes(sample, SAMPLE_ID, id, strlen(id));
}

static int series_add(void *ctx, const struct fold *f, const struct profile_group *g,
		      const char *name, struct err *e)
{
	struct sending *s = ctx;
	struct strbuf raw cleanup_strbuf = STRBUF_INIT, packed cleanup_strbuf = STRBUF_INIT,
			  sample cleanup_strbuf = STRBUF_INIT, series cleanup_strbuf = STRBUF_INIT;
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

int profile_range(const char *store, const struct target *t, int64_t from_ts, int64_t to_ts,
		  profile_take *take, void *ctx, uint64_t *rows, uint64_t *refused, struct err *e)
{
	static const struct profile_sink sink = {.group = series_add};
	struct sending s = {
		.from_ts = from_ts, .take = take, .ctx = ctx, .rows = rows, .refused = refused};
	int rc = profile_groups(store, t, from_ts, to_ts, &sink, &s, e);

	if (!rc)
		rc = flush(&s, e);
	strbuf_release(&s.request);
	free(s.ends);
	return rc;
}
