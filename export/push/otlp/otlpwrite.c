/* SPDX-License-Identifier: Apache-2.0 */
/* otlpwrite: see the header. Field numbers are those of opentelemetry-proto 1.0: common, resource,
 * metrics, logs, which have these in common. */
#include "export/push/otlp/otlpwrite.h"

#include <stdio.h>
#include <string.h>

#include "export/push/batch.h"
#include "export/push/pack.h"
#include "schema/base/proto.h"
#include "schema/base/version.h"

enum {
	REQUEST_RESOURCES = 1,
	OF_RESOURCE = 1,
	OF_SCOPES = 2,
	SCOPE = 1,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	RESOURCE_ATTRIBUTES = 1
};
enum { KEY = 1, VALUE = 2, VALUE_TEXT = 1, VALUE_INT = 3 };

static void pair(struct strbuf *out, unsigned field, const char *key, const struct strbuf *value)
{
	struct strbuf kv cleanup_strbuf = STRBUF_INIT;

	proto_bytes(&kv, KEY, key, strlen(key));
	proto_bytes(&kv, VALUE, value->buf, value->len);
	proto_bytes(out, field, kv.buf, kv.len);
}

void otlp_text(struct strbuf *out, unsigned field, const char *key, const char *value)
{
	struct strbuf v cleanup_strbuf = STRBUF_INIT;

	if (!value || !*value)
		return;
	proto_bytes(&v, VALUE_TEXT, value, strlen(value));
	pair(out, field, key, &v);
}

void otlp_int(struct strbuf *out, unsigned field, const char *key, int64_t value)
{
	struct strbuf v cleanup_strbuf = STRBUF_INIT;

	proto_varint(&v, VALUE_INT << 3); /* a 0 is written, too: one of the values must be there */
	proto_varint(&v, (uint64_t)value);
	pair(out, field, key, &v);
}

void otlp_resource_put(struct otlp_request *r, const struct strbuf *attributes,
		       const struct strbuf *items, size_t n)
{
	struct strbuf scope cleanup_strbuf = STRBUF_INIT, scoped cleanup_strbuf = STRBUF_INIT,
			    all cleanup_strbuf = STRBUF_INIT;

	proto_bytes(&scope, SCOPE_NAME, "sonde", 5);
	proto_bytes(&scope, SCOPE_VERSION, SONDE_VERSION, strlen(SONDE_VERSION));
	proto_bytes(&scoped, SCOPE, scope.buf, scope.len);
	strbuf_add(&scoped, items->buf, items->len);
	proto_bytes(&all, OF_RESOURCE, attributes->buf, attributes->len);
	proto_bytes(&all, OF_SCOPES, scoped.buf, scoped.len);
	proto_bytes(&r->body, REQUEST_RESOURCES, all.buf, all.len);
	r->n += n;
}

int otlp_resource(struct otlp_request *r, const struct strbuf *attributes,
		  const struct strbuf *items, size_t n, struct err *e)
{
	otlp_resource_put(r, attributes, items, n);
	return r->body.len >= BATCH_BYTES ? otlp_flush(r, e) : 0;
}

int otlp_flush(struct otlp_request *r, struct err *e)
{
	struct strbuf packed cleanup_strbuf = STRBUF_INIT;
	char path[192];
	int rc = 0;

	if (!r->n)
		return 0;
	snprintf(path, sizeof(path), "%s%s", r->target->path, r->path);
	if (!r->target->plain)
		rc = pack(&r->body, &packed, e);
	if (!rc)
		rc = r->target->plain ? r->take(r->ctx, path, r->body.buf, r->body.len, r->n, e) :
					r->take(r->ctx, path, packed.buf, packed.len, r->n, e);
	r->n = 0;
	strbuf_reset(&r->body);
	return rc;
}

void otlp_release(struct otlp_request *r)
{
	strbuf_release(&r->body);
}
