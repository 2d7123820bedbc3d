/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: a fuzzer's input as the memory of a process, from BASE on. */
#ifndef SONDE_FUZZ_RUNTIMES_BYTES_H
#define SONDE_FUZZ_RUNTIMES_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BASE 0x10000u

struct bytes {
	const uint8_t *data;
	size_t len;
};

/* `read` of struct runtime_memory. */
static inline bool read_bytes(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct bytes *b = ctx;
	uint64_t at = addr - BASE;

	if (at >= b->len || b->len - at < len)
		return false;
	memcpy(to, b->data + at, len);
	return true;
}

#endif
