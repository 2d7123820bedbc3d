/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reading: says on stderr that a store is being read, if that takes long: on a terminal after a
 * second, one line that is overwritten and removed at the end; else (a log) a line every ten
 * seconds. Nothing with -q. Between reading_begin and reading_end nothing else may print.
 */
#ifndef SONDE_TOOLS_READING_H
#define SONDE_TOOLS_READING_H

#include <stddef.h>

/* From now on nothing is said: -q, or a screen that is drawn. */
void reading_quiet(void);
/* `n` files are read. A reading that begins within another one is part of it; the first beginning
 * counts. */
void reading_begin(size_t files);
void reading_file(size_t nth); /* from 0 */
void reading_end(void);

#endif
