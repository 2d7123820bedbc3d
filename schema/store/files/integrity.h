/* SPDX-License-Identifier: Apache-2.0 */
/* integrity: is a file of the store readable from end to end? What SQLite checks, and what stands
 * in blocks and columns, which it does not know. Takes as long as reading all of it: for when
 * something was found to be damaged. */
#ifndef SONDE_STORE_FILES_INTEGRITY_H
#define SONDE_STORE_FILES_INTEGRITY_H

#include <stdbool.h>

bool integrity_holds(const char *path);

#endif
