/* SPDX-License-Identifier: Apache-2.0 */
#include "export/expose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/version.h"

static bool ends_in(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !strncmp(name + len - n, end, n);
}

static void head(struct strbuf *out, const char *name, const char *type, const char *help,
		 bool openmetrics)
{
	static const char *const units[] = {"seconds", "bytes", "celsius"};
	bool counter = !strcmp(type, "counter");
	int len = (int)strlen(name) - (openmetrics && counter ? (int)strlen("_total") : 0);

	strbuf_addf(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", len, name, help, len, name, type);
	for (size_t i = 0; openmetrics && i < ARRAY_SIZE(units); i++)
		if (ends_in(name, (size_t)len, units[i]))
			strbuf_addf(out, "# UNIT %.*s %s\n", len, name, units[i]);
}

static void sample(struct strbuf *out, const struct metric *m, const char *end, const char *labels,
		   const char *le, uint64_t value, unsigned decimals)
{
	strbuf_addf(out, "%s%s", m->name, end);
	if (*labels || le)
		strbuf_addf(out, "{%s%s%s%s%s}", labels, *labels && le ? "," : "",
			    le ? "le=\"" : "", le ? le : "", le ? "\"" : "");
	strbuf_addch(out, ' ');
	metric_value(out, value, decimals);
	strbuf_addch(out, '\n');
}

/* The `n` rows from `r` on: one histogram of one set of labels. A bound without a row has the value
 * of the bound before. */
static void histogram(struct strbuf *out, const struct totals_row *r, size_t n)
{
	const struct metric *m = &METRICS[r->metric];
	uint64_t below = 0, sum = 0, all = 0;
	char buf[32];
	const char *le;
	size_t k = 0;

	for (unsigned i = 0; (le = metric_bound((int)r->metric, i, buf)); i++) {
		if (k < n && r[k].part == i && r[k++].shown > below)
			below = r[k - 1].shown;
		sample(out, m, "_bucket", r->labels, le, below, 0);
	}
	for (; k < n; k++) {
		if (r[k].part == METRIC_INF)
			all = r[k].shown;
		else if (r[k].part == METRIC_SUM)
			sum = r[k].shown;
	}
	if (all < below)
		all = below;
	sample(out, m, "_bucket", r->labels, "+Inf", all, 0);
	sample(out, m, "_sum", r->labels, NULL, sum, m->decimals);
	sample(out, m, "_count", r->labels, NULL, all, 0);
}

/* How many rows, from `r` on, are one histogram. */
static size_t histogram_rows(const struct totals_row *r, const struct totals_row *end)
{
	size_t n = 1;

	while (r + n < end && r[n].metric == r->metric && !strcmp(r[n].labels, r->labels))
		n++;
	return n;
}

static void series(struct strbuf *out, const struct totals_row *rows, size_t n, bool openmetrics)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};

	for (size_t i = 0, step; i < n; i += step) {
		const struct metric *m = &METRICS[rows[i].metric];

		step = 1;
		if (!i || rows[i - 1].metric != rows[i].metric)
			head(out, m->name, types[m->type], m->help, openmetrics);
		if (m->type == METRIC_HISTOGRAM) {
			step = histogram_rows(&rows[i], rows + n);
			histogram(out, &rows[i], step);
		} else {
			sample(out, m, "", rows[i].labels, NULL, rows[i].shown, m->decimals);
		}
	}
}

/* Metrics of sonde itself and of the store. */
#define OWN 10

static void own(struct strbuf *out, const struct totals *t, const struct update_store *about,
		size_t n, bool openmetrics)
{
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} items[] = {
		{"sonde_export_begun_timestamp_seconds", "gauge", "When the counters started.",
		 (uint64_t)t->begun_ts},
		{"sonde_export_folded_values_total", "counter",
		 "Values that were counted under ~other, or left out, because there are too many series.",
		 t->folded},
		{"sonde_export_missed_seconds_total", "counter",
		 "Upper bound of the time that was removed from the store before it was counted.",
		 t->missed_s},
		{"sonde_export_series", "gauge", "Series, this one too.", n},
		{"sonde_export_series_limit", "gauge",
		 "Limit of series; above it new ones are counted under ~other.", t->max_series},
		{"sonde_store_bytes", "gauge", "Size of the store's files, with their logs.",
		 about->bytes},
		{"sonde_store_newest_timestamp_seconds", "gauge", "The newest bucket in the store.",
		 (uint64_t)about->newest_ts},
		{"sonde_store_oldest_timestamp_seconds", "gauge",
		 "When the store's oldest file was begun.", (uint64_t)about->oldest_ts},
		{"sonde_store_segments", "gauge", "Files of the store.", about->segments},
	};

	head(out, "sonde_build_info", "gauge", "Which sonde this is. Always 1.", openmetrics);
	strbuf_addf(out, "sonde_build_info{version=\"%s\"} 1\n", SONDE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		head(out, items[i].name, items[i].type, items[i].help, openmetrics);
		strbuf_addf(out, "%s %" PRIu64 "\n", items[i].name, items[i].value);
	}
}

static size_t bounds_of(int metric)
{
	char buf[32];
	unsigned n = 0;

	while (metric_bound(metric, n, buf))
		n++;
	return n;
}

static size_t count(const struct totals_row *rows, size_t n)
{
	size_t shown = OWN;

	for (size_t i = 0, step; i < n; i += step) {
		bool spread = METRICS[rows[i].metric].type == METRIC_HISTOGRAM;

		step = spread ? histogram_rows(&rows[i], rows + n) : 1;
		shown += spread ? bounds_of((int)rows[i].metric) + 3 : 1;
	}
	return shown;
}

size_t expose_count(struct totals *t)
{
	size_t n;
	cleanup_free struct totals_row *rows = totals_rows(t, &n);

	return count(rows, n);
}

void expose(struct totals *t, const struct update_store *about, bool openmetrics,
	    struct strbuf *out)
{
	size_t n;
	cleanup_free struct totals_row *rows = totals_rows(t, &n);

	series(out, rows, n, openmetrics);
	own(out, t, about, count(rows, n), openmetrics);
	if (openmetrics)
		strbuf_addstr(out, "# EOF\n");
}
