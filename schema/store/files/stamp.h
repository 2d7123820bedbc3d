/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stamp: a number that tells a file of the store from what it was: of its size, of the header in
 * which SQLite counts changes, and of three of its pages. A copy has the same. Not for other rooms.
 */
#ifndef SONDE_STORE_FILES_STAMP_H
#define SONDE_STORE_FILES_STAMP_H

#include <stdint.h>

/* 0: it cannot be read. */
int64_t stamp_of(const char *path);

#endif
