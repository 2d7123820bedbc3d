/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sideband_fuzz: what a record says lies within it.
 * covers: loaders/lib/host/maps/sideband.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sideband_rec r;
	uint16_t size = (uint16_t)len;
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, data, len);
	if (len >= 8)
		memcpy(copy + 6, &size, sizeof(size)); /* the ring reader has checked it */
	if (!sideband_parse(copy, len, &r)) {
		if (r.name && (strlen(r.name) != r.name_len ||
			       (const uint8_t *)r.name + r.name_len >= copy + len))
			abort();
		if (r.addr + r.len < r.addr)
			abort();
	}
	free(copy);
	return 0;
}
