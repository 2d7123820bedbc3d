/* SPDX-License-Identifier: Apache-2.0 */
/* select_open: the segments that a selection holds open. select.c makes and releases it; all others use select_segment. */
#ifndef SONDE_TOOLS_SELECT_OPEN_H
#define SONDE_TOOLS_SELECT_OPEN_H

struct select_open;

struct select_open *select_open_new(void);
void select_open_free(struct select_open *o); /* NULL is fine */

#endif
