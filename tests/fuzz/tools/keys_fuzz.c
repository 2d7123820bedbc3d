/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: tools/print/keys.c
 *
 * Any bytes are keys, or are dropped; each step takes some of them, and what waits for more is a
 * key once nothing follows.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tools/print/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size) {
		uint32_t key = 0, same = 0;
		size_t early = keys_decode(data, size, false, &same),
		       used = keys_decode(data, size, true, &key);

		if (!used || used > size || key > KEY_BACKSPACE || (key >= 0xd800 && key < 0xe000))
			abort();
		if (early && (early != used || same != key))
			abort();
		data += used;
		size -= used;
	}
	return 0;
}
