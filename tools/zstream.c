/* SPDX-License-Identifier: Apache-2.0 */
/* zstream: see the header. A deflate stream that ends on a byte, not in a last block, goes on with the next one's bytes. */
#include "tools/zstream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/base/beside.h"
#include "schema/base/mem.h"

#define WINDOW   32768        /* how far back deflate looks */
#define WORTH_IT (256 * 1024) /* less is one stream: a thread takes longer to begin */
#define HEAD     2
#define TAIL     4
#define MEMORY   8            /* zlib's default */

struct part {
	const uint8_t *data, *before; /* before: what the part before it ends with, NULL: it is the first */
	size_t len;
	bool last;
	int level;
	uint8_t *out;
	size_t room, made;
	uint32_t adler;
	bool failed;
};

static void part_make(void *ctx)
{
	struct part *p = ctx;
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p->data, .avail_in = (uInt)p->len, .next_out = p->out, .avail_out = (uInt)p->room};
	int want = p->last ? Z_STREAM_END : Z_OK;

	p->failed = deflateInit2(&z, p->level, Z_DEFLATED, -MAX_WBITS, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK;
	if (p->failed)
		return;
	if (p->before)
		deflateSetDictionary(&z, p->before, WINDOW);
	p->failed = deflate(&z, p->last ? Z_FINISH : Z_SYNC_FLUSH) != want || z.avail_in;
	p->made = p->room - z.avail_out;
	p->adler = (uint32_t)adler32(adler32(0, NULL, 0), p->data, (uInt)p->len);
	deflateEnd(&z);
}

static void part_init(struct part *p, const uint8_t *data, size_t from, size_t to, bool last, int level)
{
	*p = (struct part){.data = data + from, .before = from ? data + from - WINDOW : NULL, .len = to - from, .last = last, .level = level};
	p->room = compressBound((uLong)p->len) + HEAD + TAIL + 16; /* more than raw deflate and a flush need */
	p->out = mem_alloc(p->room);
}

/* The header says how hard it was tried: nobody reads that. */
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

static void join(const struct part *p, size_t n, uint8_t **out, size_t *out_len)
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

int zstream_make(const void *data, size_t len, int level, uint8_t **out, size_t *out_len)
{
	size_t half = len < WORTH_IT ? 0 : len / 2, n = half ? 2 : 1;
	struct part part[2] = {{0}};
	struct beside second;
	bool failed;

	if (len > UINT32_MAX / 2)
		return -EFBIG;
	part_init(&part[n - 1], data, half, len, true, level);
	if (half) {
		part_init(&part[0], data, 0, half, false, level);
		beside_begin(&second, part_make, &part[1]);
	}
	part_make(&part[0]);
	if (half)
		beside_end(&second);
	failed = part[0].failed || part[n - 1].failed;
	if (!failed)
		join(part, n, out, out_len);
	free(part[0].out);
	free(part[1].out);
	return failed ? -ENOMEM : 0;
}
