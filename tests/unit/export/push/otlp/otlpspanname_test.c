/* SPDX-License-Identifier: Apache-2.0 */
/* otlpspanname: what requests are called in OpenTelemetry, and which texts are the id of a trace.
 */
#include <stdio.h>
#include <string.h>

#include "export/push/otlp/otlpspanname.h"
#include "schema/base/array.h"
#include "schema/base/proto.h"
#include "tests/unit/test.h"

/* "key=value " of each attribute; but those under sonde.* that all have. */
static void said(const struct otlp_span *s, struct strbuf *out)
{
	struct strbuf raw cleanup_strbuf = STRBUF_INIT;
	struct proto_field pair, f, v;
	struct cursor all;

	otlp_span_attributes(&raw, 9, s);
	all = cursor_init(raw.buf, raw.len);
	while (proto_next(&all, &pair)) {
		struct cursor in = cursor_init(pair.data, pair.len), value;

		assert_true(proto_next(&in, &f) && f.number == 1);
		if (f.len > 6 && !memcmp(f.data, "sonde.", 6))
			continue;
		strbuf_addf(out, "%s%.*s=", out->len ? " " : "", (int)f.len, (const char *)f.data);
		assert_true(proto_next(&in, &f) && f.number == 2);
		value = cursor_init(f.data, f.len);
		assert_true(proto_next(&value, &v));
		if (v.number == 3)
			strbuf_addf(out, "%llu", (unsigned long long)v.value);
		else
			strbuf_addf(out, "%.*s", (int)v.len, (const char *)v.data);
	}
	assert_false(all.bad);
}

TEST(requests_have_the_attributes_of_the_conventions)
{
	static const struct {
		struct otlp_span s;
		const char *said;
	} cases[] = {
		{{"http", "10.0.0.5:80", "GET shop.example/cart/{id}", "200", "ok", true},
		 "http.request.method=GET http.route=/cart/{id} http.response.status_code=200 network.protocol.name=http server.address=10.0.0.5 server.port=80"},
		{{"http2", "[::1]:443", "POST /x", "503", "error", false},
		 "http.request.method=POST url.template=/x http.response.status_code=503 network.protocol.name=http network.protocol.version=2 server.address=::1 server.port=443 error.type=503"},
		{{"http2", "10.0.0.5:80", "GRPC shop/pkg.Cart/Add", "NOT_FOUND", "error", true},
		 "rpc.system.name=grpc rpc.method=pkg.Cart/Add rpc.response.status_code=NOT_FOUND server.address=10.0.0.5 server.port=80 error.type=NOT_FOUND"},
		{{"postgres", "10.0.0.5:5432", "SELECT FROM carts", "42P01", "error", false},
		 "db.system.name=postgresql db.operation.name=SELECT db.query.summary=SELECT FROM carts db.response.status_code=42P01 network.protocol.name=postgres server.address=10.0.0.5 server.port=5432 "
		 "error.type=42P01"},
		{{"redis", "/run/redis.sock", "GET", "", "no-answer", false},
		 "db.system.name=redis db.operation.name=GET db.query.summary=GET network.protocol.name=redis server.address=/run/redis.sock error.type=no-answer"},
		{{"kafka", "10.0.0.5:9092", "PRODUCE orders", "", "ok", false},
		 "messaging.system=kafka messaging.operation.name=PRODUCE messaging.destination.name=orders network.protocol.name=kafka server.address=10.0.0.5 server.port=9092"},
		{{"dns", "10.0.0.2:53", "A example.com", "NOERROR", "ok", false},
		 "dns.question.name=example.com network.protocol.name=dns server.address=10.0.0.2 server.port=53"},
		{{"own", "", "", "", "ok", false}, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf out cleanup_strbuf = STRBUF_INIT;

		said(&cases[i].s, &out);
		assert_string_equal(strbuf_str(&out), cases[i].said);
	}
}

TEST(a_trace_is_up_to_32_digits_or_a_uuid_and_never_zero)
{
	static const struct {
		const char *text, *id; /* NULL: none */
	} cases[] = {
		{"4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"4BF92F3577B34DA6A3CE929D0E0E4736", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"463ac35c9f6413ad", "0000000000000000463ac35c9f6413ad"},
		{"abc", "00000000000000000000000000000abc"},
		{"", NULL},
		{"0", NULL},
		{"00000000000000000000000000000000", NULL},
		{"xyz", NULL},
		{"4bf92f3577b34da6a3ce929d0e0e47361", NULL},
		{"4bf92f35-77b3-4da6-a3ce-929d0e0e473g", NULL},
		{"4bf92f35-77b3-4da6-a3ce-929d-e0e4736", NULL},
		{"a-b", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t id[OTLP_TRACE_BYTES];
		char hex[2 * OTLP_TRACE_BYTES + 1] = "";

		assert_int_equal(otlp_trace_id(cases[i].text, id), cases[i].id != NULL);
		for (size_t k = 0; cases[i].id && k < sizeof(id); k++)
			snprintf(hex + 2 * k, 3, "%02x", id[k]);
		if (cases[i].id)
			assert_string_equal(hex, cases[i].id);
	}
}
