/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_used: One question a segment gives rows (ts, seconds, name, container or
 * "", value), or in place of the value a histogram (`hist`): those of one name and time are added
 * up, and the value is their 95th percentile. */
#include "tools/timeline/timeline_used.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/hist.h"
#include "tools/select/askrows.h"

#define HOLD_NS (70 * NSEC_PER_SEC)
#define ASKED \
	"iif(container IS NULL OR container = '', comm, container) || iif(side = 'client', ' asks', '')"
#define JVM    "iif(container = '', comm, container) || ' ' || pid"
#define WITHIN " WHERE ts BETWEEN ?1 - 70 AND ?2"

static const struct question {
	const char *of, *sql;
	enum timeline_used_unit unit;
	bool gauge, flows; /* flows: of family net or disk, where family host has nothing */
	bool requests;     /* of family l7; what is no sum of it holds for its own bucket */
	bool hist;
} QUESTIONS[] = {
	{"mem",
	 "SELECT ts, seconds, container, container, coalesce(anon + coalesce(kernel, 0), working) + coalesce(swap, 0) FROM container_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, '[host]', '', mem_total - mem_available FROM host_stats" WITHIN,
	 TIMELINE_USED_BYTES, true, false, false},
	{"io",
	 "SELECT ts, seconds, container, container, 1.0 * (read_bytes + write_bytes) / seconds FROM container_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, '[' || disk || ']', '', 1.0 * (read_bytes + write_bytes) / seconds FROM disk_stats" WITHIN,
	 TIMELINE_USED_RATE, false, false, false},
	{"net",
	 "SELECT ts, seconds, container, container, 1.0 * (rx_bytes + tx_bytes) / seconds FROM container_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, '[' || interface || ']', '', 1.0 * (rx_bytes + tx_bytes) / seconds FROM net_stats" WITHIN
	 " AND container = ''",
	 TIMELINE_USED_RATE, false, false, false},
	{"pressure",
	 "SELECT ts, seconds, container || ' cpu', container, 1e-6 * psi_cpu_us / seconds FROM container_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, container || ' memory', container, 1e-6 * psi_mem_us / seconds FROM container_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, container || ' io', container, 1e-6 * psi_io_us / seconds FROM container_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, '[host] cpu', '', 1e-6 * psi_cpu_us / seconds FROM host_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, '[host] memory', '', 1e-6 * psi_mem_us / seconds FROM host_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, '[host] io', '', 1e-6 * psi_io_us / seconds FROM host_stats" WITHIN,
	 TIMELINE_USED_SHARE, false, false, false},
	{"net",
	 "SELECT ts, seconds, iif(container = '', comm, container), container, 1.0 * (coalesce(rx_bytes, 0) + coalesce(tx_bytes, 0)) / seconds FROM flows" WITHIN,
	 TIMELINE_USED_RATE, false, true, false},
	{"requests",
	 "SELECT ts, seconds, " ASKED ", container, 1.0 * requests / seconds FROM requests" WITHIN,
	 TIMELINE_USED_COUNT, false, false, true},
	{"errors",
	 "SELECT ts, seconds, " ASKED ", container, 1.0 * errors / seconds FROM requests" WITHIN
	 " AND errors > 0",
	 TIMELINE_USED_COUNT, false, false, true},
	{"latency",
	 "SELECT ts, seconds, " ASKED ", container, hist FROM requests" WITHIN
	 " AND hist IS NOT NULL",
	 TIMELINE_USED_TIME, true, false, true, .hist = true},
	{"gpu",
	 "SELECT ts, seconds, '[gpu ' || gpu || ']', '', 1e-6 * busy_us / seconds FROM gpu_stats" WITHIN
	 " UNION ALL SELECT ts, seconds, iif(container = '', coalesce(nullif(comm, ''), '[unknown]'), container), container, 1e-6 * busy_us / seconds"
	 " FROM gpu_process_stats" WITHIN,
	 TIMELINE_USED_SHARE, false, false, false},
	{"jvm",
	 "SELECT ts, seconds, " JVM
	 ", container, coalesce(young_used, 0) + old_used FROM jvm_stats" WITHIN,
	 TIMELINE_USED_BYTES, true, false, false},
	{"gc",
	 "SELECT ts, seconds, " JVM
	 ", container, 1e-6 * (coalesce(young_gc_us, 0) + coalesce(full_gc_us, 0) + coalesce(concurrent_gc_us, 0)) / seconds"
	 " FROM jvm_stats" WITHIN,
	 TIMELINE_USED_SHARE, false, false, false},
	{"disk",
	 "SELECT ts, seconds, '[' || disk || ']', '', 1e-6 * busy_us / seconds FROM disk_stats" WITHIN,
	 TIMELINE_USED_SHARE, false, false, false},
	{"disk",
	 "SELECT ts, seconds, '[' || disk || ']', '', 1e-6 * busy_us / seconds FROM block_devices" WITHIN,
	 TIMELINE_USED_SHARE, false, true, false},
};
#define N_QUESTIONS ARRAY_SIZE(QUESTIONS)

