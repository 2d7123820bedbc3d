/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally_segments: which segments a writer, living or killed, still needs for its own account
 * (tally.h). They are neither removed nor archived: nothing is counted both there and as lost.
 */
#ifndef SONDE_STORE_FILES_TALLY_SEGMENTS_H
#define SONDE_STORE_FILES_TALLY_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/store/files/folder.h"

struct tally_segments {
	char (*names)[SEGMENT_NAME_MAX];
	size_t n, cap;
	bool killed; /* a killed writer's account waits to be settled */
};

/* As it is now; `out` is emptied before, zeroed at first. */
void tally_segments_read(const char *dir, struct tally_segments *out);
void tally_segments_release(struct tally_segments *l);
bool tally_segments_has(const struct tally_segments *l, const char *name);
/* Settles what killed writers left in the segment at `path`, which any writer does when it opens
 * the store, and reads again. Takes the folder's lock. */
void tally_segments_settle(const char *dir, const char *path, struct tally_segments *l);

#endif
