/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_svg: a difference as a static picture. On top the profile after the change, each frame with
 * its width then; below, if there is any, what is gone, on the same scale, with its width before.
 * Colours and words are those of the page (tools/page/script/diff.js): blue for less, orange for
 * more, stronger for larger changes; pale for changes within the noise. A sign and the percentage
 * precede the name, and the title has both numbers.
 */
#ifndef SONDE_TOOLS_DIFF_SVG_H
#define SONDE_TOOLS_DIFF_SVG_H

#include <stdio.h>

#include "tools/diff/diff_print.h"

/* This many pixels wide. Errors are left on the stream. */
void diff_svg_write(const struct diff_view *v, unsigned width, FILE *out);

#endif
