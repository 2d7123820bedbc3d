/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8tables_fuzz: any bytes as each table that V8's compilers write. The first two are what is
 * looked for.
 *
 * covers: loaders/lib/runtimes/v8/v8tables.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/v8/v8tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void safepoints(const uint8_t *table, size_t len, uint32_t pc)
{
	for (int shape = V8_SHAPE_9; shape <= V8_SHAPE_14; shape++)
		for (int maglev = 0; maglev < 2 && len >= 16; maglev++) {
			v8_safepoint_size((enum v8_shape)shape, maglev, table);
			if (v8_safepoint_find((enum v8_shape)shape, maglev, table, len, pc) <
			    INT32_MIN)
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct v8_inlined out[V8_INLINED_MAX];
	uint32_t at;
	uint8_t *table;

	if (len < 2)
		return 0;
	at = (uint32_t)(data[0] | data[1] << 8);
	table = malloc(len - 2 + 1);
	memcpy(table, data + 2, len - 2);
	len -= 2;
	if (v8_position_find(V8_SHAPE_13, table, len, at) < V8_NOWHERE ||
	    v8_position_find(V8_SHAPE_14, table, len, at) < V8_NOWHERE ||
	    v8_baseline_find(table, len, at) < V8_NOWHERE)
		abort();
	safepoints(table, len, at);
	for (int shape = V8_SHAPE_9; shape <= V8_SHAPE_14; shape++)
		if (v8_translation_read((enum v8_shape)shape, table, len, at % (len + 1), out) >
		    V8_INLINED_MAX)
			abort();
	free(table);
	return 0;
}
