/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/proto.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_EIGHT = 1, WIRE_BYTES = 2 };

void proto_varint(struct strbuf *s, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	if (v < 0x80 && s->cap - s->len > 1) { /* most of them */
		s->buf[s->len++] = (char)v;
		s->buf[s->len] = '\0';
		return;
	}
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

void proto_eight(struct strbuf *s, uint64_t v)
{
	char bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(v >> 8 * i);
	strbuf_add(s, bytes, sizeof(bytes));
}

void proto_fixed64(struct strbuf *s, unsigned field, uint64_t v)
{
	proto_varint(s, (uint64_t)field << 3 | WIRE_EIGHT);
	proto_eight(s, v);
}

void proto_double(struct strbuf *s, unsigned field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	proto_fixed64(s, field, bits);
}

void proto_bytes(struct strbuf *s, unsigned field, const void *data, size_t len)
{
	proto_varint(s, (uint64_t)field << 3 | WIRE_BYTES);
	proto_varint(s, len);
	strbuf_add(s, data, len);
}

/* --- reading --- */

uint64_t proto_read_varint(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cursor_u8(c);

		if (c->bad)
			return 0;
		v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

bool proto_next(struct cursor *c, struct proto_field *f)
{
	uint64_t tag;

	if (!cursor_left(c))
		return false;
	tag = proto_read_varint(c);
	*f = (struct proto_field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
	if (tag >> 3 == 0 || tag >> 32)
		c->bad = true;
	switch (f->type) {
	case 0:
		f->value = proto_read_varint(c);
		break;
	case 1:
		f->value = cursor_u64(c);
		break;
	case 2:
		f->value = proto_read_varint(c);
		f->len = f->value <= cursor_left(c) ? (size_t)f->value : SIZE_MAX;
		f->data = cursor_bytes(c, f->len);
		break;
	case 5:
		f->value = cursor_u32(c);
		break;
	default: /* groups: obsolete */
		c->bad = true;
	}
	return !c->bad;
}

bool proto_next_number(const struct proto_field *f, struct cursor *left, bool *started, uint64_t *v)
{
	if (f->type == 0) {
		*v = f->value;
		return !*started && (*started = true);
	}
	if (f->type != 2)
		return false;
	if (!*started)
		*left = cursor_init(f->data, f->len);
	*started = true;
	if (!cursor_left(left))
		return false;
	*v = proto_read_varint(left);
	return !left->bad;
}
