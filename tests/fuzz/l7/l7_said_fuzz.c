/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7_said_fuzz: of a message of any bytes what is heard is within its bounds and can be printed.
 * covers: loaders/l7/said.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/l7/said.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t *message = calloc(len / 8 + 1, 8);
	struct heard h;
	uint64_t sum = 0;

	memcpy(message, data, len);
	for (size_t at = 0; said_next(message, len, &at, &h);) {
		for (int i = 0; i < SAID_TEXTS; i++)
			if (strlen(h.text[i]) >= SAID_TEXT || strpbrk(h.text[i], "\x1b\n\r\t\x7f"))
				abort();
		for (int i = 0; h.steps && i < h.s->n_steps; i++)
			sum += h.steps[i];
	}
	free(message);
	return sum == UINT64_MAX;
}
