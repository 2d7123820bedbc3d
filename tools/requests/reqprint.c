/* SPDX-License-Identifier: Apache-2.0 */
/* reqprint: see the header. */
#include "tools/requests/reqprint.h"

#include <string.h>

#include "schema/base/array.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/print/when.h"

static const char *ns_text(uint64_t ns, char buf[24])
{
	if (ns < 1000000)
		snprintf(buf, 24, "%.0f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, 24, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(buf, 24, "%.2f s", (double)ns / 1e9);
	return buf;
}

static void ns_cell(struct table *t, uint64_t ns, bool there)
{
	char buf[24];

	table_cell(t, there ? ns_text(ns, buf) : "-");
}

static void who_cell(struct table *t, const char *container, const char *comm, int64_t pid)
{
	if (*container && *comm)
		table_cellf(t, "%s (%s)", container, comm);
	else
		table_cell(t, *container ? container : *comm ? comm : "-");
	if (pid)
		table_cellf(t, "%lld", (long long)pid);
	else
		table_cell(t, "-");
}

static void text_cell(struct table *t, const char *text)
{
	table_cell(t, *text ? text : "-");
}

/* ---- sums ---- */

static void row_text(struct table *t, const struct reqrows *all, const struct reqrows_row *r)
{
	char buf[32];

	text_cell(t, r->side);
	who_cell(t, r->container, r->comm, r->pid);
	text_cell(t, r->protocol);
	text_cell(t, r->service);
	text_cell(t, r->operation);
	text_cell(t, r->status);
	table_cell(t, term_count(r->requests, buf, sizeof(buf)));
	if (all->seconds > 0 && (double)r->requests >= 100 * all->seconds)
		table_cell(t, term_count((uint64_t)((double)r->requests / all->seconds + 0.5), buf,
					 sizeof(buf)));
	else if (all->seconds > 0)
		table_cellf(t, "%.3g", (double)r->requests / all->seconds);
	else
		table_cell(t, "-");
	table_cell(t, r->errors ? term_count(r->errors, buf, sizeof(buf)) : "-");
	ns_cell(t, reqrows_quantile(r, 0.5), r->answered);
	ns_cell(t, reqrows_quantile(r, 0.95), r->answered);
	ns_cell(t, reqrows_quantile(r, 0.99), r->answered);
	ns_cell(t, r->max_ns, r->answered);
	ns_cell(t, reqrows_part_quantile(&r->first, 0.99), r->first.n);
	ns_cell(t, reqrows_part_quantile(&r->queue, 0.99), r->queue.n);
	table_cell(t, r->blind ? term_count(r->blind, buf, sizeof(buf)) : "-");
	if (r->errors)
		table_row_color(t, TERM_YELLOW);
}

struct table *reqprint_rows(const struct reqrows *r, size_t n)
{
	static const struct table_column columns[] = {
		{"SIDE", TABLE_LEFT},
		{"NAME", TABLE_MIDDLE},
		{"PID", TABLE_SPARE_RIGHT},
		{"PROTOCOL", TABLE_LEFT},
		{"SERVICE", TABLE_SPARE},
		{"OPERATION", TABLE_MIDDLE},
		{"STATUS", TABLE_LEFT},
		{"N", TABLE_RIGHT},
		{"/S", TABLE_RIGHT},
		{"ERRORS", TABLE_RIGHT},
		{"P50", TABLE_RIGHT},
		{"P95", TABLE_SPARE_RIGHT},
		{"P99", TABLE_RIGHT},
		{"MAX", TABLE_SPARE_RIGHT},
		{"FIRST P99", TABLE_SPARE_RIGHT},
		{"QUEUE P99", TABLE_SPARE_RIGHT},
		{"BLIND", TABLE_SPARE_RIGHT},
	};
	struct table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < n; i++)
		row_text(t, r, &r->rows[i]);
	table_omit_empty(t);
	return t;
}

static json_t *latency_json(const struct reqrows_row *r)
{
	if (!r->answered)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "mean_ns",
			 (json_int_t)(r->total_ns / r->answered), "p50_ns",
			 (json_int_t)reqrows_quantile(r, 0.5), "p95_ns",
			 (json_int_t)reqrows_quantile(r, 0.95), "p99_ns",
			 (json_int_t)reqrows_quantile(r, 0.99), "max_ns", (json_int_t)r->max_ns);
}

static json_t *part_json(const struct reqrows_part *p)
{
	if (!p->n)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "requests", (json_int_t)p->n, "mean_ns",
			 (json_int_t)(p->total_ns / p->n), "p50_ns",
			 (json_int_t)reqrows_part_quantile(p, 0.5), "p95_ns",
			 (json_int_t)reqrows_part_quantile(p, 0.95), "p99_ns",
			 (json_int_t)reqrows_part_quantile(p, 0.99), "max_ns",
			 (json_int_t)p->max_ns);
}

