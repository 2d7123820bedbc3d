/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_svg: a flame graph as a still picture: SVG 1.1 without script or style sheet, for documents
 * and printers. The root is at the top; each frame has a title (what a pointer resting on it
 * shows). Light, on white. Frames narrower than a fifth of a point are left out, which the picture
 * says. What XML cannot hold within a name becomes \xNN.
 */
#ifndef SONDE_TOOLS_FLAME_SVG_H
#define SONDE_TOOLS_FLAME_SVG_H

#include <stdio.h>

#include "tools/page/flame_html.h"

/* Of the page's first fold, grouped as it is, so many pixels wide. Errors are left on the stream.
 */
void flame_svg_write(const struct flame_page *p, unsigned width, FILE *out);

#endif
