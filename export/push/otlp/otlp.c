/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: metrics; see the header. Field numbers are those of opentelemetry-proto's metrics. */
#include "export/push/otlp/otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "export/metric.h"
#include "export/push/batch.h"
#include "export/push/otlp/otlpname.h"
#include "export/push/otlp/otlpwrite.h"
#include "export/push/table.h"
#include "export/source.h"
#include "export/totals.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"

enum { SCOPE_METRICS = 2, RESOURCE_ATTRIBUTES = 1 };
enum {
	METRIC_NAME = 1,
	METRIC_DESCRIPTION = 2,
	METRIC_UNIT = 3,
	METRIC_OF_GAUGE = 5,
	METRIC_OF_SUM = 7,
	METRIC_OF_HISTOGRAM = 9
};
enum { POINTS = 1, TEMPORALITY = 2, MONOTONIC = 3, DELTA = 1, CUMULATIVE = 2 };
enum { POINT_START = 2, POINT_TIME = 3, POINT_DOUBLE = 4, POINT_INT = 6, POINT_ATTRIBUTES = 7 };
enum {
	SPREAD_START = 2,
	SPREAD_TIME = 3,
	SPREAD_COUNT = 4,
	SPREAD_SUM = 5,
	SPREAD_COUNTS = 6,
	SPREAD_BOUNDS = 7,
	SPREAD_ATTRIBUTES = 9
};

/* One series of the range. */
struct series {
	const struct totals_row *rows; /* of a histogram several */
	size_t n;
	char *container, *unit; /* whose it is, "" */
	struct otlp_name name;
};

struct names { /* of one container */
	char *name, *id, *image;
};

struct metrics {
	const struct otlp_range *range;
	struct otlp_request request;
	char *host;
	struct names *containers;
	size_t n_containers, cap_containers;
	struct series *series;
	size_t n, cap;
};

/* --- points --- */

static double scaled(uint64_t value, unsigned decimals)
{
	double one = 1;

	for (unsigned i = 0; i < decimals; i++)
		one *= 10;
	return (double)value / one;
}

static void attributes_add(const struct series *s, unsigned field, struct strbuf *point)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT, value cleanup_strbuf = STRBUF_INIT;
	const char *labels = s->rows->labels;

	while (otlp_label_next(&labels, &name, &value)) {
		const char *key = strbuf_str(&name);

		if (!strcmp(key, "container") || !strcmp(key, "unit") ||
		    (s->name.without_kind && !strcmp(key, "kind")))
			continue;
		key = otlp_label(s->name.name, key);
		otlp_text(point, field, key, otlp_value(key, strbuf_str(&value)));
	}
}

static void number_point(const struct metrics *m, const struct series *s, struct strbuf *points)
{
	const struct metric *of = &METRICS[s->rows->metric];
	struct strbuf p cleanup_strbuf = STRBUF_INIT;
	bool gauge = of->type == METRIC_GAUGE;

	if (!gauge)
		proto_fixed64(&p, POINT_START, (uint64_t)(m->range->from_ts * NSEC_PER_SEC));
	proto_fixed64(&p, POINT_TIME,
		      (uint64_t)((gauge ? s->rows->ts : m->range->to_ts) * NSEC_PER_SEC));
	if (of->decimals)
		proto_double(&p, POINT_DOUBLE, scaled(s->rows->shown, of->decimals));
	else
		proto_fixed64(&p, POINT_INT, s->rows->shown);
	attributes_add(s, POINT_ATTRIBUTES, &p);
	proto_bytes(points, POINTS, p.buf, p.len);
}

/* Rows have how many are at most their bound (expose.c); a bucket has those between two. */
static void spread_point(const struct metrics *m, const struct series *s, struct strbuf *points)
{
	struct strbuf p cleanup_strbuf = STRBUF_INIT, counts cleanup_strbuf = STRBUF_INIT,
			bounds cleanup_strbuf = STRBUF_INIT;
	const struct totals_row *r = s->rows;
	uint64_t below = 0, was, sum = 0, all = 0;
	char buf[32];
	const char *le;
	size_t k = 0;

	for (unsigned i = 0; (le = metric_bound((int)r->metric, i, buf)); i++) {
		double bound = strtod(le, NULL);
		uint64_t bits;

		was = below;
		if (k < s->n && r[k].part == i && r[k++].shown > below)
			below = r[k - 1].shown;
		memcpy(&bits, &bound, sizeof(bits));
		proto_eight(&bounds, bits);
		proto_eight(&counts, below - was);
	}
	for (; k < s->n; k++) {
		if (r[k].part == METRIC_INF)
			all = r[k].shown;
		else if (r[k].part == METRIC_SUM)
			sum = r[k].shown;
	}
	if (all < below)
		all = below;
	proto_eight(&counts, all - below);
	proto_fixed64(&p, SPREAD_START, (uint64_t)(m->range->from_ts * NSEC_PER_SEC));
	proto_fixed64(&p, SPREAD_TIME, (uint64_t)(m->range->to_ts * NSEC_PER_SEC));
	proto_fixed64(&p, SPREAD_COUNT, all);
	proto_double(&p, SPREAD_SUM, scaled(sum, METRICS[r->metric].decimals));
	proto_bytes(&p, SPREAD_COUNTS, counts.buf, counts.len);
	proto_bytes(&p, SPREAD_BOUNDS, bounds.buf, bounds.len);
	attributes_add(s, SPREAD_ATTRIBUTES, &p);
	proto_bytes(points, POINTS, p.buf, p.len);
}

