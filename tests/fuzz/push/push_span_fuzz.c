/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: export/push/otlp/otlpspanname.c
 *
 * Texts parted by NUL bytes as a request's protocol, service, operation, status and result, and as
 * the trace of a header: attributes are a message whose fields are all of the one number, and a
 * trace's id is never all 0.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/otlp/otlpspanname.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t none[OTLP_TRACE_BYTES];
	char *text = mem_strndup((const char *)data, size), *all = mem_alloc(size + 7);
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	const char *parts[5], *at = all;
	uint8_t id[OTLP_TRACE_BYTES];
	struct proto_field f;
	struct cursor c;

	memcpy(all, data, size);
	memset(all + size, 0, 7);
	for (size_t i = 0; i < 5; i++) {
		parts[i] = at;
		at += at < all + size ? strlen(at) + 1 : 0;
	}
	otlp_span_attributes(&out, 9,
			     &(struct otlp_span){parts[0], parts[1], parts[2], parts[3], parts[4],
						 .server = size & 1});
	c = cursor_init(out.buf, out.len);
	while (proto_next(&c, &f))
		if (f.number != 9 || f.type != 2)
			abort();
	if (c.bad || (otlp_trace_id(text, id) && !memcmp(id, none, sizeof(id))))
		abort();
	free(text);
	free(all);
	return 0;
}
