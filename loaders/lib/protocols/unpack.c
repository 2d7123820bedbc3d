/* SPDX-License-Identifier: Apache-2.0 */
/* unpack: zlib and zstd as one. */
#include "loaders/lib/protocols/unpack.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "schema/base/mem.h"

#define STEP      4096
#define SECOND_NS 1000000000ll

struct unpack {
	enum unpack_how how;
	struct unpack_budget *budget;
	z_stream zlib;
	ZSTD_DStream *zstd;
	bool ended; /* its last byte was unpacked */
};

struct unpack *unpack_new(enum unpack_how how, struct unpack_budget *budget)
{
	struct unpack *u;

	if (budget->open >= UNPACK_OPEN)
		return NULL;
	u = mem_alloc(sizeof(*u));
	u->how = how;
	u->budget = budget;
	budget->open++;
	if (how == UNPACK_ZLIB) {
		u->ended = inflateInit(&u->zlib) != Z_OK;
	} else {
		u->zstd = ZSTD_createDStream();
		u->ended = !u->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(
					       u->zstd, ZSTD_d_windowLogMax, UNPACK_WINDOW_LOG));
	}
	return u;
}

void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	u->budget->open--;
	if (u->how == UNPACK_ZLIB)
		inflateEnd(&u->zlib);
	else
		ZSTD_freeDStream(u->zstd);
	free(u);
}

static bool spend(struct unpack_budget *b, size_t bytes, int64_t now_ns)
{
	if (now_ns - b->since_ns >= SECOND_NS || now_ns < b->since_ns) {
		b->since_ns = now_ns;
		b->bytes = 0;
	}
	b->bytes += bytes;
	return b->bytes <= UNPACK_RATE;
}

/* Bytes that were written to `out`; SIZE_MAX: it is no such stream. */
static size_t zlib_step(struct unpack *u, const uint8_t **p, size_t *n, uint8_t *out)
{
	int rc;

	u->zlib.next_in = (Bytef *)(uintptr_t)*p;
	u->zlib.avail_in = (uInt)*n;
	u->zlib.next_out = out;
	u->zlib.avail_out = STEP;
	rc = inflate(&u->zlib, Z_NO_FLUSH);
	*p += *n - u->zlib.avail_in;
	*n = u->zlib.avail_in;
	u->ended = rc == Z_STREAM_END;
	return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR ? STEP - u->zlib.avail_out :
								       SIZE_MAX;
}

static size_t zstd_step(struct unpack *u, const uint8_t **p, size_t *n, uint8_t *out)
{
	ZSTD_inBuffer in = {*p, *n, 0};
	ZSTD_outBuffer to = {out, STEP, 0};
	size_t rc = ZSTD_decompressStream(u->zstd, &to, &in);

	*p += in.pos;
	*n -= in.pos;
	u->ended = !rc;
	return ZSTD_isError(rc) ? SIZE_MAX : to.pos;
}

bool unpack_feed(struct unpack *u, const uint8_t *p, size_t n, uint32_t *left, int64_t now_ns,
		 bool (*take)(void *ctx, const uint8_t *p, size_t n), void *ctx)
{
	uint8_t out[STEP];
	size_t got = STEP, before;

	/* all of what came in, and then what it still holds back */
	while (*left && !u->ended && (n || got == STEP)) {
		before = n;
		got = u->how == UNPACK_ZLIB ? zlib_step(u, &p, &n, out) : zstd_step(u, &p, &n, out);
		if (got == SIZE_MAX || !spend(u->budget, got, now_ns))
			return false;
		got = got < *left ? got : *left;
		*left -= (uint32_t)got;
		if (got && !take(ctx, out, got))
			return false;
		if (!got && n == before)
			break;
	}
	return true;
}