/* --- metrics --- */

/* Series of one name, from `s` on. */
static void metric_add(const struct metrics *m, const struct series *s, size_t n,
		       struct strbuf *items)
{
	struct strbuf metric cleanup_strbuf = STRBUF_INIT, data cleanup_strbuf = STRBUF_INIT;
	const struct metric *of = &METRICS[s->rows->metric];
	bool gauge = of->type == METRIC_GAUGE && !s->name.additive;

	for (size_t i = 0; i < n; i++)
		if (of->type == METRIC_HISTOGRAM)
			spread_point(m, &s[i], &data);
		else
			number_point(m, &s[i], &data);
	if (!gauge)
		proto_uint(&data, TEMPORALITY, of->type == METRIC_GAUGE ? CUMULATIVE : DELTA);
	if (of->type == METRIC_COUNTER)
		proto_uint(&data, MONOTONIC, 1);
	proto_bytes(&metric, METRIC_NAME, s->name.name, strlen(s->name.name));
	proto_bytes(&metric, METRIC_DESCRIPTION, of->help, strlen(of->help));
	proto_bytes(&metric, METRIC_UNIT, s->name.unit, strlen(s->name.unit));
	proto_bytes(&metric,
		    of->type == METRIC_HISTOGRAM ? METRIC_OF_HISTOGRAM :
		    gauge                        ? METRIC_OF_GAUGE :
						   METRIC_OF_SUM,
		    data.buf, data.len);
	proto_bytes(items, SCOPE_METRICS, metric.buf, metric.len);
}

static void resource_of(const struct metrics *m, const struct series *s, struct strbuf *out)
{
	otlp_text(out, RESOURCE_ATTRIBUTES, "host.name", m->host);
	otlp_text(out, RESOURCE_ATTRIBUTES, "service.name",
		  *s->container ? s->container :
		  *s->unit      ? s->unit :
				  "sonde");
	otlp_text(out, RESOURCE_ATTRIBUTES, "systemd.unit", s->unit);
	otlp_text(out, RESOURCE_ATTRIBUTES, "container.name", s->container);
	for (size_t i = 0; *s->container && i < m->n_containers; i++)
		if (!strcmp(m->containers[i].name, s->container)) {
			otlp_text(out, RESOURCE_ATTRIBUTES, "container.id", m->containers[i].id);
			otlp_text(out, RESOURCE_ATTRIBUTES, "container.image.name",
				  m->containers[i].image);
			break;
		}
}

static int series_order(const void *a, const void *b)
{
	const struct series *x = a, *y = b;
	int d = strcmp(x->container, y->container);

	if (!d)
		d = strcmp(x->unit, y->unit);
	if (!d)
		d = strcmp(x->name.name, y->name.name);
	return d ? d : (x->rows > y->rows) - (x->rows < y->rows);
}

static bool same_resource(const struct series *a, const struct series *b)
{
	return !strcmp(a->container, b->container) && !strcmp(a->unit, b->unit);
}

static int series_send(struct metrics *m, struct err *e)
{
	int rc = 0;

	qsort(m->series, m->n, sizeof(*m->series), series_order);
	for (size_t i = 0, end; !rc && i < m->n; i = end) {
		struct strbuf resource cleanup_strbuf = STRBUF_INIT,
				       items cleanup_strbuf = STRBUF_INIT;

		for (end = i + 1; end < m->n && same_resource(&m->series[i], &m->series[end]);)
			end++;
		for (size_t k = i, next; k < end; k = next) {
			for (next = k + 1; next < end && !strcmp(m->series[k].name.name,
								 m->series[next].name.name);)
				next++;
			metric_add(m, &m->series[k], next - k, &items);
		}
		resource_of(m, &m->series[i], &resource);
		rc = otlp_resource(&m->request, &resource, &items, end - i, e);
	}
	return rc ? rc : otlp_flush(&m->request, e);
}

/* --- what is read --- */

