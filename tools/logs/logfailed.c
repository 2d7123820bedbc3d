/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/logs/logfailed.h"

#include <stdio.h>

#include "schema/base/array.h"
#include "tools/print/json.h"
#include "tools/select/askrows.h"

#define WIDEST_S                                                                        \
	10 /* of a bucket: one that begins so long before the first message may have it \
	    */

static void take(void *ctx, sqlite3_stmt *st)
{
	struct logfailed *f = ctx;
	uint64_t errors = (uint64_t)sqlite3_column_int64(st, 3);

	f->requests += (uint64_t)sqlite3_column_int64(st, 4);
	f->errors += errors;
	if (errors <= f->of_errors)
		return;
	f->of_errors = errors;
	snprintf(f->service, sizeof(f->service), "%s", askrows_text(st, 0));
	snprintf(f->operation, sizeof(f->operation), "%s", askrows_text(st, 1));
	snprintf(f->status, sizeof(f->status), "%s", askrows_text(st, 2));
}

int logfailed_read(const struct selection *sel, const struct logread_pattern *p,
		   struct logfailed *out, struct err *e)
{
	char sql[400];
	const struct askrows_part parts[] = {{sql, take, out, {{NULL}, NULL}}};

	*out = (struct logfailed){0};
	if (!p->last_us)
		return 0;
	snprintf(
		sql, sizeof(sql),
		"SELECT service, operation, status, sum(errors), sum(requests) FROM requests WHERE ts "
		"BETWEEN ?1 AND ?2 AND ts > %lld AND ts <= %lld AND side = 'server' GROUP BY 1, 2, 3 "
		"ORDER BY 4 DESC",
		(long long)(p->first_us / 1000000 - WIDEST_S), (long long)(p->last_us / 1000000));
	return askrows_each(sel, NULL, parts, ARRAY_SIZE(parts), e);
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
