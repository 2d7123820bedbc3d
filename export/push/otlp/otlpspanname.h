/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlpspanname: what a request is called in OpenTelemetry, by its semantic conventions for HTTP,
 * databases, messaging, RPC and DNS spans. What these have no name for is under sonde.*. Pure.
 *
 *   http, http2, fastcgi   http.request.method, http.route (of a server) or url.template (of a
 *                          client), http.response.status_code
 *   GRPC of http2, dubbo   rpc.system.name, rpc.method, rpc.response.status_code
 *   databases              db.system.name, db.operation.name, db.query.summary,
 *                          db.response.status_code
 *   kafka, amqp, mqtt, nats  messaging.system, messaging.operation.name, messaging.destination.name
 *   dns                    dns.question.name
 *   all                    server.address, server.port, network.protocol.name, error.type,
 *                          sonde.operation, sonde.status
 */
#ifndef SONDE_PUSH_OTLPSPANNAME_H
#define SONDE_PUSH_OTLPSPANNAME_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

#define OTLP_TRACE_BYTES 16

struct otlp_span { /* strings are never NULL */
	const char *protocol, *service, *operation, *status, *result;
	bool server;
};

/* Did it fail, or get no answer? All verbs count that as an error. */
bool otlp_span_failed(const struct otlp_span *s);
/* Its attributes, each as field `field`. The span's name is the operation or, without one, the
 * protocol. */
void otlp_span_attributes(struct strbuf *out, unsigned field, const struct otlp_span *s);
/* A header's trace id: up to 32 hexadecimal digits, perhaps as a UUID, padded with 0 in front.
 * false: all 0, or not an id. */
bool otlp_trace_id(const char *text, uint8_t out[OTLP_TRACE_BYTES]);

#endif
