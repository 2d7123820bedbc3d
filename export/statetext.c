/* SPDX-License-Identifier: Apache-2.0 */
#include "export/statetext.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "export/source.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define HEAD    "sonde-metrics 1\n"
#define TS_MOST (1ll << 40)

/* A number and the blank or the end after it. NULL: not a number. */
static char *number(char *p, uint64_t *out)
{
	char *end;

	if (!p || *p < '0' || *p > '9')
		return NULL;
	errno = 0;
	*out = strtoull(p, &end, 10);
	return errno || (*end && *end != ' ') ? NULL : end + (*end == ' ');
}

static bool time_ok(uint64_t v)
{
	return v <= TS_MOST;
}

static bool series_line(struct totals *t, char *p)
{
	size_t len = strcspn(p, " ");
	struct totals_row r = {.labels = ""};
	uint64_t part, ts;
	unsigned ignored;
	int metric = metric_find(p, len, &ignored);

	p = number(p[len] ? p + len + 1 : NULL, &part);
	p = number(p, &ts);
	p = number(p, &r.settled);
	p = number(p, &r.shown);
	if (!p || part > METRIC_SUM || !time_ok(ts))
		return false;
	r.metric = (unsigned)metric;
	r.part = (unsigned)part;
	r.ts = (int64_t)ts;
	r.labels = p;
	if (metric >= 0)
		totals_put(t, &r);
	return true;
}

static bool settled_line(struct totals *t, char *p)
{
	char *name = p, *ts = strchr(p, ' ');
	uint64_t v;
	int source;

	if (!ts)
		return false;
	*ts++ = '\0';
	source = source_find(name);
	if (!number(ts, &v) || !time_ok(v))
		return false;
	if (source >= 0)
		t->settled_ts[source] = (int64_t)v;
	return true;
}

static bool line_take(struct totals *t, char *line)
{
	uint64_t v;

	if (!strncmp(line, "s ", 2))
		return series_line(t, line + 2);
	if (!strncmp(line, "settled ", 8))
		return settled_line(t, line + 8);
	if (!strncmp(line, "begun ", 6) && number(line + 6, &v) && time_ok(v))
		return t->begun_ts = (int64_t)v, true;
	if (!strncmp(line, "missed ", 7) && number(line + 7, &v))
		return t->missed_s = v, true;
	if (!strncmp(line, "folded ", 7) && number(line + 7, &v))
		return t->folded = v, true;
	return false;
}

int state_parse(struct totals *t, const char *text, size_t len)
{
	cleanup_free char *copy = mem_strndup(text, len);
	size_t max_series = t->max_series;
	char *p = copy;
	bool ok = !strncmp(p, HEAD, strlen(HEAD)) && len && text[len - 1] == '\n' &&
		  strlen(copy) == len;

	for (p += ok ? strlen(HEAD) : 0; ok && *p;) {
		char *end = strchr(p, '\n');

		*end = '\0';
		ok = line_take(t, p);
		p = end + 1;
	}
	if (ok && t->begun_ts)
		return 0;
	totals_release(t);
	totals_init(t, max_series);
	return -EBADMSG;
}

void state_print(struct totals *t, struct strbuf *out)
{
	size_t n;
	cleanup_free struct totals_row *rows = totals_rows(t, &n);

	strbuf_addf(out, HEAD "begun %" PRId64 "\nmissed %" PRIu64 "\nfolded %" PRIu64 "\n",
		    t->begun_ts, t->missed_s, t->folded);
	for (size_t i = 0; i < source_count(); i++)
		strbuf_addf(out, "settled %s %" PRId64 "\n", source_name(i), t->settled_ts[i]);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(out, "s %s %u %" PRId64 " %" PRIu64 " %" PRIu64 " %s\n",
			    METRICS[rows[i].metric].name, rows[i].part, rows[i].ts, rows[i].settled,
			    rows[i].shown, rows[i].labels);
}
