/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfod: asking debug servers for files by build-id, through elfutils' client library, which is loaded only when
 * this is wanted. Servers come from DEBUGINFOD_URLS, the library's own cache and time limits from its other variables
 * (debuginfod(8), debuginfod_find_debuginfo(3)).
 */
#ifndef SONDE_SYMBOLIZE_DEBUGINFOD_H
#define SONDE_SYMBOLIZE_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct debuginfod;

/* EXIT_PREREQUISITE if the library is not there, EXIT_USAGE if no server is named. */
int debuginfod_open(struct debuginfod **out, struct err *e);
void debuginfod_close(struct debuginfod *d); /* NULL is fine */
/* A descriptor of the debug file, or of the executable, with this build-id; -errno. */
int debuginfod_debug(struct debuginfod *d, const uint8_t *build_id, size_t len);
int debuginfod_executable(struct debuginfod *d, const char *build_id_hex);
/* Files that came. */
unsigned debuginfod_fetched(const struct debuginfod *d);

#endif
