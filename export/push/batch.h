/* SPDX-License-Identifier: Apache-2.0 */
/* batch: rows of one table and range, in pieces of at most BATCH_BYTES (a row more), each handed on
 * as one body. */
#ifndef SONDE_PUSH_BATCH_H
#define SONDE_PUSH_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/push/table.h"
#include "schema/base/err.h"
#include "schema/store/read/reader.h"

#define BATCH_BYTES (512u << 10)

/* Once for segments of store_segments_open: those that are open are asked as they are, others are
 * opened for each table. */
void batch_ready(struct store_segment_info *segments, size_t n);
/* A row of a table's query, of a file of `host`. */
typedef int batch_row(void *ctx, struct sqlite3_stmt *st, const char *host, struct err *e);
/* Calls `row` for each of all `segments`, from <= ts < to. */
int batch_each(const struct store_segment_info *segments, size_t n, const struct table *t,
	       int64_t from_ts, int64_t to_ts, batch_row *row, void *ctx, struct err *e);

/* Called for each piece: JSONEachRow, gzip where `packed`. Not 0 ends it. */
typedef int batch_take(void *ctx, const struct table *t, const void *body, size_t len,
		       struct err *e);

/* Of all `segments`, from <= ts < to, in seconds since 1970. *rows is raised. */
int batch_rows(const struct store_segment_info *segments, size_t n, const struct table *t,
	       int64_t from_ts, int64_t to_ts, bool packed, batch_take *take, void *ctx,
	       uint64_t *rows, struct err *e);

#endif