static void series_take(struct metrics *m, const struct totals_row *rows, size_t n)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT, value cleanup_strbuf = STRBUF_INIT,
			   kind cleanup_strbuf = STRBUF_INIT;
	struct series s = {
		.rows = rows, .n = n, .container = mem_strdup(""), .unit = mem_strdup("")};
	const char *labels = rows->labels;

	while (otlp_label_next(&labels, &name, &value)) {
		const char *key = strbuf_str(&name);

		if (!strcmp(key, "container") || !strcmp(key, "unit")) {
			char **to = *key == 'c' ? &s.container : &s.unit;

			free(*to);
			*to = mem_strdup(strbuf_str(&value));
		} else if (!strcmp(key, "kind")) {
			strbuf_addstr(&kind, strbuf_str(&value));
		}
	}
	otlp_name_of(rows->metric, strbuf_str(&kind), &s.name);
	mem_grow(m->series, m->n, m->cap);
	m->series[m->n++] = s;
}

static int totals_read(const struct otlp_range *r, struct totals *t, struct err *e)
{
	int64_t newest = 0;
	int rc = 0;

	totals_reopen(t);
	for (size_t i = 0; !rc && i < r->n; i++) {
		struct source_segment *s = NULL;

		rc = source_open(r->segments[i].path, &s, e);
		if (rc == -ENODATA || rc == -ENOENT)
			rc = 0;
		for (size_t k = 0; !rc && s && k < source_count(); k++)
			rc = source_read(s, k, r->from_ts, r->to_ts, false, t, &newest, e);
		source_close(s);
	}
	totals_close(t, r->to_ts);
	return rc;
}

static int name_take(void *ctx, sqlite3_stmt *st, const char *host, struct err *e)
{
	struct metrics *m = ctx;
	struct names *c = NULL;

	(void)host;
	(void)e;
	for (size_t i = 0; i < m->n_containers; i++)
		if (!strcmp(m->containers[i].name, (const char *)sqlite3_column_text(st, 0)))
			c = &m->containers[i];
	if (!c) {
		mem_grow(m->containers, m->n_containers, m->cap_containers);
		c = &m->containers[m->n_containers++];
		*c = (struct names){.name = mem_strdup((const char *)sqlite3_column_text(st, 0))};
	}
	free(c->id);
	free(c->image);
	c->id = mem_strdup((const char *)sqlite3_column_text(st, 1));
	c->image = mem_strdup((const char *)sqlite3_column_text(st, 2));
	return 0;
}

static int host_take(void *ctx, sqlite3_stmt *st, const char *host, struct err *e)
{
	struct metrics *m = ctx;

	(void)st;
	(void)e;
	free(m->host);
	m->host = mem_strdup(host);
	return 0;
}

/* Reads which container had a name last in the range, or, where no cgroup row names it, the only
 * container of that name; and the host's name. */
static int names_read(struct metrics *m, struct err *e)
{
	static const struct table containers = {
		"containers",
		"SELECT name, runtime_id, image FROM (SELECT name, max(runtime_id) AS runtime_id, max(image) AS image, -1 AS ts FROM containers GROUP BY name"
		"  HAVING count(DISTINCT runtime_id) = 1"
		" UNION ALL SELECT c.name, c.runtime_id, c.image, max(x.ts) FROM cgroup_row x JOIN containers c ON c.id = x.container"
		"  WHERE x.ts >= :from - :t0 AND x.ts < :to - :t0 GROUP BY c.name) ORDER BY ts"};
	static const struct table host = {"host", "SELECT 1"};
	const struct otlp_range *r = m->range;
	int rc = batch_each(r->segments, r->n, &host, r->from_ts, r->to_ts, host_take, m, e);

	return rc ? rc :
		    batch_each(r->segments, r->n, &containers, r->from_ts, r->to_ts, name_take, m,
			       e);
}

static void release(struct metrics *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->series[i].container);
		free(m->series[i].unit);
	}
	for (size_t i = 0; i < m->n_containers; i++) {
		free(m->containers[i].name);
		free(m->containers[i].id);
		free(m->containers[i].image);
	}
	free(m->series);
	free(m->containers);
	free(m->host);
	otlp_release(&m->request);
}

int otlp_metrics(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx,
		 struct err *e)
{
	struct metrics m = {
		.range = r,
		.request = {.path = "/v1/metrics", .target = t, .take = take, .ctx = ctx}};
	cleanup_free struct totals_row *rows = NULL;
	struct totals totals;
	size_t n = 0;
	int rc;

	totals_init(&totals, TOTALS_SERIES);
	rc = totals_read(r, &totals, e);
	if (!rc)
		rc = names_read(&m, e);
	rows = totals_rows(&totals, &n);
	for (size_t i = 0, step; !rc && i < n; i += step) {
		for (step = 1; METRICS[rows[i].metric].type == METRIC_HISTOGRAM && i + step < n &&
			       rows[i + step].metric == rows[i].metric &&
			       !strcmp(rows[i + step].labels, rows[i].labels);)
			step++;
		if (!metric_is_alias(rows[i].metric))
			series_take(&m, &rows[i], step);
	}
	if (!rc)
		rc = series_send(&m, e);
	release(&m);
	totals_release(&totals);
	return rc;
}
