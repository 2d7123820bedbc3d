/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfod: requests files by build-id from debug servers, through sonde-debuginfod, one run of
 * it a file. Servers come from DEBUGINFOD_URLS. After three in a row without an answer it makes no
 * more requests.
 */
#ifndef SONDE_SYMBOLIZE_DEBUGINFOD_H
#define SONDE_SYMBOLIZE_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct debuginfod;

/* EXIT_PREREQUISITE if the program does not run here or its library is not there, EXIT_USAGE if no
 * server is named. */
int debuginfod_open(struct debuginfod **out, struct err *e);
void debuginfod_close(struct debuginfod *d); /* NULL is fine */
/* A descriptor of the debug file, or of the executable, with this build-id; -errno. */
int debuginfod_debug(struct debuginfod *d, const uint8_t *build_id, size_t len);
int debuginfod_executable(struct debuginfod *d, const char *build_id_hex);
/* Files that came. */
unsigned debuginfod_fetched(const struct debuginfod *d);

#endif
