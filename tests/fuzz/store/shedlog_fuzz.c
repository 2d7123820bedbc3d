/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/store/files/shedlog.c
 *
 * Any text is a list of spans: each of a state that is known, in the range, and none that ends
 * before it begins.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/store/files/shedlog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int64_t from = 100, to = 1000000;
	struct shedlog_span *v;
	size_t n;

	if (size > 4096)
		return 0;
	shedlog_parse((const char *)data, size, from, to, &v, &n);
	for (size_t i = 0; i < n; i++)
		if (v[i].state == SHEDLOG_FULL || v[i].state >= SHEDLOG_STATES ||
		    v[i].from_ns >= to || v[i].to_ns <= from || v[i].to_ns <= v[i].from_ns ||
		    !memchr(v[i].family, '\0', sizeof(v[i].family)) || !v[i].family[0])
			abort();
	free(v);
	return 0;
}
