/* SPDX-License-Identifier: Apache-2.0 */
/* checksum: those of an image index (format.h, condition 2), over a whole index in 8-aligned memory
 * whose header is there. */
#ifndef SONDE_IMAGE_CHECKSUM_H
#define SONDE_IMAGE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For who writes an index: put in all of them. Sections that do not lie in the file, and those of a
 * table that does not, are left as they are. */
void image_checksums_make(void *data, size_t len);
/* Are the header's right, and those of the sections whose kind is a bit of `kinds`? UINT32_MAX: of
 * all sections, of kinds beyond 31 too. */
bool image_checksums_right(const void *data, size_t len, uint32_t kinds);

#endif
