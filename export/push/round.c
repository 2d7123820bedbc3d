/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/round.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/push/batch.h"
#include "export/push/cursor.h"
#include "export/push/ending.h"
#include "export/push/otlp/otlp.h"
#include "export/push/profile.h"
#include "export/push/table.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/store/files/folder.h"
#include "schema/store/read/reader.h"

#define SEGMENTS_OPEN 8

struct sending {
	const struct target *target;
	struct http *http;
	struct http_answer answer;
	struct cursor_state *cursor;
};

static int send_piece(void *ctx, const struct table *t, const void *body, size_t len, struct err *e)
{
	struct sending *s = ctx;
	char path[256];

	snprintf(path, sizeof(path), "/?query=INSERT%%20INTO%%20%s.%s%%20FORMAT%%20JSONEachRow",
		 s->target->database, t->name);
	return http_post(s->http, s->target, path, body, len, &s->answer, e);
}

static int send_profiles(void *ctx, const void *body, size_t len, size_t n, struct err *e)
{
	struct sending *s = ctx;

	(void)n;
	return http_post(s->http, s->target, "/push.v1.PusherService/Push", body, len, &s->answer,
			 e);
}

/* The files that may have rows of the range, open: to open one takes longer than most tables. Some
 * rows have a begin before that of their file's first bucket. */
static int segments_of(const struct round_where *w, int64_t from_ts, int64_t to_ts,
		       struct store_segment_info **out, size_t *n, struct err *e)
{
	int rc = store_segments_open(w->store, (from_ts - ROUND_BUCKET_S) * NSEC_PER_SEC,
				     (to_ts + ROUND_BUCKET_S) * NSEC_PER_SEC, SEGMENTS_OPEN, out, n,
				     e);

	if (!rc)
		batch_ready(*out, *n);
	return rc;
}

static int send_rows(const struct round_where *w, struct sending *s, int64_t from_ts, int64_t to_ts,
		     uint64_t *rows, struct err *e)
{
	struct store_segment_info *segments = NULL;
	size_t n = 0;
	int rc = segments_of(w, from_ts, to_ts, &segments, &n, e);

	for (size_t i = 0; !rc && i < N_TABLES; i++)
		if (target_wants(s->target->tables, TABLES[i].name))
			rc = batch_rows(segments, n, &TABLES[i], from_ts, to_ts, !s->target->plain,
					send_piece, s, rows, e);
	store_segments_close(segments, n);
	return rc;
}

/* What is final is left out, and counted; so is what was rejected of a request that was taken. */
static int send_otlp(void *ctx, const char *path, const void *body, size_t len, size_t n,
		     struct err *e)
{
	struct sending *s = ctx;
	int rc = http_post(s->http, s->target, path, body, len, &s->answer, e);
	uint64_t refused = rc == -EBADMSG || s->answer.rejected > n ? n : s->answer.rejected;

	if (rc && rc != -EBADMSG)
		return rc;
	if (rc)
		log_warn("%s; %zu items were skipped", e->what, n);
	else if (refused)
		log_warn("%s: it rejected %llu of %zu items, which were skipped", s->target->name,
			 (unsigned long long)refused, n);
	s->cursor->rows += n - refused;
	s->cursor->refused += refused;
	return 0;
}

/* What belongs to a request may be in the file before its own. */
static int send_spans(const struct round_where *w, struct sending *s, int64_t from_ts,
		      int64_t to_ts, struct err *e)
{
	struct store_segment_info *segments = NULL;
	struct otlp_range r = {.from_ts = from_ts, .to_ts = to_ts};
	int rc = segments_of(w, from_ts - OTLP_SPANS_BEFORE_S, to_ts + OTLP_SPANS_AFTER_S,
			     &segments, &r.n, e);

	r.segments = segments;
	if (!rc)
		rc = otlp_spans(&r, s->target, send_otlp, s, e);
	store_segments_close(segments, r.n);
	return rc;
}

