/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuglink: the content of .gnu_debuglink: a bare file name, NUL, padding to 4, the CRC-32 of the whole debug file.
 * Pure over (bytes, len).
 */
#ifndef SONDE_INDEX_DEBUGLINK_H
#define SONDE_INDEX_DEBUGLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuglink {
	char name[256];
	uint32_t crc;
};

/* false: it does not fit, or the name is empty, too long, or no bare file name ('/', "." or ".."). */
bool debuglink_parse(const void *data, size_t len, struct debuglink *out);

#endif
