/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstream: a zlib stream (RFC 1950) of several parts, each deflated separately, so that two threads
 * can work on them and a part that is ready first need not wait for those before it.
 */
#ifndef SONDE_TOOLS_ZSTREAM_H
#define SONDE_TOOLS_ZSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zstream_like {
	ZSTREAM_TEXT,    /* words come again anywhere */
	ZSTREAM_COLUMNS, /* small numbers, mostly the one before again: half the time for a tenth
			    more bytes, or fewer */
};

struct zstream_part {
	const void *data; /* what the caller says: these, and which is the last one */
	size_t len;
	enum zstream_like like;
	bool last;
	uint8_t *out; /* what was made of it */
	size_t made;
	uint32_t adler;
	int ret;
};

/* Level 1. Errors are said by zstream_join. */
void zstream_deflate(struct zstream_part *p);
/* All parts, which were deflated, in order; it frees what they hold. *out is the caller's (free).
 * 0, -ENOMEM, or -EFBIG for a part beyond 1 GB. */
int zstream_join(struct zstream_part *parts, size_t n, uint8_t **out, size_t *out_len);

#endif
