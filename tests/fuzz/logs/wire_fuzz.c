/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_fuzz: whatever the reader of logs says, the loader takes messages whose sizes fit alone.
 *
 * covers: loaders/logs/wire.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/logs/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct wire_packet p;
	struct wire_said x;
	const char *text[2];
	size_t at = 0;

	p.len = len < sizeof(p.bytes) ? len : sizeof(p.bytes);
	memcpy(p.bytes, data, p.len);
	while (wire_next(&p, &at, &x, text))
		if (at > p.len || strlen(text[0]) >= WIRE_TEXT || strlen(text[1]) >= WIRE_TEXT)
			abort();
	return 0;
}
