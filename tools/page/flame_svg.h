/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_svg: a flame graph as a static picture: SVG 1.1 without script or style sheet, for
 * documents and printers. The root is at the top; each frame has a title (shown under the pointer).
 * Light, on white. Frames narrower than a fifth of a point are omitted, which the picture says.
 * Characters that XML cannot contain become \xNN.
 */
#ifndef SONDE_TOOLS_FLAME_SVG_H
#define SONDE_TOOLS_FLAME_SVG_H

#include <stdio.h>

#include "tools/page/flame_html.h"

/* Draws the page's first fold, with its grouping, this many pixels wide. Errors are left on the
 * stream. */
void flame_svg_write(const struct flame_page *p, unsigned width, FILE *out);

#endif
