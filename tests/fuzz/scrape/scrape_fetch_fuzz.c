/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape_fetch_fuzz: messages that a child of sonde-pprof which was taken over may send: each a
 * length and bytes.
 *
 * covers: loaders/scrape/fetch.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/scrape/fetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fetch f = {.fd = -1, .connection = -1};
	static uint64_t message[512];

	while (len > 2) {
		size_t n = (size_t)(data[0] | data[1] << 8) % sizeof(message);

		data += 2;
		len -= 2;
		n = n < len ? n : len;
		memcpy(message, data, n);
		fetch_take(&f, message, n);
		data += n;
		len -= n;
	}
	for (uint32_t i = 0; i < f.n; i++)
		if (f.stacks[i].n > WIRE_DEPTH || f.stacks[i].frames + f.stacks[i].n > f.n_frames)
			abort();
	fetch_release(&f);
	return 0;
}
