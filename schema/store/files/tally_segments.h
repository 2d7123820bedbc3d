/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needed: which segments a writer, living or killed, still needs for its own account (tally.h). They are neither removed
 * nor archived: nothing is counted both there and as lost.
 */
#ifndef SONDE_STORE_FILES_TALLY_SEGMENTS_H
#define SONDE_STORE_FILES_TALLY_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/store/files/folder.h"

struct needed {
	char (*names)[SEGMENT_NAME_MAX];
	size_t n, cap;
	bool killed; /* a killed writer's account waits to be settled */
};

/* As it is now; `out` is emptied before, zeroed at first. */
void needed_read(const char *dir, struct needed *out);
void needed_release(struct needed *l);
bool needed_has(const struct needed *l, const char *name);
/* Settles what killed writers left in the segment at `path`, which any writer does when it opens the store, and reads again.
 * Takes the folder's lock. */
void needed_settle(const char *dir, const char *path, struct needed *l);

#endif
