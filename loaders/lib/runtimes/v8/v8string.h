/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8string: V8's strings: characters of one byte (Latin-1) or two (UTF-16), in a row in the object
 * or elsewhere (external), a part of another (sliced), one that stands for another (thin), or two
 * put together (cons).
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
/* One string, or the parts of one that was put together, as UTF-8; own. At most SCRIPT_TEXT_MAX
 * characters, then "...". NULL: it is none. */
char *v8_string_read(struct v8heap *h, uint64_t string);

/* The i-th of characters that were read. */
static inline uint32_t v8_char_at(const uint8_t *raw, size_t i, bool wide)
{
	return wide ? (uint32_t)raw[2 * i] | (uint32_t)raw[2 * i + 1] << 8 : raw[i];
}

#endif
