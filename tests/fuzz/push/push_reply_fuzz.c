/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: export/push/reply.c
 *
 * Any reply is a verdict, within bounds, and none of its words are in the error. Input: the type of
 * target, the status (two bytes), the length of its heads (two bytes), heads, body.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lines(struct reply *r, const char *at, size_t len)
{
	while (len) {
		const char *nl = memchr(at, '\n', len);
		size_t n = nl ? (size_t)(nl - at) + 1 : len;

		if (!reply_head(r, at, n) && !r->endless)
			abort();
		at += n;
		len -= n;
	}
}

static void judged(const struct reply *r, const struct target *t, long status)
{
	uint64_t rejected = 1;
	struct err e = {0};
	int rc = reply_judge(r, t, status, &rejected, &e);

	if (rc ? !*e.what || !strstr(e.what, t->url) || rejected : status != 200)
		abort();
	if (rc && rc != -EAGAIN && rc != -EBADMSG)
		abort();
	if (rejected && t->type != TARGET_OTLP)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target t = {.name = "fleet", .url = "http://receiver:1"};
	struct reply r = {.len = 0};
	size_t heads;

	if (size < 5)
		return 0;
	t.type = (enum target_type)(data[0] % 3);
	heads = (size_t)(data[3] << 8 | data[4]) % (size - 4);
	lines(&r, (const char *)data + 5, heads);
	for (size_t at = 5 + heads, n; at < size; at += n) {
		n = size - at < 1000 ? size - at : 1000;
		if (!reply_body(&r, (const char *)data + at, n) && !r.endless)
			abort();
	}
	if (r.retry_s > REPLY_RETRY_MOST_S || r.len > REPLY_TEXT_MOST || r.text[r.len])
		abort();
	judged(&r, &t, data[1] % 2 ? 200 : (data[1] << 8 | data[2]) % 1000);
	judged(&r, &t, 400);
	return 0;
}