static int send_signals(const struct round_where *w, struct sending *s, int64_t from_ts,
			int64_t to_ts, struct err *e)
{
	struct store_segment_info *segments = NULL;
	struct otlp_range r = {.from_ts = from_ts, .to_ts = to_ts};
	int rc = segments_of(w, from_ts, to_ts, &segments, &r.n, e);

	r.segments = segments;
	if (!rc && target_wants(s->target->signals, "metrics"))
		rc = otlp_metrics(&r, s->target, send_otlp, s, e);
	if (!rc && target_wants(s->target->signals, "logs"))
		rc = otlp_logs(&r, s->target, send_otlp, s, e);
	store_segments_close(segments, r.n);
	if (!rc && target_wants(s->target->signals, "traces"))
		rc = send_spans(w, s, from_ts, to_ts, e);
	if (!rc && target_wants_profiles(s->target))
		rc = otlp_profiles(w->store,
				   &(struct otlp_range){.from_ts = from_ts, .to_ts = to_ts},
				   s->target, send_otlp, s, e);
	return rc;
}

static int send_range(const struct round_where *w, struct sending *s, int64_t to_ts,
		      struct cursor_state *c, struct err *e)
{
	if (s->target->type == TARGET_PYROSCOPE)
		return profile_range(w->store, s->target, c->sent_ts, to_ts, send_profiles, s,
				     &c->rows, &c->refused, e);
	if (s->target->type == TARGET_OTLP)
		return send_signals(w, s, c->sent_ts, to_ts, e);
	return send_rows(w, s, c->sent_ts, to_ts, &c->rows, e);
}

static int span_add(const char *path, int64_t *oldest_ns, int64_t *newest_ns, struct err *e)
{
	struct store_segment_info *all = NULL;
	size_t n = 0;
	int rc = store_segments(path, 0, INT64_MAX, &all, &n, e);

	for (size_t i = 0; !rc && i < n; i++) {
		if (!all[i].to_ns)
			continue;
		if (all[i].from_ns < *oldest_ns)
			*oldest_ns = all[i].from_ns;
		if (all[i].to_ns > *newest_ns)
			*newest_ns = all[i].to_ns;
	}
	free(all);
	return rc;
}

/* A file that was removed meanwhile, or is damaged, costs itself. */
static int file_span_add(const char *store, const char *name, int64_t *oldest_ns,
			 int64_t *newest_ns, struct err *e)
{
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", store, name);
	rc = span_add(path, oldest_ns, newest_ns, e);
	return rc == -EBADMSG || rc == -ENODATA || rc == -ENOENT ? 0 : rc;
}

/* Of the first file that has any bucket, and of the last one: there may be hundreds between them.
 */
static int span_of_folder(const char *store, char (*names)[SEGMENT_NAME_MAX], size_t n,
			  int64_t *oldest_ns, int64_t *newest_ns, struct err *e)
{
	size_t first = 0;
	int rc = 0;

	while (!rc && first < n && !*newest_ns)
		rc = file_span_add(store, names[first++], oldest_ns, newest_ns, e);
	for (int64_t before = *newest_ns; !rc && n > first && *newest_ns == before; n--)
		rc = file_span_add(store, names[n - 1], oldest_ns, newest_ns, e);
	return rc;
}

/* The oldest and the newest bucket. Where buckets are shorter, what is kept by ten seconds begins
 * before the oldest of them. */
static int span_of(const char *store, int64_t *oldest_ts, int64_t *newest_ts, struct err *e)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	int64_t oldest_ns = INT64_MAX, newest_ns = 0;
	size_t n = 0;
	bool is_folder = !folder_segments(store, &names, &n) && n;
	int rc = is_folder ? span_of_folder(store, names, n, &oldest_ns, &newest_ns, e) :
			     span_add(store, &oldest_ns, &newest_ns, e);

	free(names);
	*oldest_ts = newest_ns ? oldest_ns / NSEC_PER_SEC / ROUND_BUCKET_S * ROUND_BUCKET_S : 0;
	*newest_ts = newest_ns / NSEC_PER_SEC;
	return rc;
}

