/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/pack.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/read/reader.h"

struct batch {
	const struct table *table;
	bool packed;
	batch_take *take;
	void *ctx;
	struct strbuf rows, row;
	struct idmap seen; /* hash of a row -> how many equal ones there were */
	uint64_t n;
};

static int flush(struct batch *b, struct err *e)
{
	struct strbuf body cleanup_strbuf = STRBUF_INIT;
	int rc = 0;

	if (!b->rows.len)
		return 0;
	if (b->packed)
		rc = pack(&b->rows, &body, e);
	if (!rc)
		rc = b->packed ? b->take(b->ctx, b->table, body.buf, body.len, e) :
				 b->take(b->ctx, b->table, b->rows.buf, b->rows.len, e);
	strbuf_reset(&b->rows);
	return rc;
}

static int row_take(void *ctx, sqlite3_stmt *st, const char *host, struct err *e)
{
	struct batch *b = ctx;
	uint64_t hash, *count;
	bool fresh;

	strbuf_reset(&b->row);
	table_row(st, host, &b->row);
	hash = hash_bytes(HASH_SEED, b->row.buf, b->row.len);
	count = idmap_ref(&b->seen, hash, &fresh);
	strbuf_add(&b->rows, b->row.buf, b->row.len);
	strbuf_addf(&b->rows, ",\"id\":%" PRIu64 "}\n", hash_u64(hash, (*count)++));
	b->n++;
	return b->rows.len >= BATCH_BYTES ? flush(b, e) : 0;
}

static void bind(sqlite3_stmt *st, const char *name, int64_t value)
{
	int i = sqlite3_bind_parameter_index(st, name);

	if (i)
		sqlite3_bind_int64(st, i, value);
}

static int64_t t0_of(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int64_t t0 = 0;

	if (sqlite3_prepare_v2(db, "SELECT value FROM main.meta WHERE key = 't0'", -1, &st, NULL) ==
		    SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		t0 = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return t0;
}

static char *host_of(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	char *host = NULL;

	if (sqlite3_prepare_v2(db, "SELECT value FROM main.meta WHERE key = 'host'", -1, &st,
			       NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		host = mem_strdup((const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return host ? host : mem_strdup("unknown");
}

static int rows_each(sqlite3 *db, sqlite3_stmt *st, batch_row *row, void *ctx, struct err *e)
{
	cleanup_free char *host = host_of(db);
	int step = SQLITE_DONE, rc = 0;

	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW)
		rc = row(ctx, st, host, e);
	if (!rc && step != SQLITE_DONE)
		rc = err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", sqlite3_errmsg(db));
	return rc;
}

static int table_each(struct store_segment *s, const struct table *t, int64_t from_ts,
		      int64_t to_ts, batch_row *row, void *ctx, struct err *e)
{
	sqlite3 *db = store_segment_db(s);
	struct err why = {0};
	sqlite3_stmt *st = table_query(db, t, &why);
	int rc = why.code;

	if (st) {
		bind(st, ":from", from_ts);
		bind(st, ":to", to_ts);
		bind(st, ":t0", t0_of(db));
		rc = rows_each(db, st, row, ctx, e);
	} else if (rc) {
		*e = why;
	}
	sqlite3_finalize(st);
	return rc;
}

static int segment_each(const struct store_segment_info *info, const struct table *t,
			int64_t from_ts, int64_t to_ts, batch_row *row, void *ctx, struct err *e)
{
	struct store_segment *s = NULL;
	int rc;

	if (info->open)
		return table_each(info->open, t, from_ts, to_ts, row, ctx, e);
	rc = store_segment_open(info->path, &s, e);
	if (rc)
		return rc;
	if (table_ready(store_segment_db(s)))
		rc = table_each(s, t, from_ts, to_ts, row, ctx, e);
	store_segment_close(s);
	return rc;
}

void batch_ready(struct store_segment_info *segments, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (segments[i].open && !table_ready(store_segment_db(segments[i].open))) {
			store_segment_close(segments[i].open);
			segments[i].open = NULL;
		}
}

int batch_each(const struct store_segment_info *segments, size_t n, const struct table *t,
	       int64_t from_ts, int64_t to_ts, batch_row *row, void *ctx, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		rc = segment_each(&segments[i], t, from_ts, to_ts, row, ctx, e);
	return rc;
}

int batch_rows(const struct store_segment_info *segments, size_t n, const struct table *t,
	       int64_t from_ts, int64_t to_ts, bool packed, batch_take *take, void *ctx,
	       uint64_t *rows, struct err *e)
{
	struct batch b = {.table = t, .packed = packed, .take = take, .ctx = ctx};
	int rc = batch_each(segments, n, t, from_ts, to_ts, row_take, &b, e);

	if (!rc)
		rc = flush(&b, e);
	*rows += b.n;
	strbuf_release(&b.rows);
	strbuf_release(&b.row);
	idmap_release(&b.seen);
	return rc;
}
