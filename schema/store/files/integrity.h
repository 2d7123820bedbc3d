/* SPDX-License-Identifier: Apache-2.0 */
/* integrity: is a file of the store readable from end to end? Checks what SQLite checks, and the
 * contents of blocks and columns, which SQLite does not know. Takes as long as reading the whole
 * file: for use after damage was found. */
#ifndef SONDE_STORE_FILES_INTEGRITY_H
#define SONDE_STORE_FILES_INTEGRITY_H

#include <stdbool.h>

bool integrity_holds(const char *path);

#endif
