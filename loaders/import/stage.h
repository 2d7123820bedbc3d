/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage: an import is in the store as a whole or not at all. It is written into a temporary folder
 * within the store's, DIR/importing.XXXXXX, which no reader looks into, and its segments are moved
 * into the store when it is complete.
 *
 * The folder is locked (flock) while its import lives: the next import removes those of imports
 * that were killed. A store that this import made is removed where the import fails.
 */
#ifndef SONDE_IMPORT_STAGE_H
#define SONDE_IMPORT_STAGE_H

#include <limits.h>
#include <stdbool.h>

#include "schema/base/err.h"

struct stage {
	const char *store; /* the store's folder; borrowed */
	char dir[PATH_MAX];
	int fd;    /* of dir, locked */
	bool made; /* the store was not there before */
};

/* EXIT_STORE or EXIT_PERMISSION, as store_writer_open. */
int stage_begin(struct stage *s, const char *store, struct err *e);
/* After the writer was closed. What cannot be moved stays out, all of it. */
int stage_move(struct stage *s, struct err *e);
/* In any case at the end. */
void stage_end(struct stage *s, bool failed);

#endif
