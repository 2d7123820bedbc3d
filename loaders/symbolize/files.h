/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: the index of a file that the store names by path and build-id; made again if the cached
 * one has no lines.
 *
 * The file is searched at its path below our own root, then below the roots of running processes
 * (containers), then, if wanted, at a debuginfod server. It is the right one if its build-id is the
 * store's; a file without a build-id must have the key that the capture saw.
 */
#ifndef SONDE_SYMBOLIZE_FILES_H
#define SONDE_SYMBOLIZE_FILES_H

#include <stdbool.h>

#include "schema/base/err.h"

struct debuginfod;
struct files;
struct image;

/* `program`: sonde-index. `server` may be NULL. */
struct files *files_open(const char *store_dir, const char *program, struct debuginfod *server);
void files_close(struct files *f);

/* NULL: not found, and *reason says why. Both live until files_close. Each file is searched once.
 */
const struct image *files_index(struct files *f, const char *path, const char *build_id,
				const char *key, const char **reason);

#endif
