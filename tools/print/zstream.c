/* SPDX-License-Identifier: Apache-2.0 */
/* zstream: A deflate stream that ends on a byte, not in a last block, goes on with
 * the next one's bytes. */
#include "tools/print/zstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/base/mem.h"

#define LEVEL  1 /* a third of the time of the usual 6, for 10 % more bytes */
#define HEAD   2
#define TAIL   4
#define MEMORY 8 /* zlib's default */

void zstream_deflate(struct zstream_part *p)
{
	size_t room = compressBound((uLong)p->len) + HEAD + TAIL +
		      16; /* more than raw deflate and a flush need */
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p->data, .avail_in = (uInt)p->len};
	int strategy = p->like == ZSTREAM_COLUMNS ? Z_RLE : Z_DEFAULT_STRATEGY,
	    want = p->last ? Z_STREAM_END : Z_OK;

	if (p->len > UINT32_MAX / 4) {
		p->ret = -EFBIG;
		return;
	}
	p->ret = deflateInit2(&z, LEVEL, Z_DEFLATED, -MAX_WBITS, MEMORY, strategy) == Z_OK ?
			 0 :
			 -ENOMEM;
	if (p->ret)
		return;
	p->out = mem_alloc(room);
	z.next_out = p->out;
	z.avail_out = (uInt)room;
	if (deflate(&z, p->last ? Z_FINISH : Z_SYNC_FLUSH) != want || z.avail_in)
		p->ret = -ENOMEM;
	p->made = room - z.avail_out;
	p->adler = (uint32_t)adler32(adler32(0, NULL, 0), p->data, (uInt)p->len);
	deflateEnd(&z);
}

/* The header's compression level is only informative. */
static size_t head_put(uint8_t *to)
{
	const unsigned cmf = 0x78; /* deflate, a window of 32 KB */

	to[0] = (uint8_t)cmf;
	to[1] = (uint8_t)(31 - cmf * 256 % 31);
	return HEAD;
}

static void tail_put(uint8_t *to, uint32_t adler)
{
	for (int i = 0; i < TAIL; i++)
		to[i] = (uint8_t)(adler >> (24 - 8 * i));
}

static void put_all(const struct zstream_part *p, size_t n, uint8_t **out, size_t *out_len)
{
	uint32_t adler = p[0].adler;
	size_t len = HEAD + TAIL, at;

	for (size_t i = 0; i < n; i++)
		len += p[i].made;
	*out = mem_alloc(len);
	*out_len = len;
	at = head_put(*out);
	for (size_t i = 0; i < n; at += p[i++].made)
		memcpy(*out + at, p[i].out, p[i].made);
	for (size_t i = 1; i < n; i++)
		adler = (uint32_t)adler32_combine(adler, p[i].adler, (z_off_t)p[i].len);
	tail_put(*out + at, adler);
}

int zstream_join(struct zstream_part *parts, size_t n, uint8_t **out, size_t *out_len)
{
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = parts[i].ret;
	if (!ret)
		put_all(parts, n, out, out_len);
	for (size_t i = 0; i < n; i++) {
		free(parts[i].out);
		parts[i].out = NULL;
	}
	return ret;
}
