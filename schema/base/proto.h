/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto: writing protocol buffers, as far as pprof and OTLP need them: varints, eight bytes, and
 * length-delimited fields. Writing only; docs/decisions/0060 says why there is no library here.
 *
 * The wire format (protobuf.dev, "Encoding"): a message is a sequence of fields, each a varint tag
 * (number << 3 | type) and a value. Type 0 is a varint, seven bits a byte, low ones first, the top
 * bit set on all but the last; a negative int64 is its two's complement. Type 1 is eight bytes, low
 * ones first. Type 2 is a varint length and that many bytes: strings, messages within messages, and
 * packed repeated numbers. A field that is zero or empty may be left out.
 */
#ifndef SONDE_BASE_PROTO_H
#define SONDE_BASE_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/cursor.h"
#include "schema/base/strbuf.h"

/* A bare varint: an element of a packed field. */
void proto_varint(struct strbuf *s, uint64_t v);
/* A number; left out if it is 0. */
void proto_uint(struct strbuf *s, unsigned field, uint64_t v);
/* Eight bytes, written even if they are 0: fixed64, sfixed64; a double's. And bare, as elements of
 * a packed field. */
void proto_fixed64(struct strbuf *s, unsigned field, uint64_t v);
void proto_double(struct strbuf *s, unsigned field, double v);
void proto_eight(struct strbuf *s, uint64_t v);
/* A string, a message or a packed field; written even if it is empty. */
void proto_bytes(struct strbuf *s, unsigned field, const void *data, size_t len);

/* One field of an untrusted message. */
struct proto_field {
	uint32_t number;
	unsigned type;    /* 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes */
	uint64_t value;   /* of types 0, 1 and 5 */
	const void *data; /* of type 2: borrowed from the message */
	size_t len;
};
/* False at the end, or if the bytes are not a message: then the cursor is bad. */
bool proto_next(struct cursor *c, struct proto_field *f);
/* A bare varint; bad if it is longer than ten bytes. */
uint64_t proto_read_varint(struct cursor *c);
/* The next element of a repeated number, which may come packed or not: `left` starts as that
 * field's bytes. */
bool proto_next_number(const struct proto_field *f, struct cursor *left, bool *started,
		       uint64_t *v);

#endif
