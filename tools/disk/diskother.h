/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diskother: rows of files past the limit of what is recorded one by one. Their name is
 * "FOLDER/~other", or "~other" where the folder is not known either.
 */
#ifndef SONDE_TOOLS_DISKOTHER_H
#define SONDE_TOOLS_DISKOTHER_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/print/row.h"

bool diskother_is(const char *file);
/* For people: "other files of FOLDER", "other files" (`what`: "files"); of any other one its own
 * name. Borrowed, or in `buf`, cut if there is no room. */
const char *diskother_shown(const char *file, const char *what, char *buf, size_t size);
/* A column of files: shown so in a table, as it is in JSON. */
void diskother_row(struct row *o, const char *title, const char *key, const char *file,
		   const char *what);

#endif
