/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers: places for a drawing of a directed graph: boxes in columns, links from left to right.
 * Pure, and the same for the same input.
 *
 *  1. Links that would close a circle are turned around for the drawing (a search in depth, in the
 *     order of boxes and links).
 *  2. A box's column is one more than that of any box with a link to it; one without such is drawn
 *     next to the first that it has a link to.
 *  3. Between two columns of boxes there is one of labels: each link has its label in that behind
 *     its left box, and a thread in each column that it crosses. So no label covers another one or
 *     a box.
 *  4. Within a column the order is by the mean place of what they are joined with, from left to
 *     right and back, LAYERS_SWEEPS times; of these the order with the fewest crossings is taken.
 *  5. Heights: each wants to be level with the mean of what it is joined with; where they would
 *     overlap they move by the least sum of squares.
 *
 * Units are pixels; the drawing begins at 0, 0. A link from a box to itself is a bow to its right.
 */
#ifndef SONDE_TOOLS_LAYERS_H
#define SONDE_TOOLS_LAYERS_H

#include <stdbool.h>
#include <stddef.h>

#define LAYERS_SWEEPS 12
#define LAYERS_GAP    14 /* vertically, between boxes of one layer */

struct layers_box {
	int w, h; /* in: the least; out: as wide as its column, as high as its links need */
	int x, y; /* out: left, top */
};

struct layers_point {
	int x, y;
};

struct layers_link {
	size_t from, to; /* in: boxes */
	int w, h;        /* in: the label's size */
	int x, y;        /* out: the label's left and top; the link passes below it */
	/* out: from `from` to `to`, in pairs: curves between pairs, a level line within one. Caller
	 * frees with layers_release. */
	struct layers_point *points;
	size_t n_points;
};

struct layers_size {
	int w, h;
};

struct layers_size layers_place(struct layers_box *boxes, size_t n_boxes, struct layers_link *links,
				size_t n_links);
void layers_release(struct layers_link *links, size_t n_links);

#endif