/* A container that stopped, by its name's hash. */
struct stop {
	uint64_t name;
	int64_t at_ns;
};

/* Histograms of one name at one time. */
struct pending {
	char *name, *container;
	int64_t from_ns, to_ns;
	struct hist hist;
};

struct reading {
	const struct question *q;
	struct timeline_used *out;
	struct pending *pending; /* of one time */
	size_t n_pending, cap_pending;
	struct idmap pending_of; /* name -> its place */
	struct idmap line_of;
	size_t cap;
	struct stop *stops;
	size_t n_stops, cap_stops;
	int64_t covered_ns; /* something was recorded up to here */
};

static uint64_t name_hash(const char *name)
{
	return hash_bytes(HASH_SEED, name, strlen(name));
}

static int64_t width(const struct timeline_used *u)
{
	int64_t w = (u->sel->to_ns - u->sel->from_ns) / (int64_t)u->columns;

	return w ? w : 1;
}

int64_t timeline_used_time(const struct timeline_used *u, size_t column)
{
	return u->sel->from_ns + (int64_t)column * width(u);
}

static bool wants(const struct selection *sel, const char *container)
{
	const struct store_process_row p = select_process_row("", container, container);

	return !select_is_narrow(sel) || (*container && select_wants_process(sel, &p));
}

static struct timeline_used_line *line_of(struct reading *r, const char *name,
					  const char *container)
{
	struct timeline_used *u = r->out;
	bool fresh;
	uint64_t *at = idmap_ref(&r->line_of, name_hash(name), &fresh);

	if (fresh) {
		struct timeline_used_line x = {.name = mem_strdup(name),
					       .container = mem_strdup(container),
					       .value = mem_array(u->columns, sizeof(double)),
					       .most = -1,
					       .last = -1};

		for (size_t i = 0; i < u->columns; i++)
			x.value[i] = -1;
		*at = u->n;
		mem_grow(u->lines, u->n, r->cap);
		u->lines[u->n++] = x;
	}
	return &u->lines[*at];
}

/* Columns that [from, to) touches: half-open; none where it is outside of the range. */
static void columns_of(const struct timeline_used *u, int64_t from, int64_t to, size_t *first,
		       size_t *end)
{
	int64_t w = width(u), a = from - u->sel->from_ns, z = to - u->sel->from_ns;

	*first = a > 0 ? (size_t)(a / w) : 0;
	*end = z > 0 ? (size_t)((z + w - 1) / w) : 0;
	*end = *end < u->columns ? *end : u->columns;
}

/* How much of the column lies in [from, to). */
static double part_of(const struct timeline_used *u, size_t column, int64_t from, int64_t to)
{
	int64_t begin = timeline_used_time(u, column), end = begin + width(u);

	from = from > begin ? from : begin;
	to = to < end ? to : end;
	return to > from ? (double)(to - from) / (double)width(u) : 0;
}

