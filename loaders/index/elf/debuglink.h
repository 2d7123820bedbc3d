/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuglink: the content of .gnu_debuglink: a bare file name, NUL, padding to 4, the CRC-32 of the
 * whole debug file. And of .gnu_debugaltlink (written by dwz): a path, NUL, the build-id of that
 * file, to the end. Pure over (bytes, len).
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

/* false: it does not fit, or the name is empty, too long, or no bare file name ('/', "." or "..").
 */
bool debuglink_parse(const void *data, size_t len, struct debuglink *out);

struct debugaltlink {
	char name[256];
	uint8_t build_id[64];
	size_t build_id_len;
};

/* false: no name, or one that is too long, or a build-id of fewer than 2 bytes or more than 64. */
bool debugaltlink_parse(const void *data, size_t len, struct debugaltlink *out);

#endif
