/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"

#define MEMORY_MAX (128u << 20)
#define START_SIZE (256u << 10)

/* Decode to the end of the stream, doubling the buffer up to MINIDEBUG_MAX. */
static int stream_run(lzma_stream *s, uint8_t **buf)
{
	size_t cap = START_SIZE;

	for (;;) {
		uint8_t *more;
		lzma_ret ret;

		more = realloc(*buf, cap);
		if (!more)
			return -ENOMEM;
		*buf = more;
		s->next_out = more + s->total_out;
		s->avail_out = cap - (size_t)s->total_out;
		ret = lzma_code(s, LZMA_FINISH);
		if (ret == LZMA_STREAM_END)
			return 0;
		if (ret == LZMA_MEM_ERROR)
			return -ENOMEM;
		if (ret == LZMA_MEMLIMIT_ERROR)
			return -EFBIG;
		if (ret != LZMA_OK || s->avail_out)
			return -EBADMSG;
		if (cap >= MINIDEBUG_MAX)
			return -EFBIG;
		cap *= 2;
	}
}

int minidebug_unpack(const void *data, size_t len, void **out, size_t *out_len)
{
	cleanup_free uint8_t *buf = NULL;
	lzma_stream s = LZMA_STREAM_INIT;
	int rc;

	if (lzma_stream_decoder(&s, MEMORY_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	s.next_in = data;
	s.avail_in = len;
	rc = stream_run(&s, &buf);
	if (!rc) {
		*out_len = (size_t)s.total_out;
		*out = take_ptr(buf);
	}
	lzma_end(&s);
	return rc;
}