/* It was this much from `from` to `to`. */
static void fill(const struct reading *r, struct timeline_used_line *line, int64_t from, int64_t to,
		 double value)
{
	const struct timeline_used *u = r->out;
	size_t first, end;

	columns_of(u, from, to, &first, &end);
	for (size_t i = first; i < end; i++) {
		double was = line->value[i] > 0 ? line->value[i] : 0;

		if (!r->q->gauge)
			line->value[i] = was + value * part_of(u, i, from, to);
		else /* rows come in order of time: it holds until the next one; a column shows the
			highest */
			line->value[i] =
				(i == first || r->q->requests) && was > value ? was : value;
	}
}

/* Readings of what goes on come at least once a minute. */
static bool is_read_regularly(const struct question *q)
{
	return !q->requests && !q->flows && strcmp(q->of, "gpu") != 0;
}

/* From its newest reading on, up to `to`, unless its container stopped before. Where that was. */
static int64_t go_on(const struct reading *r, struct timeline_used_line *line, int64_t to)
{
	uint64_t name = name_hash(line->container);

	if (to <= line->read_ns || to - line->read_ns > HOLD_NS)
		return line->read_ns;
	for (size_t i = 0; *line->container && i < r->n_stops; i++)
		if (r->stops[i].name == name && r->stops[i].at_ns < to &&
		    r->stops[i].at_ns > line->read_ns - HOLD_NS)
			to = r->stops[i].at_ns > line->read_ns ? r->stops[i].at_ns : line->read_ns;
	fill(r, line, line->read_ns, to, r->q->gauge ? line->read : 0);
	return to;
}

static void take_value(struct reading *r, const char *name, const char *container, int64_t from,
		       int64_t to, double value)
{
	struct timeline_used_line *line;
	size_t first, end;

	columns_of(r->out, from, to, &first, &end);
	if (first >= end && !is_read_regularly(r->q))
		return;
	line = line_of(r, name, container);
	if (line->read_ns && is_read_regularly(r->q))
		go_on(r, line, from);
	fill(r, line, from, to, value);
	line->read = to >= line->read_ns ? value : line->read;
	line->read_from_ns = to > line->read_ns ? from : line->read_from_ns;
	line->read_ns = to > line->read_ns ? to : line->read_ns;
}

/* --- histograms --- */

#define LATENCY_QUANTILE 0.95

/* What is pending is all there is of its time. */
static void pending_take(struct reading *r)
{
	for (size_t i = 0; i < r->n_pending; i++) {
		struct pending *x = &r->pending[i];

		if (hist_total(&x->hist))
			take_value(r, x->name, x->container, x->from_ns, x->to_ns,
				   1e-9 * hist_quantile(&x->hist, LATENCY_QUANTILE));
		hist_release(&x->hist);
		free(x->name);
		free(x->container);
	}
	r->n_pending = 0;
	idmap_release(&r->pending_of);
}

/* Rows come in order of time. */
static void take_hist(struct reading *r, sqlite3_stmt *st, int64_t from, int64_t to)
{
	const char *text = askrows_text(st, 4);
	struct pending *x;
	uint64_t *at;
	bool fresh;

	if (r->n_pending && r->pending[0].from_ns != from)
		pending_take(r);
	at = idmap_ref(&r->pending_of, name_hash(askrows_text(st, 2)), &fresh);
	if (fresh) {
		*at = r->n_pending;
		mem_grow(r->pending, r->n_pending, r->cap_pending);
		r->pending[r->n_pending++] =
			(struct pending){.name = mem_strdup(askrows_text(st, 2)),
					 .container = mem_strdup(askrows_text(st, 3)),
					 .from_ns = from};
	}
	x = &r->pending[*at];
	x->to_ns = to > x->to_ns ? to : x->to_ns;
	(void)hist_read(&x->hist, text, strlen(text), HIST_FINE);
}

