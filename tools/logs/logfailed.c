/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/logs/logfailed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/print/json.h"
#include "tools/select/askrows.h"

#define WIDEST_S                                                                        \
	10 /* of a bucket: one that begins so long before the first message may have it \
	    */

struct failing { /* of all segments */
	char *service, *operation, *status;
	uint64_t errors;
};

struct reading {
	struct logfailed *out;
	struct failing *rows;
	size_t n, cap;
	struct idmap at;
};

static struct failing *failing_of(struct reading *r, sqlite3_stmt *st)
{
	uint64_t key = HASH_SEED, *at;
	bool fresh;

	for (int i = 0; i < 3; i++)
		key = hash_str(hash_u64(key, (uint64_t)i), askrows_text(st, i));
	at = idmap_ref(&r->at, key, &fresh);
	if (!fresh)
		return &r->rows[*at];
	*at = r->n;
	mem_grow(r->rows, r->n, r->cap);
	r->rows[r->n] = (struct failing){.service = mem_strdup(askrows_text(st, 0)),
					 .operation = mem_strdup(askrows_text(st, 1)),
					 .status = mem_strdup(askrows_text(st, 2))};
	return &r->rows[r->n++];
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const uint64_t errors = (uint64_t)sqlite3_column_int64(st, 3);

	r->out->requests += (uint64_t)sqlite3_column_int64(st, 4);
	r->out->errors += errors;
	if (errors)
		failing_of(r, st)->errors += errors;
}

/* The one that failed most, of the whole window. */
static void most_find(const struct reading *r, struct logfailed *out)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct failing *f = &r->rows[i];

		if (f->errors <= out->of_errors)
			continue;
		out->of_errors = f->errors;
		snprintf(out->service, sizeof(out->service), "%s", f->service);
		snprintf(out->operation, sizeof(out->operation), "%s", f->operation);
		snprintf(out->status, sizeof(out->status), "%s", f->status);
	}
}

static void reading_release(struct reading *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->rows[i].service);
		free(r->rows[i].operation);
		free(r->rows[i].status);
	}
	free(r->rows);
	idmap_release(&r->at);
}

int logfailed_read(const struct selection *sel, const struct logread_pattern *p,
		   struct logfailed *out, struct err *e)
{
	char sql[400];
	struct reading r = {.out = out};
	const struct askrows_part parts[] = {{.sql = sql, .row = take, .ctx = &r}};
	int rc;

	*out = (struct logfailed){0};
	if (!p->last_us)
		return 0;
	snprintf(
		sql, sizeof(sql),
		"SELECT service, operation, status, sum(errors), sum(requests) FROM requests WHERE ts "
		"BETWEEN ?1 AND ?2 AND ts > %lld AND ts <= %lld AND side = 'server' GROUP BY 1, 2, 3",
		(long long)(p->first_us / 1000000 - WIDEST_S), (long long)(p->last_us / 1000000));
	rc = askrows_each(sel, NULL, parts, ARRAY_SIZE(parts), e);
	most_find(&r, out);
	reading_release(&r);
	return rc;
}

void logfailed_say(const struct logfailed *f, struct strbuf *out)
{
	strbuf_addf(out, "meanwhile %llu of %llu requests failed, ", (unsigned long long)f->errors,
		    (unsigned long long)f->requests);
	if (f->of_errors < f->errors)
		strbuf_addf(out, "%llu of them ", (unsigned long long)f->of_errors);
	strbuf_addf(out, "%.120s of %.80s%s%.40s%s", f->operation, f->service,
		    *f->status ? " (" : "", f->status, *f->status ? ")" : "");
}

json_t *logfailed_json(const struct logfailed *f)
{
	json_t *o;

	if (!f->errors)
		return json_null();
	o = json_object();
	json_object_set_new(o, "errors", json_integer((json_int_t)f->errors));
	json_object_set_new(o, "requests", json_integer((json_int_t)f->requests));
	json_object_set_new(o, "service", json_text(f->service));
	json_object_set_new(o, "operation", json_text(f->operation));
	json_object_set_new(o, "status", json_text(f->status));
	return o;
}
