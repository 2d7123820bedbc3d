/* SPDX-License-Identifier: Apache-2.0 */
/* otlpspanname: see the header. Operations are those of loaders/lib/protocols: METHOD HOST/ROUTE,
 * COMMAND WHAT, a statement. */
#include "export/push/otlp/otlpspanname.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/otlp/otlpwrite.h"
#include "schema/base/array.h"

enum form { FORM_OTHER, FORM_HTTP, FORM_DATABASE, FORM_MESSAGING, FORM_RPC, FORM_DNS };

static const struct known {
	const char *protocol;
	enum form form;
	const char *system; /* as the conventions call it */
} KNOWN[] = {
	{"http", FORM_HTTP, "http"},
	{"http2", FORM_HTTP, "http"},
	{"fastcgi", FORM_HTTP, "fastcgi"},
	{"websocket", FORM_OTHER, "websocket"},
	{"postgres", FORM_DATABASE, "postgresql"},
	{"mysql", FORM_DATABASE, "mysql"},
	{"redis", FORM_DATABASE, "redis"},
	{"mongodb", FORM_DATABASE, "mongodb"},
	{"memcached", FORM_DATABASE, "memcached"},
	{"cassandra", FORM_DATABASE, "cassandra"},
	{"clickhouse", FORM_DATABASE, "clickhouse"},
	{"foundationdb", FORM_DATABASE, "foundationdb"},
	{"kafka", FORM_MESSAGING, "kafka"},
	{"amqp", FORM_MESSAGING, "rabbitmq"},
	{"mqtt", FORM_MESSAGING, "mqtt"},
	{"nats", FORM_MESSAGING, "nats"},
	{"dubbo", FORM_RPC, "dubbo"},
	{"dns", FORM_DNS, "dns"},
};

static const struct known *known_of(const char *protocol)
{
	for (size_t i = 0; i < ARRAY_SIZE(KNOWN); i++)
		if (!strcmp(KNOWN[i].protocol, protocol))
			return &KNOWN[i];
	return NULL;
}

bool otlp_span_failed(const struct otlp_span *s)
{
	return !strcmp(s->result, "error") || !strcmp(s->result, "no-answer");
}

static void text_n(struct strbuf *out, unsigned field, const char *key, const char *value, size_t n)
{
	struct strbuf v cleanup_strbuf = STRBUF_INIT;

	strbuf_add(&v, value, n);
	otlp_text(out, field, key, strbuf_str(&v));
}

static bool is_number(const char *s)
{
	return *s && strlen(s) < 10 && !s[strspn(s, "0123456789")];
}

/* HOST/ROUTE: it never contains an address (route.h), so the part before the first / is a name. */
static void http_add(struct strbuf *out, unsigned field, const struct otlp_span *s,
		     const struct known *k)
{
	size_t method = strcspn(s->operation, " ");
	const char *target = s->operation + method + (s->operation[method] == ' '),
		   *route = strchr(target, '/');

	text_n(out, field, "http.request.method", s->operation, method);
	otlp_text(out, field, s->server ? "http.route" : "url.template", route);
	if (route && route > target)
		text_n(out, field, "sonde.http.host", target, (size_t)(route - target));
	if (is_number(s->status))
		otlp_int(out, field, "http.response.status_code", atoi(s->status));
	otlp_text(out, field, "network.protocol.name", k->system);
	if (!strcmp(s->protocol, "http2"))
		otlp_text(out, field, "network.protocol.version", "2");
}

/* GRPC HOST/PACKAGE.SERVICE/METHOD; SERVICE/METHOD of Dubbo. */
static void rpc_add(struct strbuf *out, unsigned field, const struct otlp_span *s,
		    const char *system)
{
	const char *what = !strncmp(s->operation, "GRPC ", 5) ? s->operation + 5 : s->operation,
		   *method = strchr(what, '/');

	otlp_text(out, field, "rpc.system.name", system);
	if (method && what != s->operation)
		what = method + 1;
	otlp_text(out, field, "rpc.method", what);
	otlp_text(out, field, "rpc.response.status_code", s->status);
}

