/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/pack.h"

#include <errno.h>
#include <zlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define GZIP_WINDOW (15 + 16)

int pack(const struct strbuf *in, struct strbuf *out, struct err *e)
{
	z_stream z = {.next_in = (Bytef *)in->buf, .avail_in = (uInt)in->len};
	cleanup_free Bytef *buf = NULL;
	uLong most;
	int rc = deflateInit2(&z, 1, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);

	if (rc != Z_OK)
		return err_set(e, -ENOMEM, EXIT_RUNTIME, "zlib: %d", rc);
	most = deflateBound(&z, in->len);
	buf = mem_alloc(most);
	z.next_out = buf;
	z.avail_out = (uInt)most;
	rc = deflate(&z, Z_FINISH);
	strbuf_add(out, buf, (size_t)(most - z.avail_out));
	deflateEnd(&z);
	return rc == Z_STREAM_END ? 0 : err_set(e, -EIO, EXIT_RUNTIME, "zlib: %d", rc);
}
