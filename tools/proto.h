/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto: writing protocol buffers, as far as a pprof profile needs them: varints and length-delimited fields.
 * Writing only; docs/decisions/0060 says why there is no library here.
 *
 * The wire format (protobuf.dev, "Encoding"): a message is a sequence of fields, each a varint tag
 * (number << 3 | type) and a value. Type 0 is a varint, seven bits a byte, low ones first, the top bit set on all but
 * the last; a negative int64 is its two's complement. Type 2 is a varint length and that many bytes: strings, messages
 * within messages, and packed repeated numbers. A field that is zero or empty may be left out.
 */
#ifndef SONDE_TOOLS_PROTO_H
#define SONDE_TOOLS_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

/* A bare varint: an element of a packed field. */
void proto_varint(struct strbuf *s, uint64_t v);
/* A number; left out if it is 0. */
void proto_uint(struct strbuf *s, unsigned field, uint64_t v);
/* A string, a message or a packed field; written even if it is empty. */
void proto_bytes(struct strbuf *s, unsigned field, const void *data, size_t len);

#endif
