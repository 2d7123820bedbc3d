/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/proto.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

void proto_varint(struct strbuf *s, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		v >>= 7;
	} while (v);
	strbuf_add(s, bytes, n);
}

void proto_uint(struct strbuf *s, unsigned field, uint64_t v)
{
	if (!v)
		return;
	proto_varint(s, (uint64_t)field << 3 | WIRE_VARINT);
	proto_varint(s, v);
}

void proto_bytes(struct strbuf *s, unsigned field, const void *data, size_t len)
{
	proto_varint(s, (uint64_t)field << 3 | WIRE_BYTES);
	proto_varint(s, len);
	strbuf_add(s, data, len);
}
