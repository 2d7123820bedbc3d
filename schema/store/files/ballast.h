/* SPDX-License-Identifier: Apache-2.0 */
/* ballast: bytes of the disk that are given up when it is full, so that logs can be folded in and
 * files closed. */
#ifndef SONDE_STORE_FILES_BALLAST_H
#define SONDE_STORE_FILES_BALLAST_H

#include <stdbool.h>
#include <stdint.h>

/* Lock not needed. Make STORE/ballast this large if need be, where `free_bytes` leave that much
 * again above `reserve`. */
void ballast_keep(const char *dir, uint64_t bytes, uint64_t free_bytes, uint64_t reserve);
/* Let go of it. true: it was there. */
bool ballast_drop(const char *dir);

#endif
