/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealed: which files of a store's folder are not to be read any more, because a sealed day holds what is in them. A day
 * is complete the instant it has its name, and what it was made of goes a while later (seal.h): so at every instant
 * whoever reads the folder finds each row once.
 */
#ifndef SONDE_STORE_SEALED_H
#define SONDE_STORE_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/folder.h"

struct sqlite3;

struct sealed_one {
	char name[SEGMENT_NAME_MAX];
	int64_t created_ns;
	char day[SEGMENT_NAME_MAX]; /* the file that holds it */
};
struct sealed_list {
	struct sealed_one *items;
	size_t n, cap;
};

/* Of the files with these names. A day that cannot be read hides nothing. */
void sealed_read(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, struct sealed_list *out);
/* What this day, open for reading, says. */
void sealed_add(struct sealed_list *out, struct sqlite3 *db, const char *day);
void sealed_release(struct sealed_list *l);
/* The day that holds what is in this file; NULL: none. Opens the file only where a day names it. */
const struct sealed_one *sealed_by(const struct sealed_list *l, const char *dir, const char *name);

#endif
