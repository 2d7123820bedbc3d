/* SPDX-License-Identifier: Apache-2.0 */
/* otlplog: events as logs; see otlp.h. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "export/push/batch.h"
#include "export/push/otlp/otlp.h"
#include "export/push/otlp/otlpwrite.h"
#include "export/push/table.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/proto.h"

enum { SCOPE_RECORDS = 2, RESOURCE_ATTRIBUTES = 1 };
enum {
	RECORD_TIME = 1,
	RECORD_SEVERITY = 2,
	RECORD_BODY = 5,
	RECORD_ATTRIBUTES = 6,
	RECORD_NAME = 12,
	BODY_TEXT = 1
};
enum { SEVERITY_INFO = 9, SEVERITY_WARN = 13 };

struct logs {
	struct otlp_request request;
	struct strbuf row; /* a row as text */
	struct idmap seen; /* hash of a row -> how many equal ones there were */
};

static const char *text_of(sqlite3_stmt *st, const char *column)
{
	for (int i = 0; i < sqlite3_column_count(st); i++)
		if (!strcmp(sqlite3_column_name(st, i), column))
			return sqlite3_column_text(st, i) ?
				       (const char *)sqlite3_column_text(st, i) :
				       "";
	return "";
}

static int64_t number_of(sqlite3_stmt *st, const char *column)
{
	for (int i = 0; i < sqlite3_column_count(st); i++)
		if (!strcmp(sqlite3_column_name(st, i), column))
			return sqlite3_column_int64(st, i);
	return 0;
}

/* Events that call for a person's attention. */
static bool is_bad(const char *kind)
{
	static const char *const bad[] = {"oom kill",  "killed", "failed",    "unhealthy",
					  "throttled", "full",   "read-only", "log errors"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!strcmp(bad[i], kind))
			return true;
	return false;
}

static void body_add(sqlite3_stmt *st, struct strbuf *record)
{
	struct strbuf body cleanup_strbuf = STRBUF_INIT, text cleanup_strbuf = STRBUF_INIT;
	const char *const parts[] = {"subject", "name", "kind", "detail", "caused_by"};
	const char *const before[] = {"", " ", ": ", ", ", ", by "};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (*text_of(st, parts[i]))
			strbuf_addf(&text, "%s%s", text.len ? before[i] : "",
				    text_of(st, parts[i]));
	proto_bytes(&body, BODY_TEXT, text.buf, text.len);
	proto_bytes(record, RECORD_BODY, body.buf, body.len);
}

/* Rule 3. */
static void uid_add(struct logs *l, sqlite3_stmt *st, const char *host, struct strbuf *record)
{
	uint64_t hash, *count;
	char uid[40];
	bool fresh;

	strbuf_reset(&l->row);
	table_row(st, host, &l->row);
	hash = hash_bytes(HASH_SEED, l->row.buf, l->row.len);
	count = idmap_ref(&l->seen, hash, &fresh);
	snprintf(uid, sizeof(uid), "%016" PRIx64 "%016" PRIx64, hash, hash_u64(hash, (*count)++));
	otlp_text(record, RECORD_ATTRIBUTES, "log.record.uid", uid);
}

static void record_attributes(sqlite3_stmt *st, struct strbuf *record)
{
	static const char *const texts[][2] = {
		{"subject", "sonde.subject"},     {"name", "sonde.name"},
		{"detail", "sonde.detail"},       {"which", "sonde.which"},
		{"caused_by", "sonde.caused_by"}, {"comm", "process.executable.name"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		otlp_text(record, RECORD_ATTRIBUTES, texts[i][1], text_of(st, texts[i][0]));
	if (number_of(st, "pid"))
		otlp_int(record, RECORD_ATTRIBUTES, "process.pid", number_of(st, "pid"));
	otlp_int(record, RECORD_ATTRIBUTES, "sonde.count", number_of(st, "n"));
}

static int event_take(void *ctx, sqlite3_stmt *st, const char *host, struct err *e)
{
	struct strbuf record cleanup_strbuf = STRBUF_INIT, item cleanup_strbuf = STRBUF_INIT,
			     resource cleanup_strbuf = STRBUF_INIT;
	const char *container = text_of(st, "container"), *kind = text_of(st, "kind");
	struct logs *l = ctx;

	otlp_text(&resource, RESOURCE_ATTRIBUTES, "host.name", host);
	otlp_text(&resource, RESOURCE_ATTRIBUTES, "service.name", *container ? container : "sonde");
	otlp_text(&resource, RESOURCE_ATTRIBUTES, "container.name", container);
	if (!strcmp(text_of(st, "subject"), "container"))
		otlp_text(&resource, RESOURCE_ATTRIBUTES, "container.id", text_of(st, "which"));
	proto_fixed64(&record, RECORD_TIME, (uint64_t)number_of(st, "at_ns"));
	proto_uint(&record, RECORD_SEVERITY, is_bad(kind) ? SEVERITY_WARN : SEVERITY_INFO);
	body_add(st, &record);
	uid_add(l, st, host, &record);
	record_attributes(st, &record);
	proto_bytes(&record, RECORD_NAME, kind, strlen(kind));
	proto_bytes(&item, SCOPE_RECORDS, record.buf, record.len);
	return otlp_resource(&l->request, &resource, &item, 1, e);
}

int otlp_logs(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx,
	      struct err *e)
{
	struct logs l = {.request = {.path = "/v1/logs", .target = t, .take = take, .ctx = ctx}};
	int rc = 0;

	for (size_t i = 0; i < N_TABLES; i++)
		if (!strcmp(TABLES[i].name, "events"))
			rc = batch_each(r->segments, r->n, &TABLES[i], r->from_ts, r->to_ts,
					event_take, &l, e);
	if (!rc)
		rc = otlp_flush(&l.request, e);
	otlp_release(&l.request);
	strbuf_release(&l.row);
	idmap_release(&l.seen);
	return rc;
}