static void take_row(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t from = sqlite3_column_int64(st, 0) * NSEC_PER_SEC,
		to = from + sqlite3_column_int64(st, 1) * NSEC_PER_SEC;

	if (sqlite3_column_type(st, 4) == SQLITE_NULL || !wants(r->out->sel, askrows_text(st, 3)))
		return;
	if (r->q->hist)
		take_hist(r, st, from, to);
	else
		take_value(r, askrows_text(st, 2), askrows_text(st, 3), from, to,
			   sqlite3_column_double(st, 4));
}

static void take_stop(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	mem_grow(r->stops, r->n_stops, r->cap_stops);
	r->stops[r->n_stops++] =
		(struct stop){name_hash(askrows_text(st, 1)), sqlite3_column_int64(st, 0)};
}

static void take_time(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t from = sqlite3_column_int64(st, 0) * NSEC_PER_SEC,
		to = from + sqlite3_column_int64(st, 1) * NSEC_PER_SEC;
	size_t first, end;

	r->covered_ns = to > r->covered_ns ? to : r->covered_ns;
	columns_of(r->out, from, to, &first, &end);
	for (size_t i = first; i < end; i++)
		r->out->covered[i] = true;
}

/* After its newest reading a line goes on, or has ended; it ends in the bucket of its recorded end,
 * if there is one. */
static void line_end(const struct reading *r, struct timeline_used_line *x)
{
	int64_t to = go_on(r, x, r->covered_ns), stopped = 0;

	if (to >= r->covered_ns || to >= r->out->sel->to_ns)
		return;
	for (size_t i = 0; to == x->read_ns && i < r->n_stops; i++)
		if (r->stops[i].name == name_hash(x->container) &&
		    r->stops[i].at_ns >= x->read_from_ns && r->stops[i].at_ns <= to &&
		    r->stops[i].at_ns > stopped)
			stopped = r->stops[i].at_ns;
	x->ended_ns = stopped ? stopped : to;
}

/* What was recorded and not told used nothing; what was not recorded, and what had not begun or has
 * ended, is not known. */
static void line_finish(const struct reading *r, struct timeline_used_line *x)
{
	const struct timeline_used *u = r->out;

	if (is_read_regularly(r->q))
		line_end(r, x);
	for (size_t i = 0; i < u->columns; i++) {
		if (!u->covered[i])
			x->value[i] = -1;
		else if (!r->q->gauge && !is_read_regularly(r->q) && x->value[i] < 0)
			x->value[i] = 0;
		if (x->value[i] >= 0)
			x->last = x->value[i];
		if (x->value[i] > x->most) {
			x->most = x->value[i];
			x->most_ns = timeline_used_time(u, i);
		}
	}
}

static void line_release(struct timeline_used_line *x)
{
	free(x->name);
	free(x->container);
	free(x->value);
}

/* Drops lines without a value in the range: they were read before it, or where nothing was
 * recorded. */
static void finish(const struct reading *r)
{
	struct timeline_used *u = r->out;
	size_t kept = 0;

	for (size_t k = 0; k < u->n; k++) {
		line_finish(r, &u->lines[k]);
		if (u->lines[k].most >= 0)
			u->lines[kept++] = u->lines[k];
		else
			line_release(&u->lines[k]);
	}
	u->n = kept;
}