/* Rule 3. */
static void begin(const struct target *t, int64_t oldest_ts, int64_t newest_ts,
		  struct cursor_state *c)
{
	if (c->sent_ts > newest_ts + ROUND_AHEAD_S) {
		log_warn(
			"%s: the last data sent is %lld s newer than anything in the store (was the clock wrong?): starting over",
			t->name, (long long)(c->sent_ts - newest_ts));
		c->sent_ts = c->trying_ts = 0;
	}
	if (!c->sent_ts) {
		c->sent_ts = newest_ts - t->backfill_s > oldest_ts ? newest_ts - t->backfill_s :
								     oldest_ts;
		c->fresh = true;
	} else if (c->sent_ts < oldest_ts) {
		c->missed_s += (uint64_t)(oldest_ts - c->sent_ts);
		log_warn("%s: %lld s were removed from the store before they were sent", t->name,
			 (long long)(oldest_ts - c->sent_ts));
		c->sent_ts = oldest_ts;
	}
}

static int64_t range_most(const struct target *t)
{
	return t->type == TARGET_CLICKHOUSE ? ROUND_ROWS_S : ROUND_RANGE_S;
}

static int64_t range_end(const struct target *t, const struct cursor_state *c, int64_t end_ts)
{
	if (c->trying_ts > c->sent_ts && c->trying_ts <= end_ts &&
	    c->trying_ts - c->sent_ts <= range_most(t))
		return c->trying_ts;
	return c->sent_ts + range_most(t) < end_ts ? c->sent_ts + range_most(t) : end_ts;
}

/* Rule 2. Where a whole one begins is all that one must know of it, and is in the file but for a
 * new target's first. */
static int range_note(const struct round_where *w, const struct target *t, struct cursor_state *c,
		      int64_t to_ts, struct err *e)
{
	if (c->trying_ts == to_ts)
		return 0;
	c->trying_ts = to_ts;
	return to_ts - c->sent_ts < range_most(t) || c->fresh ?
		       push_cursor_write(w->state, w->store, t->name, c, e) :
		       0;
}

static int range_send(const struct round_where *w, struct sending *s, struct cursor_state *c,
		      int64_t to_ts, struct err *e)
{
	int rc = range_note(w, s->target, c, to_ts, e);

	if (!rc)
		rc = send_range(w, s, to_ts, c, e);
	if (rc)
		return rc;
	c->sent_ts = to_ts;
	c->trying_ts = 0;
	c->fresh = false;
	return push_cursor_write(w->state, w->store, s->target->name, c, e);
}

int round_send(const struct round_where *w, const struct target *t, struct http *h,
	       uint32_t *retry_s, bool *more, struct err *e)
{
	struct cursor_state c;
	struct sending s = {.target = t, .http = h, .cursor = &c};
	int64_t oldest_ts = 0, newest_ts = 0, end_ts,
		until_ns = clock_boot_ns() + ROUND_TURN_S * NSEC_PER_SEC;
	int rc = push_cursor_read(w->state, w->store, t->name, &c, e);

	malloc_trim(0); /* what the target before has left in pieces */
	if (!rc)
		rc = span_of(w->store, &oldest_ts, &newest_ts, e);
	if (rc || !newest_ts)
		return rc;
	begin(t, oldest_ts, newest_ts, &c);
	end_ts = newest_ts - ROUND_BEHIND_S;
	do {
		if (c.sent_ts < end_ts)
			rc = range_send(w, &s, &c, range_end(t, &c, end_ts), e);
	} while (!rc && c.sent_ts < end_ts && !ending_asked() && clock_boot_ns() < until_ns);
	*retry_s = s.answer.retry_s;
	*more = !rc && c.sent_ts < end_ts;
	return rc;
}

int round_schema(const char *store, const char *database, struct strbuf *out, struct err *e)
{
	struct store_segment_info *all = NULL;
	struct store_segment *s = NULL;
	size_t n = 0;
	int rc = store_segments(store, 0, INT64_MAX, &all, &n, e);

	if (!rc && !n)
		rc = err_set(e, -ENODATA, EXIT_NOTHING, "the store %s is empty", store);
	if (!rc)
		rc = store_segment_open(all[n - 1].path, &s, e);
	free(all);
	if (rc)
		return rc;
	table_ready(store_segment_db(s));
	strbuf_addf(out, "CREATE DATABASE IF NOT EXISTS %s;\n", database);
	for (size_t i = 0; i < N_TABLES; i++) {
		sqlite3_stmt *st = table_query(store_segment_db(s), &TABLES[i], e);

		if (st)
			table_schema(st, &TABLES[i], database, out);
		sqlite3_finalize(st);
	}
	store_segment_close(s);
	return 0;
}
