/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8string: V8's strings: characters of one byte (Latin-1) or two (UTF-16), stored in the object or
 * elsewhere (external); part of another string (sliced), an alias of another (thin), or two joined
 * (cons).
 */
#ifndef SONDE_RUNTIMES_V8STRING_H
#define SONDE_RUNTIMES_V8STRING_H

#include "loaders/lib/runtimes/v8/v8object.h"

/* Characters that lie in a row. */
struct v8_text {
	uint64_t at;
	uint32_t length;
	bool wide; /* of two bytes */
};

/* Those that a string leads to; false: none, or it is of two parts. */
bool v8_text_find(struct v8heap *h, uint64_t string, struct v8_text *t);
/* A string, or the parts of a joined one, as UTF-8; own. At most SCRIPT_TEXT_MAX characters, then
 * "...". NULL: not a string. */
char *v8_string_read(struct v8heap *h, uint64_t string);

/* The i-th of characters that were read. */
static inline uint32_t v8_char_at(const uint8_t *raw, size_t i, bool wide)
{
	return wide ? (uint32_t)raw[2 * i] | (uint32_t)raw[2 * i + 1] << 8 : raw[i];
}

#endif
