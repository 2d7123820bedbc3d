/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reading: says on stderr that a store is being read, where that takes longer than a person waits
 * without wondering: on a terminal after a second, one line that is written over and taken away at
 * the end; else (a log) a line after ten seconds, and every ten. Nothing with -q. Between
 * reading_begin and reading_end nobody else may print.
 */
#ifndef SONDE_TOOLS_READING_H
#define SONDE_TOOLS_READING_H

#include <stddef.h>

/* From now on nothing is said: -q, or a screen that is drawn. */
void reading_quiet(void);
/* So many files are read. What begins within another reading is part of that. The first one's
 * beginning is what counts. */
void reading_begin(size_t files);
void reading_file(size_t nth); /* from 0 */
void reading_end(void);

#endif
