/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/runprint.h"

#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/when.h"

/* "web (php-fpm) 812"; where the process is not of this host, the address of its end. */
static void add_end(struct strbuf *out, const struct reqrun_end *end, const char *address)
{
	if (!end->comm) {
		strbuf_addstr(out, address);
		return;
	}
	if (*end->container)
		strbuf_addf(out, "%s (%s)", end->container, end->comm);
	else
		strbuf_addstr(out, end->comm);
	if (end->pid)
		strbuf_addf(out, " %lld", (long long)end->pid);
}

static json_t *end_json(const struct reqrun_end *end, const char *address)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "container",
			 end->comm ? json_text(end->container) : json_null(), "comm",
			 json_text_or_null(end->comm), "pid",
			 json_number_or_null(end->pid, end->pid), "tid",
			 json_number_or_null(end->tid, end->comm && end->tid), "address",
			 json_text_or_null(address));
}

static void run_row(struct row *o, const struct reqrun *r)
{
	struct strbuf client cleanup_strbuf = STRBUF_INIT, server cleanup_strbuf = STRBUF_INIT;
	char since[40];

	add_end(&client, &r->client, r->peer);
	add_end(&server, &r->server, r->service);
	row_cell(o, "SINCE", TABLE_LEFT,
		 when_local(r->at_ns, clock_utc_ns(), since, sizeof(since)));
	row_json(o, "since", json_real((double)r->at_ns / 1e9));
	row_json(o, "since_ns", json_integer(r->at_ns));
	row_time(o, "at", r->at_ns);
	row_ns(o, "RUNS FOR", TABLE_RIGHT, "lasts_ns", r->lasts_ns, true);
	row_text(o, "CLIENT", TABLE_MIDDLE, NULL, strbuf_str(&client));
	row_text(o, "SERVER", TABLE_MIDDLE, NULL, strbuf_str(&server));
	row_json(o, "client", end_json(&r->client, r->peer));
	row_json(o, "server", end_json(&r->server, r->service));
	row_word(o, "PROTOCOL", TABLE_SPARE, "protocol", r->protocol);
	row_word(o, "SERVICE", TABLE_SPARE, "service", r->service);
	row_word(o, "OPERATION", TABLE_TEXT, "operation", r->operation);
	row_text(o, "ITS THREAD", TABLE_MIDDLE, "doing", r->doing);
	row_text(o, NULL, TABLE_LEFT, "stack", r->stack);
	row_us(o, "FIRST BYTE", TABLE_SPARE_RIGHT, "first_us", r->first_us, r->first_us >= 0);
	row_bytes(o, NULL, TABLE_RIGHT, "request_bytes", r->request_bytes, true);
	row_bytes(o, NULL, TABLE_RIGHT, "response_bytes", r->response_bytes, true);
	row_json(o, "stream", json_boolean(r->stream));
	row_text(o, "TRACE", TABLE_SPARE, "trace", r->trace);
	row_end(o);
}

struct table *runprint_rows(const struct reqrunning *r, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		run_row(&o, &r->rows[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *runprint_row_json(const struct reqrun *r)
{
	struct row o = row_of_json();

	run_row(&o, r);
	return o.json;
}

json_t *runprint_rows_json(const struct reqrunning *r, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, runprint_row_json(&r->rows[i]));
	return list;
}

json_t *runprint_json(const struct reqrunning *r, size_t n)
{
	json_t *o = json_envelope("requests", r->at_ns, r->at_ns);

	json_object_set_new(o, "ended", json_boolean(r->ended));
	json_object_set_new(o, "running", json_integer((json_int_t)r->n));
	json_object_set_new(o, "streams", json_integer((json_int_t)r->streams));
	json_object_set_new(o, "others", json_integer((json_int_t)r->others));
	if (r->ended)
		json_warn(o,
			  "the recording ended then: what became of these requests is not known");
	if (r->streams)
		json_warn(o, "without %zu streams and long polls: --streams shows them",
			  r->streams);
	if (r->others)
		json_warn(o, "%llu more ran and are not listed: too many at a time",
			  (unsigned long long)r->others);
	json_object_set_new(o, "rows", runprint_rows_json(r, n));
	json_bound(o, r->n);
	return o;
}

void runprint_say(const struct reqrunning *r, struct strbuf *out)
{
	const struct reqrun *x = r->rows;
	struct strbuf server cleanup_strbuf = STRBUF_INIT;
	char time[UNITS_MAX];
	bool one = r->n + r->others == 1;

	if (!r->n)
		return;
	add_end(&server, &x->server, x->service);
	strbuf_addf(out,
		    "%llu request%s %s running%s, %s%s: ", (unsigned long long)(r->n + r->others),
		    one ? "" : "s",
		    r->ended ? one ? "was" : "were" :
		    one      ? "is" :
			       "are",
		    r->ended ? " when the recording ended" : "", one ? "for " : "the longest for ",
		    units_ns(x->lasts_ns, time, sizeof(time)));
	strbuf_addshown(out, x->operation, strlen(x->operation));
	strbuf_addstr(out, ", of ");
	strbuf_addshown(out, server.buf, server.len);
}
