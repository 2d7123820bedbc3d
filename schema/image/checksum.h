/* SPDX-License-Identifier: Apache-2.0 */
/* checksum: the checksums of an image index (format.h, condition 2). The index is in memory as a
 * whole, 8-aligned, with its header. */
#ifndef SONDE_IMAGE_CHECKSUM_H
#define SONDE_IMAGE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For the writer of an index: fills in all of them. Sections or section tables that are not inside
 * the file are skipped. */
void image_checksums_make(void *data, size_t len);
/* Checks the header's, and those of the sections whose kind is a bit of `kinds`. UINT32_MAX: all
 * sections, also kinds beyond 31. */
bool image_checksums_right(const void *data, size_t len, uint32_t kinds);

#endif
