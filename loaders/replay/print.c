/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/replay/print.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "schema/base/units.h"

static void end_name(const struct packet_end *end, bool v6, char out[TALLY_SERVICE_MAX])
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(v6 ? AF_INET6 : AF_INET, end->address, text, sizeof(text));
	snprintf(out, TALLY_SERVICE_MAX, v6 ? "[%s]:%u" : "%s:%u", text, end->port);
}

void print_service(const struct flow_ends *ends, char out[TALLY_SERVICE_MAX])
{
	end_name(&ends->server, ends->v6, out);
}

void print_client(const struct flow_ends *ends, char out[TALLY_SERVICE_MAX])
{
	end_name(&ends->client, ends->v6, out);
}

static const char *quantile(const struct tally_row *r, double q, char buf[UNITS_MAX])
{
	return r->n_latencies ? units_ns((int64_t)tally_quantile(r, q), buf, UNITS_MAX) : "-";
}

static int width_of(struct tally_row **rows, size_t n, bool service)
{
	size_t most = service ? strlen("service") : strlen("protocol");

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(service ? rows[i]->service : rows[i]->protocol);

		most = len > most ? len : most;
	}
	return (int)most;
}

void print_table(FILE *f, struct tally_row **rows, size_t n, size_t most)
{
	size_t shown = most && most < n ? most : n;
	int wp = width_of(rows, shown, false), ws = width_of(rows, shown, true);

	fprintf(f, "%-*s  %-*s  %9s %8s %8s %9s %9s %9s  %s\n", wp, "protocol", ws, "service",
		"count", "errors", "unknown", "p50", "p95", "p99", "operation");
	for (size_t i = 0; i < shown; i++) {
		const struct tally_row *r = rows[i];
		struct strbuf op cleanup_strbuf = STRBUF_INIT;
		char p50[UNITS_MAX], p95[UNITS_MAX], p99[UNITS_MAX];

		strbuf_addshown(&op, r->operation, strlen(r->operation));
		fprintf(f, "%-*s  %-*s  %9llu %8llu %8llu %9s %9s %9s  %s\n", wp, r->protocol, ws,
			r->service, (unsigned long long)r->count,
			(unsigned long long)(r->by_result[PROTO_ERROR] +
					     r->by_result[PROTO_NO_ANSWER]),
			(unsigned long long)r->by_result[PROTO_BLIND], quantile(r, 0.5, p50),
			quantile(r, 0.95, p95), quantile(r, 0.99, p99), strbuf_str(&op));
	}
	if (shown < n)
		fprintf(f, "and %zu more: --all shows them\n", n - shown);
}

static json_t *text_value(const char *text)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	strbuf_addutf8(&s, text, strlen(text));
	return json_string(strbuf_str(&s));
}

