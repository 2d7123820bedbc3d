/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pylines_fuzz: any bytes as a line table of each kind.
 * covers: loaders/lib/runtimes/pylines.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/pylines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int32_t first = 0;
	int64_t at = 0;

	if (len < 12)
		return 0;
	memcpy(&first, data, 4);
	memcpy(&at, data + 4, 8);
	for (unsigned kind = 0; kind < 6; kind++) {
		uint8_t *table = malloc(len - 12 + 1);

		memcpy(table, data + 12, len - 12);
		for (int64_t i = -1; i < 64; i++)
			if (pylines_find(kind, table, len - 12, first, i) > INT32_MAX)
				abort();
		if (pylines_find(kind, table, len - 12, first, at) > INT32_MAX)
			abort();
		free(table);
	}
	return 0;
}