static void database_add(struct strbuf *out, unsigned field, const struct otlp_span *s,
			 const struct known *k)
{
	otlp_text(out, field, "db.system.name", k->system);
	text_n(out, field, "db.operation.name", s->operation, strcspn(s->operation, " "));
	otlp_text(out, field, "db.query.summary", s->operation);
	otlp_text(out, field, "db.response.status_code", s->status);
}

static void messaging_add(struct strbuf *out, unsigned field, const struct otlp_span *s,
			  const struct known *k)
{
	size_t n = strcspn(s->operation, " ");

	otlp_text(out, field, "messaging.system", k->system);
	text_n(out, field, "messaging.operation.name", s->operation, n);
	otlp_text(out, field, "messaging.destination.name",
		  s->operation[n] ? s->operation + n + 1 : "");
}

static void form_add(struct strbuf *out, unsigned field, const struct otlp_span *s)
{
	const struct known *k = known_of(s->protocol);
	const char *space = strchr(s->operation, ' ');

	if (!k)
		return;
	switch (k->form) {
	case FORM_HTTP:
		if (strncmp(s->operation, "GRPC", 4))
			http_add(out, field, s, k);
		else
			rpc_add(out, field, s, "grpc");
		break;
	case FORM_DATABASE:
		database_add(out, field, s, k);
		break;
	case FORM_MESSAGING:
		messaging_add(out, field, s, k);
		break;
	case FORM_RPC:
		rpc_add(out, field, s, k->system);
		break;
	case FORM_DNS:
		otlp_text(out, field, "dns.question.name", space ? space + 1 : "");
		break;
	case FORM_OTHER:
		break;
	}
	if (k->form != FORM_HTTP)
		otlp_text(out, field, "network.protocol.name", s->protocol);
}

/* ADDRESS:PORT, [ADDRESS]:PORT, or the path of a Unix socket. */
static void service_add(struct strbuf *out, unsigned field, const char *service)
{
	const char *colon = strrchr(service, ':');
	bool six = *service == '[' && colon && colon > service && colon[-1] == ']';

	if (!colon || !is_number(colon + 1) || (!six && *service == '[')) {
		otlp_text(out, field, "server.address", service);
		return;
	}
	text_n(out, field, "server.address", service + six, (size_t)(colon - service) - 2 * six);
	otlp_int(out, field, "server.port", atoi(colon + 1));
}

void otlp_span_attributes(struct strbuf *out, unsigned field, const struct otlp_span *s)
{
	form_add(out, field, s);
	service_add(out, field, s->service);
	if (otlp_span_failed(s))
		otlp_text(out, field, "error.type",
			  !strcmp(s->result, "error") && *s->status ? s->status : s->result);
	otlp_text(out, field, "sonde.protocol", s->protocol);
	otlp_text(out, field, "sonde.operation", s->operation);
	otlp_text(out, field, "sonde.status", s->status);
	otlp_text(out, field, "sonde.result", s->result);
}

static int digit(char c)
{
	return isdigit((unsigned char)c)  ? c - '0' :
	       isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10 :
					    -1;
}

static bool is_uuid(const char *s)
{
	return strlen(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-';
}

bool otlp_trace_id(const char *text, uint8_t out[OTLP_TRACE_BYTES])
{
	size_t len = strlen(text), at = 2 * OTLP_TRACE_BYTES;
	uint8_t id[OTLP_TRACE_BYTES] = {0}, any = 0;
	bool uuid = is_uuid(text);

	if (!len || (len > at && !uuid))
		return false;
	for (size_t i = len; i--;) {
		int d = digit(text[i]);

		if (uuid && (i == 8 || i == 13 || i == 18 || i == 23))
			continue;
		if (d < 0 || !at)
			return false;
		at--;
		id[at / 2] |= (uint8_t)(at & 1 ? d : d << 4);
		any |= (uint8_t)d;
	}
	if (!any)
		return false;
	memcpy(out, id, sizeof(id));
	return true;
}
