/* SPDX-License-Identifier: Apache-2.0 */
#include "export/source.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "export/queries.h"
#include "export/spread.h"
#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/extension/extension.h"
#include "schema/store/read/reader.h"

#define N_SOURCES   ARRAY_SIZE(EXPORT_QUERIES)
#define COLUMNS_MAX 64
#define TS_MOST     (1ll << 40)

_Static_assert(N_SOURCES <= TOTALS_SOURCES, "a source has a place in struct totals");

struct source_segment {
	struct store_segment *segment;
	sqlite3 *db;
	int64_t t0;
};

enum role { ROLE_LABEL, ROLE_TS, ROLE_VALUE, ROLE_SPREAD };

struct column {
	enum role role;
	bool entity; /* of a label: the name of a thing, which strangers choose */
	int metric;
	unsigned part;
	const char *name; /* of a label; of a value its own labels, without braces; borrowed from
			     the statement */
	size_t name_len;
};

struct reading {
	sqlite3_stmt *st;
	int n;
	struct column columns[COLUMNS_MAX];
};

size_t source_count(void)
{
	return N_SOURCES;
}

const char *source_name(size_t i)
{
	return EXPORT_QUERIES[i].name;
}

int source_find(const char *name)
{
	for (size_t i = 0; i < N_SOURCES; i++)
		if (!strcmp(EXPORT_QUERIES[i].name, name))
			return (int)i;
	return -1;
}

/* --- files --- */

static int refused(const struct source_segment *s, struct err *e)
{
	return err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", sqlite3_errmsg(s->db));
}

static int number(const struct source_segment *s, const char *sql, int64_t *out, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK &&
				 sqlite3_step(st) == SQLITE_ROW ?
			 0 :
			 refused(s, e);

	if (!rc)
		*out = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return rc;
}

/* One state of the file for all queries; the first one reads t0, with which the transaction begins.
 */
static int begin(struct source_segment *s, struct err *e)
{
	if (extension_tables(s->db) != SQLITE_OK || spread_register(s->db) != SQLITE_OK ||
	    sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return refused(s, e);
	return number(s, "SELECT value FROM meta WHERE key = 't0'", &s->t0, e);
}

int source_open(const char *path, struct source_segment **out, struct err *e)
{
	struct source_segment *s = mem_alloc(sizeof(*s));
	int rc = store_segment_open(path, &s->segment, e);

	if (!rc) {
		s->db = store_segment_db(s->segment);
		rc = begin(s, e);
	}
	if (rc) {
		source_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void source_close(struct source_segment *s)
{
	if (!s)
		return;
	if (s->db)
		sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	if (s->segment)
		store_segment_close(s->segment);
	free(s);
}

/* --- columns --- */

static bool is_entity(const char *label)
{
	static const char *const names[] = {"container", "unit",    "disk",    "mount",
					    "interface", "sensor",  "gpu",     "operation",
					    "image",     "project", "service", "device"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], label))
			return true;
	return false;
}

/* le="..." of a histogram's bucket: which bound. -1: none. */
static int bound_of(int metric, const char *le, size_t len)
{
	char buf[32];
	const char *text;

	if (len == 4 && !strncmp(le, "+Inf", len))
		return METRIC_INF;
	for (unsigned i = 0; (text = metric_bound(metric, i, buf)); i++)
		if (strlen(text) == len && !strncmp(text, le, len))
			return (int)i;
	return -1;
}

static bool value_column(struct column *c, const char *name)
{
	size_t len = strcspn(name, "{"), rest = strlen(name) - len;

	c->metric = metric_find(name, len, &c->part);
	c->name = name + len + (rest > 0);
	c->name_len = rest > 2 ? rest - 2 : 0;
	if (c->metric < 0)
		return false;
	c->role = METRICS[c->metric].type == METRIC_HISTOGRAM && c->part != METRIC_SUM && !rest ?
			  ROLE_SPREAD :
			  ROLE_VALUE;
	if (METRICS[c->metric].type == METRIC_HISTOGRAM && c->name_len > 5 &&
	    !strncmp(c->name, "le=\"", 4)) {
		int bound = bound_of(c->metric, c->name + 4, c->name_len - 5);

		c->part = (unsigned)bound;
		c->name_len = 0;
		return bound >= 0;
	}
	return true;
}

static int columns_read(struct reading *r, size_t source, struct err *e)
{
	r->n = sqlite3_column_count(r->st);
	for (int i = 0; i < r->n && i < COLUMNS_MAX; i++) {
		const char *name = sqlite3_column_name(r->st, i);
		struct column *c = &r->columns[i];

		if (!strcmp(name, "ts")) {
			c->role = ROLE_TS;
		} else if (strncmp(name, "sonde_", 6) && strncmp(name, "node_", 5)) {
			*c = (struct column){.role = ROLE_LABEL,
					     .name = name,
					     .name_len = strlen(name),
					     .entity = is_entity(name)};
		} else if (!value_column(c, name)) {
			return err_set(e, -EINVAL, EXIT_RUNTIME, "query %s: there is no metric %s",
				       source_name(source), name);
		}
	}
	return r->n > COLUMNS_MAX ? err_set(e, -E2BIG, EXIT_RUNTIME,
					    "query %s has too many columns", source_name(source)) :
				    0;
}

/* --- rows --- */

/* Prometheus' text format: backslash, quote and line feed are escaped. */
static void label_add(struct strbuf *out, const char *name, size_t name_len, const char *value)
{
	strbuf_addf(out, "%s%.*s=\"", out->len ? "," : "", (int)name_len, name);
	for (; *value; value++) {
		if (*value == '\n') {
			strbuf_addstr(out, "\\n");
			continue;
		}
		if (*value == '\\' || *value == '"')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *value);
	}
	strbuf_addch(out, '"');
}

