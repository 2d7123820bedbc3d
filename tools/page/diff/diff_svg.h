/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_svg: a difference as a still picture. On top what there is after, each frame as wide as it
 * is then; below, where there is any, what is gone, in the same scale, as wide as it was. Colours
 * and words are those of the page (tools/page/script/diff.js): blue for less, orange for more, the
 * further from the same the stronger; what is no more than noise is pale. A sign and the percent
 * stand before the name, and both numbers in the title.
 */
#ifndef SONDE_TOOLS_DIFF_SVG_H
#define SONDE_TOOLS_DIFF_SVG_H

#include <stdio.h>

#include "tools/diff/diff_print.h"

/* So many pixels wide. Errors are left on the stream. */
void diff_svg_write(const struct diff_view *v, unsigned width, FILE *out);

#endif
