/* SPDX-License-Identifier: Apache-2.0 */
/* otlpprofile: samples as profiles; see otlp.h, rules 8 and 9. Field numbers are those of
 * opentelemetry-proto's profiles/v1development. */
#include <stdio.h>
#include <string.h>

#include "export/push/batch.h"
#include "export/push/otlp/otlp.h"
#include "export/push/otlp/otlpdict.h"
#include "export/push/otlp/otlpwrite.h"
#include "export/push/profilegroup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/proto.h"
#include "schema/store/model/kinds.h"

enum { REQUEST_DICTIONARY = 2, RESOURCE_ATTRIBUTES = 1, SCOPE_PROFILES = 2 };
enum {
	PROFILE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ID = 7
};
enum { TYPE_TYPE = 1, TYPE_UNIT = 2, SAMPLE_STACK = 1, SAMPLE_VALUES = 4, ID_BYTES = 16 };

struct profiles {
	const struct otlp_range *range;
	struct otlp_request request;
	struct otlpdict *dict; /* of the request; NULL: nothing is in it */
};

/* One number of a kind: what a profile has. */
struct number {
	const struct store_kind_info *kind;
	bool with, value; /* of the fold's other kind; the value, else how many */
};

static int flush(void *ctx, struct err *e)
{
	struct profiles *p = ctx;
	struct strbuf dict cleanup_strbuf = STRBUF_INIT;

	if (!p->dict)
		return 0;
	otlpdict_write(p->dict, &dict);
	proto_bytes(&p->request.body, REQUEST_DICTIONARY, dict.buf, dict.len);
	otlpdict_free(p->dict);
	p->dict = NULL;
	return otlp_flush(&p->request, e);
}

static const char *unit_name(enum store_unit u)
{
	return u == STORE_TIME ? "nanoseconds" : u == STORE_BYTES ? "bytes" : "count";
}

static void type_add(struct otlpdict *d, struct strbuf *profile, unsigned field, const char *type,
		     const char *unit)
{
	struct strbuf t cleanup_strbuf = STRBUF_INIT;

	proto_uint(&t, TYPE_TYPE, otlpdict_text(d, type));
	proto_uint(&t, TYPE_UNIT, otlpdict_text(d, unit));
	proto_bytes(profile, field, t.buf, t.len);
}

/* As pprof.c has them: of memory the rate of the sampling; what counts each event has a period of
 * one. */
static void period_add(struct otlpdict *d, const struct fold *f, struct strbuf *profile)
{
	const struct store_kind_info *k = f->kind;
	bool cpu = k->kind == STORE_KIND_CPU;

	if (cpu)
		type_add(d, profile, PROFILE_PERIOD_TYPE, k->pprof_value, unit_name(k->unit_value));
	else if (k->sized)
		type_add(d, profile, PROFILE_PERIOD_TYPE, "space", "bytes");
	else
		type_add(d, profile, PROFILE_PERIOD_TYPE, k->pprof_n, unit_name(k->unit_n));
	proto_uint(profile, PROFILE_PERIOD, cpu || k->sized ? f->period_ns : 1);
}

/* The same when it is sent again. */
static void id_add(const struct profiles *p, const struct profile_group *g, const char *type,
		   const char *host, struct strbuf *profile)
{
	uint64_t a = hash_str(hash_u64(HASH_SEED, (uint64_t)p->range->from_ts), type),
		 id[ID_BYTES / 8];

	a = hash_bytes(hash_str(hash_str(hash_str(a, host), g->container), g->unit), g->comm,
		       g->comm_len);
	id[0] = a;
	id[1] = hash_str(hash_u64(a, a), type) | 1; /* not all zero */
	proto_bytes(profile, PROFILE_ID, id, sizeof(id));
}

static uint64_t number_of(const struct fold *f, size_t leaf, const struct number *n)
{
	const struct fold_with with = f->with ? f->with[leaf] : (struct fold_with){0};

	if (n->with)
		return n->value ? with.ns : with.samples;
	return n->value ? f->leaves[leaf].ns : f->leaves[leaf].samples;
}

static void sample_add(struct otlpdict *d, uint32_t node, uint64_t value, struct strbuf *profile)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT, packed cleanup_strbuf = STRBUF_INIT;

	proto_varint(&packed, value);
	proto_uint(&s, SAMPLE_STACK, otlpdict_stack(d, node));
	proto_bytes(&s, SAMPLE_VALUES, packed.buf, packed.len);
	proto_bytes(profile, PROFILE_SAMPLES, s.buf, s.len);
}

