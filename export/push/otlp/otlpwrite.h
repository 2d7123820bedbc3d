/* SPDX-License-Identifier: Apache-2.0 */
/* otlpwrite: what all requests of OTLP have: attributes, resources, scopes, and requests in pieces
 * of about BATCH_BYTES. */
#ifndef SONDE_PUSH_OTLPWRITE_H
#define SONDE_PUSH_OTLPWRITE_H

#include "export/push/otlp/otlp.h"
#include "schema/base/strbuf.h"

struct otlp_request {
	const char *path; /* "/v1/metrics" */
	const struct target *target;
	otlp_take *take;
	void *ctx;
	struct strbuf body;
	size_t n; /* items in it */
};

/* A KeyValue as field `field` of a message. Left out where the value is empty. */
void otlp_text(struct strbuf *out, unsigned field, const char *key, const char *value);
void otlp_int(struct strbuf *out, unsigned field, const char *key, int64_t value);
/* One Resource... with its one Scope...: `attributes` of the resource, and `n` encoded `items` of
 * the scope. */
int otlp_resource(struct otlp_request *r, const struct strbuf *attributes,
		  const struct strbuf *items, size_t n, struct err *e);
/* The same, and nothing is sent however large it has become. */
void otlp_resource_put(struct otlp_request *r, const struct strbuf *attributes,
		       const struct strbuf *items, size_t n);
/* What is not sent yet; and the memory. */
int otlp_flush(struct otlp_request *r, struct err *e);
void otlp_release(struct otlp_request *r);

#endif
