/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/reqprint.h"

#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/when.h"

/* "web (nginx)", "nginx", "-". */
static void row_name(struct row *o, const char *container, const char *comm)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT;

	if (*container && *comm)
		strbuf_addf(&name, "%s (%s)", container, comm);
	else
		strbuf_addstr(&name, *container ? container : comm);
	row_text(o, "NAME", TABLE_MIDDLE, NULL, strbuf_str(&name));
	row_word(o, NULL, TABLE_LEFT, "container", container);
	row_word(o, NULL, TABLE_LEFT, "comm", comm);
}

/* ---- sums ---- */

/* As the view requests has it: [step, how many, how many in the next step, ...]. */
static json_t *spread_json(const struct hist *h)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	if (!hist_encode(h, HIST_FINE, &text))
		return json_null();
	return json_loads(strbuf_str(&text), 0, NULL);
}

static json_t *latency_json(const struct reqrows_row *r)
{
	if (!r->answered)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o*}", "mean_ns",
			 (json_int_t)(r->total_ns / r->answered), "p50_ns",
			 (json_int_t)reqrows_quantile(r, 0.5), "p95_ns",
			 (json_int_t)reqrows_quantile(r, 0.95), "p99_ns",
			 (json_int_t)reqrows_quantile(r, 0.99), "max_ns", (json_int_t)r->max_ns,
			 "hist", spread_json(&r->latency));
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

static void row_rate(struct row *o, const struct reqrows *all, const struct reqrows_row *r)
{
	const double rate = all->seconds > 0 ? (double)r->requests / all->seconds : 0;
	char text[UNITS_MAX];

	if (rate >= 100)
		units_count((uint64_t)(rate + 0.5), text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%.3g", rate);
	row_cell(o, "/S", TABLE_SPARE_RIGHT, all->seconds > 0 ? text : NULL);
	row_json(o, "per_second", all->seconds > 0 ? json_real(rate) : json_null());
}

static void sum_row(struct row *o, const struct reqrows *all, const struct reqrows_row *r)
{
	row_word(o, "SIDE", TABLE_LEFT, "side", r->side);
	row_name(o, r->container, r->comm);
	row_number(o, "PID", TABLE_SPARE_RIGHT, "pid", r->pid, r->pid);
	row_word(o, "PROTOCOL", TABLE_SPARE, "protocol", r->protocol);
	row_word(o, "SERVICE", TABLE_SPARE, "service", r->service);
	row_word(o, "OPERATION", TABLE_TEXT, "operation", r->operation);
	row_word(o, "STATUS", TABLE_SPARE, "status", r->status);
	row_count(o, "N", TABLE_RIGHT, "requests", r->requests, true);
	row_rate(o, all, r);
	row_count(o, "ERRORS", TABLE_RIGHT, "errors", r->errors, true);
	row_ns(o, "P50", TABLE_RIGHT, NULL, (int64_t)reqrows_quantile(r, 0.5), r->answered);
	row_ns(o, "P95", TABLE_SPARE_RIGHT, NULL, (int64_t)reqrows_quantile(r, 0.95), r->answered);
	row_ns(o, "P99", TABLE_RIGHT, NULL, (int64_t)reqrows_quantile(r, 0.99), r->answered);
	row_ns(o, "MAX", TABLE_SPARE_RIGHT, NULL, (int64_t)r->max_ns, r->answered);
	row_json(o, "latency", latency_json(r));
	row_ns(o, "FIRST P99", TABLE_SPARE_RIGHT, NULL,
	       (int64_t)reqrows_part_quantile(&r->first, 0.99), r->first.n);
	row_json(o, "first_byte", part_json(&r->first));
	row_ns(o, "QUEUE P99", TABLE_SPARE_RIGHT, NULL,
	       (int64_t)reqrows_part_quantile(&r->queue, 0.99), r->queue.n);
	row_json(o, "queue", part_json(&r->queue));
	row_count(o, "BLIND", TABLE_SPARE_RIGHT, "blind", r->blind, true);
	row_bytes(o, NULL, TABLE_RIGHT, "request_bytes", r->request_bytes, true);
	row_bytes(o, NULL, TABLE_RIGHT, "response_bytes", r->response_bytes, true);
	if (r->errors)
		row_color(o, TERM_YELLOW);
	row_end(o);
}

struct table *reqprint_rows(const struct reqrows *r, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		sum_row(&o, r, &r->rows[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *reqprint_row_json(const struct reqrows *all, const struct reqrows_row *r)
{
	struct row o = row_of_json();

	sum_row(&o, all, r);
	return o.json;
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
		units_bytes(r->seen, seen, sizeof(seen)),
		units_bytes(r->parsed, parsed, sizeof(parsed)),
		units_bytes(r->skipped, skipped, sizeof(skipped)),
		units_bytes(r->blind, blind, sizeof(blind)));
	if (r->blind_requests)
		fprintf(out, "; the outcome of %llu request%s is unknown",
			(unsigned long long)r->blind_requests, r->blind_requests == 1 ? "" : "s");
	fprintf(out, "\n");
}

/* ---- single ones ---- */

static void single_row(struct row *o, const struct reqsingle *r)
{
	char when[40];

	row_cell(o, "WHEN", TABLE_LEFT, when_local(r->at_ns, clock_utc_ns(), when, sizeof(when)));
	row_json(o, "time", json_real((double)r->at_ns / 1e9));
	row_time(o, "at", r->at_ns);
	row_word(o, "SIDE", TABLE_LEFT, "side", r->side);
	row_name(o, r->container, r->comm);
	row_number(o, "PID", TABLE_SPARE_RIGHT, "pid", r->pid, r->pid);
	row_number(o, NULL, TABLE_RIGHT, "tid", r->tid, r->tid);
	row_word(o, "PROTOCOL", TABLE_SPARE, "protocol", r->protocol);
	row_word(o, "SERVICE", TABLE_SPARE, "service", r->service);
	row_word(o, "OPERATION", TABLE_TEXT, "operation", r->operation);
	row_word(o, "STATUS", TABLE_SPARE, "status", r->status);
	row_word(o, "RESULT", TABLE_SPARE, "result", r->result);
	row_us(o, "FIRST BYTE", TABLE_SPARE_RIGHT, "first_us", r->first_us, r->first_us >= 0);
	row_us(o, "WHOLE", TABLE_RIGHT, "total_us", r->total_us, r->total_us >= 0);
	row_word(o, "KEPT AS", TABLE_LEFT, "why", r->why);
	row_number(o, "WEIGHT", TABLE_SPARE_RIGHT, "weight", (int64_t)r->weight, true);
	row_bytes(o, NULL, TABLE_RIGHT, "request_bytes", r->request_bytes, true);
	row_bytes(o, NULL, TABLE_RIGHT, "response_bytes", r->response_bytes, true);
	row_json(o, "stream", json_boolean(r->stream));
	row_text(o, "TRACE", TABLE_SPARE, "trace", r->trace);
	row_end(o);
}

struct table *reqprint_singles(const struct reqsingles *r, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		single_row(&o, &r->rows[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *reqprint_single_json(const struct reqsingle *r)
{
	struct row o = row_of_json();

	single_row(&o, r);
	return o.json;
}