json_t *reqprint_row_json(const struct reqrows *all, const struct reqrows_row *r)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "side", json_text(r->side),
			      "container", json_text(r->container), "comm", json_text(r->comm),
			      "protocol", json_text(r->protocol), "service", json_text(r->service),
			      "operation", json_text(r->operation), "status", json_text(r->status));

	json_object_set_new(o, "pid", r->pid ? json_integer(r->pid) : json_null());
	json_object_set_new(o, "requests", json_integer((json_int_t)r->requests));
	json_object_set_new(o, "per_second",
			    all->seconds > 0 ? json_real((double)r->requests / all->seconds) :
					       json_null());
	json_object_set_new(o, "errors", json_integer((json_int_t)r->errors));
	json_object_set_new(o, "blind", json_integer((json_int_t)r->blind));
	json_object_set_new(o, "latency", latency_json(r));
	json_object_set_new(o, "first_byte", part_json(&r->first));
	json_object_set_new(o, "queue", part_json(&r->queue));
	json_object_set_new(o, "request_bytes", json_integer((json_int_t)r->request_bytes));
	json_object_set_new(o, "response_bytes", json_integer((json_int_t)r->response_bytes));
	return o;
}

json_t *reqprint_bytes_json(const struct reqrows *r)
{
	if (!r->seen)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "seen", (json_int_t)r->seen, "parsed",
			 (json_int_t)r->parsed, "skipped", (json_int_t)r->skipped, "blind",
			 (json_int_t)r->blind, "blind_requests", (json_int_t)r->blind_requests);
}

void reqprint_bytes(const struct reqrows *r, FILE *out)
{
	char seen[32], parsed[32], skipped[32], blind[32];

	if (!r->seen)
		return;
	fprintf(out, "bytes: %s seen = %s parsed + %s skipped + %s blind",
		term_bytes(r->seen, seen, sizeof(seen)),
		term_bytes(r->parsed, parsed, sizeof(parsed)),
		term_bytes(r->skipped, skipped, sizeof(skipped)),
		term_bytes(r->blind, blind, sizeof(blind)));
	if (r->blind_requests)
		fprintf(out, "; what became of %llu requests was not seen",
			(unsigned long long)r->blind_requests);
	fprintf(out, "\n");
}

/* ---- single ones ---- */

static void single_text(struct table *t, const struct reqsingle *r)
{
	char when[40];

	when_zoned(r->at_ns, when, sizeof(when));
	table_cell(t, when);
	table_cell(t, r->side);
	who_cell(t, r->container, r->comm, r->pid);
	table_cell(t, r->protocol);
	text_cell(t, r->service);
	text_cell(t, r->operation);
	text_cell(t, r->status);
	table_cell(t, r->result);
	ns_cell(t, (uint64_t)r->first_us * 1000, r->first_us >= 0);
	ns_cell(t, (uint64_t)r->total_us * 1000, r->total_us >= 0);
	table_cell(t, r->why);
	table_cellf(t, "%llu", (unsigned long long)r->weight);
	text_cell(t, r->trace);
}

struct table *reqprint_singles(const struct reqsingles *r, size_t n)
{
	/* clang-format off */
	static const struct table_column columns[] = {
		{"WHEN", TABLE_LEFT}, {"SIDE", TABLE_LEFT}, {"NAME", TABLE_MIDDLE}, {"PID", TABLE_SPARE_RIGHT}, {"PROTOCOL", TABLE_SPARE}, {"SERVICE", TABLE_SPARE},
		{"OPERATION", TABLE_MIDDLE}, {"STATUS", TABLE_LEFT}, {"RESULT", TABLE_SPARE}, {"FIRST BYTE", TABLE_SPARE_RIGHT}, {"WHOLE", TABLE_RIGHT},
		{"KEPT AS", TABLE_LEFT}, {"STANDS FOR", TABLE_SPARE_RIGHT}, {"TRACE", TABLE_SPARE},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < n; i++)
		single_text(t, &r->rows[i]);
	table_omit_empty(t);
	return t;
}

json_t *reqprint_single_json(const struct reqsingle *r)
{
	json_t *o = json_pack("{s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "time",
			      (double)r->at_ns / 1e9, "side", json_text(r->side), "container",
			      json_text(r->container), "comm", json_text(r->comm), "protocol",
			      json_text(r->protocol), "service", json_text(r->service), "operation",
			      json_text(r->operation), "status", json_text(r->status), "result",
			      json_text(r->result), "why", json_text(r->why));

	json_object_set_new(o, "pid", r->pid ? json_integer(r->pid) : json_null());
	json_object_set_new(o, "tid", r->tid ? json_integer(r->tid) : json_null());
	json_object_set_new(o, "first_us",
			    r->first_us >= 0 ? json_integer(r->first_us) : json_null());
	json_object_set_new(o, "total_us",
			    r->total_us >= 0 ? json_integer(r->total_us) : json_null());
	json_object_set_new(o, "weight", json_integer((json_int_t)r->weight));
	json_object_set_new(o, "request_bytes", json_integer((json_int_t)r->request_bytes));
	json_object_set_new(o, "response_bytes", json_integer((json_int_t)r->response_bytes));
	json_object_set_new(o, "trace", *r->trace ? json_text(r->trace) : json_null());
	return o;
}
