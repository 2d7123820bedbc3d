/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape_answer_fuzz: whatever an HTTP server says is read within its bounds; more bytes never take
 * a head back.
 *
 * covers: loaders/scrape/http_head.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/scrape/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct http_head a, b;
	uint64_t n;

	http_head_index((const char *)data, len, &n);
	if (http_head_head((const char *)data, len, &a) != ANSWER_OK)
		return 0;
	if (a.body > len || a.status < 100 || a.status > 999)
		abort();
	if (http_head_head((const char *)data, a.body, &b) != ANSWER_OK || b.body != a.body ||
	    b.status != a.status)
		abort();
	return 0;
}
