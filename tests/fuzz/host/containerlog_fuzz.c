/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerlog_fuzz: whatever a log's end is, few short lines come out of it, without a control
 * byte, and valid UTF-8.
 *
 * covers: loaders/lib/host/proc/containerlog.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/containerlog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct all {
	size_t n, bytes;
};

static void look(void *ctx, const char *line, bool cut)
{
	struct strbuf again cleanup_strbuf = STRBUF_INIT;
	struct all *a = ctx;

	(void)cut;
	a->n++;
	a->bytes += strlen(line) + 1;
	strbuf_addutf8(&again, line, strlen(line));
	if (strlen(line) > CONTAINERLOG_LINE || strcmp(strbuf_str(&again), line) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct containerlog l = {0};
	struct all a = {0};
	size_t half;

	if (!len)
		return 0;
	half = (len - 1) / 2;
	containerlog_read(&l, data[0] & 1 ? CONTAINERLOG_CRI : CONTAINERLOG_DOCKER,
			  (const char *)data + 1, half, true, INT64_MAX);
	containerlog_read(&l, data[0] & 1 ? CONTAINERLOG_CRI : CONTAINERLOG_DOCKER,
			  (const char *)data + 1 + half, len - 1 - half, data[0] & 2,
			  1795636800000000000);
	containerlog_each(&l, look, &a);
	if (a.n > CONTAINERLOG_LINES || a.bytes > CONTAINERLOG_BYTES)
		abort();
	containerlog_release(&l);
	return 0;
}
