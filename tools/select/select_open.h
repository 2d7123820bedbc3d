/* SPDX-License-Identifier: Apache-2.0 */
/* select_open: the segments that a selection holds open. select.c makes and releases it; all others
 * use select_segment. */
#ifndef SONDE_TOOLS_SELECT_OPEN_H
#define SONDE_TOOLS_SELECT_OPEN_H

#include "schema/store/read/reader.h"

#define SELECT_HELD 2 /* segments that stay open */

struct select_open;

struct select_open *select_open_new(void);
/* A segment that was opened to look at it: it is held from here on. */
void select_open_take(struct select_open *o, const char *path, struct store_segment *segment);
void select_open_free(struct select_open *o); /* NULL is fine */

#endif
