/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/store/pack.c
 *
 * Any bytes are rows up to where a rule is broken; those rows keep the rules, and written anew they are read back the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/store/pack.h"

#define MOST 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_all(const void *data, size_t size, int64_t ts, struct sample_row *out)
{
	struct pack_reader r;
	size_t n = 0, k;

	pack_open(&r, data, size, ts);
	while (n < MOST && (k = pack_next(&r, out + n, MOST - n < 64 ? MOST - n : 64)))
		n += k;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sample_row rows[MOST], again[MOST];
	struct strbuf b = STRBUF_INIT;
	int64_t ts;
	size_t n;

	if (size < sizeof(ts) || size > 1 << 16)
		return 0;
	memcpy(&ts, data, sizeof(ts));
	ts >>= 20;
	n = read_all(data + sizeof(ts), size - sizeof(ts), ts, rows);
	if (!n)
		return 0;
	if (rows[0].ts != ts || pack_encode(rows, n, &b))
		abort();
	if (read_all(b.buf, b.len, ts, again) != n)
		abort();
	for (size_t i = 0; i < n; i++)
		if (rows[i].ts != again[i].ts || rows[i].series != again[i].series || rows[i].n != again[i].n)
			abort();
	strbuf_release(&b);
	return 0;
}