/* false: there is nothing of it. */
static bool profile_add(struct profiles *p, const struct fold *f, const struct profile_group *g,
			const struct number *n, struct strbuf *items)
{
	const char *type = n->value ? n->kind->pprof_value : n->kind->pprof_n;
	struct strbuf profile cleanup_strbuf = STRBUF_INIT;
	bool any = false;

	type_add(p->dict, &profile, PROFILE_TYPE, type,
		 unit_name(n->value ? n->kind->unit_value : n->kind->unit_n));
	for (size_t i = 0; i < f->n_leaves; i++) {
		uint64_t value = number_of(f, i, n);

		if (value)
			sample_add(p->dict, f->leaves[i].node, value, &profile);
		any |= value != 0;
	}
	proto_fixed64(&profile, PROFILE_TIME, (uint64_t)f->from_ns);
	proto_uint(&profile, PROFILE_DURATION, (uint64_t)(f->to_ns - f->from_ns));
	period_add(p->dict, f, &profile);
	id_add(p, g, type, f->host ? f->host : "", &profile);
	if (any)
		proto_bytes(items, SCOPE_PROFILES, profile.buf, profile.len);
	return any;
}

/* A kind that only counts has one number. */
static size_t numbers_add(struct profiles *p, const struct fold *f, const struct profile_group *g,
			  const struct store_kind_info *k, bool with, struct strbuf *items)
{
	size_t n = profile_add(p, f, g, &(struct number){k, with, false}, items);

	return strcmp(k->pprof_n, k->pprof_value) ?
		       n + profile_add(p, f, g, &(struct number){k, with, true}, items) :
		       n;
}

static void resource_of(const struct fold *f, const struct profile_group *g, const char *name,
			struct strbuf *out)
{
	struct strbuf comm cleanup_strbuf = STRBUF_INIT;
	const struct fold_process *p = f->processes;

	strbuf_add(&comm, g->comm, g->comm_len);
	otlp_text(out, RESOURCE_ATTRIBUTES, "host.name", f->host);
	otlp_text(out, RESOURCE_ATTRIBUTES, "service.name",
		  *g->container ? g->container :
		  *g->unit      ? g->unit :
				  strbuf_str(&comm));
	otlp_text(out, RESOURCE_ATTRIBUTES, "systemd.unit", g->unit);
	otlp_text(out, RESOURCE_ATTRIBUTES, "container.name", g->container);
	otlp_text(out, RESOURCE_ATTRIBUTES, "container.id", *g->container ? p->container_id : "");
	otlp_text(out, RESOURCE_ATTRIBUTES, "container.image.name",
		  *g->container ? p->container_image : "");
	otlp_text(out, RESOURCE_ATTRIBUTES, "process.executable.name", strbuf_str(&comm));
	otlp_text(out, RESOURCE_ATTRIBUTES, "sonde.profile", name);
}

static int group_take(void *ctx, const struct fold *f, const struct profile_group *g,
		      const char *name, struct err *e)
{
	struct strbuf resource cleanup_strbuf = STRBUF_INIT, items cleanup_strbuf = STRBUF_INIT;
	struct profiles *p = ctx;
	size_t n;

	if (!p->dict)
		p->dict = otlpdict_new(f);
	n = numbers_add(p, f, g, f->kind, false, &items);
	if (f->kind->with && f->with)
		n += numbers_add(p, f, g, store_kind_info(f->kind->with), true, &items);
	if (n) {
		resource_of(f, g, name, &resource);
		otlp_resource_put(&p->request, &resource, &items, n);
	}
	return p->request.body.len + otlpdict_size(p->dict) >= BATCH_BYTES ? flush(p, e) : 0;
}

int otlp_profiles(const char *store, const struct otlp_range *r, const struct target *t,
		  otlp_take *take, void *ctx, struct err *e)
{
	static const struct profile_sink sink = {.group = group_take, .end = flush};
	struct profiles p = {
		.range = r,
		.request = {
			.path = "/v1development/profiles", .target = t, .take = take, .ctx = ctx}};
	int rc = profile_groups(store, t, r->from_ts, r->to_ts, &sink, &p, e);

	otlpdict_free(p.dict);
	otlp_release(&p.request);
	return rc;
}