static int by_peak(const void *a, const void *b)
{
	const struct timeline_used_line *x = a, *y = b;

	if (x->most != y->most)
		return x->most > y->most ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* NULL without an error: no flows were recorded. */
static const struct question *question_of(const char *of, bool flows, struct err *e)
{
	for (size_t i = 0; i < N_QUESTIONS; i++)
		if (!strcmp(QUESTIONS[i].of, of) && QUESTIONS[i].flows == flows)
			return &QUESTIONS[i];
	if (flows)
		return NULL;
	err_set(e, -EINVAL, EXIT_USAGE,
		"--of takes cpu, mem, io, net, pressure, disk, gpu, jvm, gc, requests, errors or latency, not '%.100s'",
		of);
	return NULL;
}

static const char HOST_TIMES[] = "SELECT ts, seconds FROM host_stats" WITHIN;
#define RUNS(family)                                                                                   \
	"SELECT from_ns / 1000000000, (to_ns - from_ns) / 1000000000 FROM run WHERE family = '" family \
	"'"                                                                                            \
	" AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2"
static const char NET_TIMES[] = RUNS("net"), GPU_TIMES[] = RUNS("gpu"), L7_TIMES[] = RUNS("l7"),
		  DISK_TIMES[] = RUNS("disk");

static const char STOPS[] =
	"SELECT at_ns, name FROM events WHERE subject = 'container' AND kind IN ('stopped', 'removed') AND ts BETWEEN ?1 - 70 AND ?2";

static bool is_of_gpus(const struct question *q)
{
	return !strcmp(q->of, "gpu");
}

static int read_all(struct reading *r, struct err *e)
{
	const struct selection *sel = r->out->sel;
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	const char *times = r->q->requests   ? L7_TIMES :
			    r->q->flows      ? (strcmp(r->q->of, "disk") ? NET_TIMES : DISK_TIMES) :
			    is_of_gpus(r->q) ? GPU_TIMES :
					       HOST_TIMES;
	struct askrows_part parts[3] = {{times, take_time, r}};
	size_t n = 1;
	int rc;

	strbuf_addf(&sql, "SELECT * FROM (%s) ORDER BY ts", r->q->sql);
	if (is_read_regularly(r->q))
		parts[n++] = (struct askrows_part){STOPS, take_stop, r};
	parts[n++] = (struct askrows_part){strbuf_str(&sql), take_row, r};
	rc = askrows_each(sel, NULL, parts, n, e);
	pending_take(r);
	free(r->pending);
	r->pending = NULL;
	r->cap_pending = 0;
	if (!rc)
		finish(r);
	free(r->stops);
	r->stops = NULL;
	r->n_stops = r->cap_stops = 0;
	return rc;
}

static bool knows_any(const struct timeline_used *u)
{
	for (size_t i = 0; i < u->columns; i++)
		if (u->covered[i])
			return true;
	return false;
}

static int none(const struct timeline_used *u, const struct question *q, struct err *e)
{
	const struct selection *sel = u->sel;
	bool known = knows_any(u);
	const char *family = q->requests   ? "l7" :
			     is_of_gpus(q) ? "gpu" :
					     "host",
		   *of = !strcmp(u->of, "jvm") ? "Java's heaps" : u->of;

	err_set(e, -ENODATA, EXIT_NOTHING, "no %s%s%s in %s: %s", of, *sel->what ? " of " : "",
		sel->what, sel->range,
		known && (q->requests || strstr("gpu jvm gc", q->of)) ? "none was recorded" :
		q->requests   ? "requests were not recorded then" :
		is_of_gpus(q) ? "GPUs were not recorded then" :
				"what the host and its containers used was not recorded then");
	err_fix(e, "sudo sonde record --families cpu,%s -d 30s", family);
	return -ENODATA;
}

int timeline_used_make(const struct selection *sel, const char *of, size_t columns,
		       struct timeline_used *out, struct err *e)
{
	struct timeline_used u = {.sel = sel, .of = of, .columns = columns ? columns : 1};
	struct reading r = {.q = question_of(of, false, e), .out = &u};
	int rc;

	if (!r.q)
		return -EINVAL;
	u.unit = r.q->unit;
	u.covered = mem_array(u.columns, sizeof(*u.covered));
	rc = read_all(&r, e);
	if (!rc && !u.n && question_of(of, true, e)) {
		r.q = question_of(of, true, e);
		rc = read_all(&r, e);
	}
	idmap_release(&r.line_of);
	if (!rc && !u.n)
		rc = none(&u, r.q, e);
	if (rc) {
		timeline_used_release(&u);
		return rc;
	}
	qsort(u.lines, u.n, sizeof(*u.lines), by_peak);
	*out = u;
	return 0;
}

void timeline_used_release(struct timeline_used *u)
{
	for (size_t i = 0; i < u->n; i++)
		line_release(&u->lines[i]);
	free(u->lines);
	free(u->covered);
	*u = (struct timeline_used){0};
}
