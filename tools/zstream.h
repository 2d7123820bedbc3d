/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstream: a zlib stream (RFC 1950) of what is large, made by two threads: each deflates a half, the second with the end of
 * the first as its dictionary, so that it is hardly longer for it.
 */
#ifndef SONDE_TOOLS_ZSTREAM_H
#define SONDE_TOOLS_ZSTREAM_H

#include <stddef.h>
#include <stdint.h>

/* *out is the caller's (free). 0, -ENOMEM, or -EFBIG beyond 2 GB. level as zlib's. */
int zstream_make(const void *data, size_t len, int level, uint8_t **out, size_t *out_len);

#endif