static void labels_of(const struct reading *r, bool other, struct strbuf *out)
{
	for (int i = 0; i < r->n; i++) {
		const struct column *c = &r->columns[i];
		const char *value =
			c->role == ROLE_LABEL ? (const char *)sqlite3_column_text(r->st, i) : NULL;

		if (value && *value)
			label_add(out, c->name, c->name_len,
				  other && c->entity ? TOTALS_OTHER : value);
	}
}

static void spread_take(struct totals *t, struct totals_value *v, const char *text, bool settled)
{
	for (unsigned i = 0; i <= METRIC_BOUNDS && *text; i++) {
		char *end;

		v->value = strtoull(text, &end, 10);
		v->part = i < METRIC_BOUNDS ? i : METRIC_INF;
		totals_add(t, v, settled);
		text = *end ? end + 1 : end;
	}
}

struct row {
	struct strbuf labels, other, own, own_other;
	int64_t ts;
};

static void join(struct strbuf *out, const struct strbuf *labels, const struct column *c)
{
	strbuf_reset(out);
	strbuf_add(out, strbuf_str(labels), labels->len);
	if (c->name_len) {
		strbuf_addstr(out, labels->len ? "," : "");
		strbuf_add(out, c->name, c->name_len);
	}
}

static void value_take(const struct reading *r, int i, struct row *row, bool settled,
		       struct totals *t)
{
	const struct column *c = &r->columns[i];
	struct totals_value v = {.metric = (unsigned)c->metric, .part = c->part, .ts = row->ts};
	int64_t value;

	if (sqlite3_column_type(r->st, i) == SQLITE_NULL)
		return;
	join(&row->own, &row->labels, c);
	join(&row->own_other, &row->other, c);
	v.labels = strbuf_str(&row->own);
	v.other = strbuf_str(&row->own_other);
	if (c->role == ROLE_SPREAD) {
		spread_take(t, &v, (const char *)sqlite3_column_text(r->st, i), settled);
		return;
	}
	value = sqlite3_column_int64(r->st, i);
	if (value < 0)
		return;
	v.value = (uint64_t)value;
	totals_add(t, &v, settled);
}

static void row_take(const struct reading *r, int64_t t0, bool settled, struct totals *t,
		     struct row *row, int64_t *newest)
{
	row->ts = 0;
	strbuf_reset(&row->labels);
	strbuf_reset(&row->other);
	labels_of(r, false, &row->labels);
	labels_of(r, true, &row->other);
	for (int i = 0; i < r->n; i++)
		if (r->columns[i].role == ROLE_TS)
			row->ts = t0 + sqlite3_column_int64(r->st, i);
	if (row->ts > *newest)
		*newest = row->ts;
	for (int i = 0; i < r->n; i++)
		if (r->columns[i].role == ROLE_VALUE || r->columns[i].role == ROLE_SPREAD)
			value_take(r, i, row, settled, t);
}

static void bind(sqlite3_stmt *st, const char *name, int64_t value)
{
	int i = sqlite3_bind_parameter_index(st, name);

	if (i)
		sqlite3_bind_int64(st, i, value);
}

static int64_t relative(int64_t ts, int64_t t0)
{
	int64_t v = ts - t0;

	return v < -TS_MOST ? -TS_MOST : v > TS_MOST ? TS_MOST : v;
}

static int rows_read(struct source_segment *s, struct reading *r, bool settled, struct totals *t,
		     int64_t *newest, struct err *e)
{
	struct row row = {0};
	int rc;

	while ((rc = sqlite3_step(r->st)) == SQLITE_ROW)
		row_take(r, s->t0, settled, t, &row, newest);
	strbuf_release(&row.labels);
	strbuf_release(&row.other);
	strbuf_release(&row.own);
	strbuf_release(&row.own_other);
	return rc == SQLITE_DONE ? 0 : refused(s, e);
}

int source_read(struct source_segment *s, size_t i, int64_t from_ts, int64_t to_ts, bool settled,
		struct totals *t, int64_t *newest, struct err *e)
{
	struct reading r = {0};
	int rc;

	if (sqlite3_prepare_v2(s->db, EXPORT_QUERIES[i].text, -1, &r.st, NULL) != SQLITE_OK)
		return strstr(sqlite3_errmsg(s->db), "no such") ?
			       0 :
			       refused(s, e); /* the file is older than the table */
	bind(r.st, ":t0", s->t0);
	bind(r.st, ":from", relative(from_ts, s->t0));
	bind(r.st, ":to", relative(to_ts, s->t0));
	rc = columns_read(&r, i, e);
	if (!rc)
		rc = rows_read(s, &r, settled, t, newest, e);
	sqlite3_finalize(r.st);
	return rc;
}