static json_t *number(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *quantile_json(const struct tally_row *r, double q)
{
	return r->n_latencies ? number(tally_quantile(r, q)) : json_null();
}

static json_t *row_json(const struct tally_row *r)
{
	json_t *o = json_object(), *statuses = json_object();

	json_object_set_new(o, "protocol", json_string(r->protocol));
	json_object_set_new(o, "service", json_string(r->service));
	json_object_set_new(o, "operation", text_value(r->operation));
	json_object_set_new(o, "count", number(r->count));
	json_object_set_new(o, "ok", number(r->by_result[PROTO_OK]));
	json_object_set_new(o, "errors", number(r->by_result[PROTO_ERROR]));
	json_object_set_new(o, "one_way", number(r->by_result[PROTO_ONE_WAY]));
	json_object_set_new(o, "opened", number(r->by_result[PROTO_OPENED]));
	json_object_set_new(o, "no_answer", number(r->by_result[PROTO_NO_ANSWER]));
	json_object_set_new(o, "blind", number(r->by_result[PROTO_BLIND]));
	json_object_set_new(o, "sum_ns", number(r->sum_ns));
	json_object_set_new(o, "p50_ns", quantile_json(r, 0.5));
	json_object_set_new(o, "p95_ns", quantile_json(r, 0.95));
	json_object_set_new(o, "p99_ns", quantile_json(r, 0.99));
	json_object_set_new(o, "max_ns", r->n_latencies ? number(r->max_ns) : json_null());
	json_object_set_new(o, "request_bytes", number(r->request_bytes));
	json_object_set_new(o, "response_bytes", number(r->response_bytes));
	for (size_t i = 0; i < r->n_statuses; i++)
		json_object_set_new(statuses, r->statuses[i].text, number(r->statuses[i].n));
	json_object_set_new(o, "statuses", statuses);
	return o;
}

void print_json(FILE *f, struct tally_row **rows, size_t n, const struct flows_stat *s)
{
	json_t *o = json_object(), *list = json_array(), *capture = json_object();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, row_json(rows[i]));
	json_object_set_new(o, "rows", list);
	json_object_set_new(capture, "packets", number(s->packets));
	json_object_set_new(capture, "other_packets", number(s->others));
	json_object_set_new(capture, "fragments", number(s->fragments));
	json_object_set_new(capture, "bytes", number(s->bytes));
	json_object_set_new(capture, "connections", number(s->connections));
	json_object_set_new(capture, "datagram_flows", number(s->datagram_flows));
	json_object_set_new(capture, "evicted", number(s->evicted));
	json_object_set_new(capture, "repeated_bytes", number(s->again_bytes));
	json_object_set_new(capture, "missing_bytes", number(s->missing_bytes));
	json_object_set_new(capture, "blind_bytes", number(s->blind_bytes));
	json_object_set_new(capture, "unknown_connections", number(s->unknown));
	json_object_set_new(capture, "unknown_bytes", number(s->unknown_bytes));
	json_object_set_new(capture, "unfinished", number(s->unfinished));
	json_object_set_new(o, "capture", capture);
	json_dumpf(o, f, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	fputc('\n', f);
	json_decref(o);
}

void print_loss(FILE *f, const struct flows_stat *s, uint64_t blind)
{
	if (s->missing_bytes)
		fprintf(f, "%llu bytes are not in the capture\n",
			(unsigned long long)s->missing_bytes);
	if (s->blind_bytes)
		fprintf(f,
			"%llu bytes could not be read: they are missing, come after a loss, are compressed, or of a kind that is not known here\n",
			(unsigned long long)s->blind_bytes);
	if (blind)
		fprintf(f, "what became of %llu requests is not known\n",
			(unsigned long long)blind);
	if (s->unknown)
		fprintf(f,
			"%llu connections (%llu bytes) speak a protocol that is not known here\n",
			(unsigned long long)s->unknown, (unsigned long long)s->unknown_bytes);
	if (s->unfinished)
		fprintf(f, "%llu requests had no answer yet when the capture ended\n",
			(unsigned long long)s->unfinished);
	if (s->fragments)
		fprintf(f, "%llu fragments of IP packets came without the rest\n",
			(unsigned long long)s->fragments);
}

static void request_json(FILE *f, const struct proto_request *r, const char *service,
			 const char *client)
{
	json_t *o = json_object();
	bool answered = r->result == PROTO_OK || r->result == PROTO_ERROR;

	json_object_set_new(o, "begin_ns", json_integer(r->begin_ns));
	json_object_set_new(o, "protocol", json_string(r->protocol));
	json_object_set_new(o, "service", json_string(service));
	json_object_set_new(o, "client", json_string(client));
	json_object_set_new(o, "operation", text_value(r->operation));
	json_object_set_new(o, "result", json_string(proto_result_name(r->result)));
	json_object_set_new(o, "status", text_value(r->status));
	json_object_set_new(o, "sent_ns", json_integer(r->sent_ns));
	json_object_set_new(o, "first_ns", r->first_ns ? json_integer(r->first_ns) : json_null());
	json_object_set_new(o, "end_ns", r->end_ns ? json_integer(r->end_ns) : json_null());
	json_object_set_new(o, "latency_ns",
			    answered ? json_integer(r->end_ns - r->begin_ns) : json_null());
	json_object_set_new(o, "request_bytes", number(r->request_bytes));
	json_object_set_new(o, "response_bytes", number(r->response_bytes));
	json_object_set_new(o, "trace", r->trace ? text_value(r->trace) : json_null());
	json_dumpf(o, f, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputc('\n', f);
	json_decref(o);
}

void print_request(FILE *f, const struct proto_request *r, const struct flow_ends *ends, bool json)
{
	struct strbuf op cleanup_strbuf = STRBUF_INIT;
	char service[TALLY_SERVICE_MAX], client[TALLY_SERVICE_MAX], at[40], took[UNITS_MAX];

	print_service(ends, service);
	print_client(ends, client);
	if (json) {
		request_json(f, r, service, client);
		return;
	}
	units_utc(r->begin_ns, 6, at, sizeof(at));
	strbuf_addshown(&op, r->operation, strlen(r->operation));
	fprintf(f, "%s %9s  %-9s %s -> %s  %s  %s%s%s\n", at,
		r->result == PROTO_OK || r->result == PROTO_ERROR ?
			units_ns(r->end_ns - r->begin_ns, took, sizeof(took)) :
			"-",
		r->protocol, client, service, strbuf_str(&op), proto_result_name(r->result),
		*r->status ? " " : "", r->status);
}
