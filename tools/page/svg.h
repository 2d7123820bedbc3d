/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg: elements of static pictures of stacks (flame_svg, diff_svg): SVG 1.1 without script or style
 * sheet, dark text on light fills, on white. Characters that XML cannot contain become \xNN.
 */
#ifndef SONDE_TOOLS_SVG_H
#define SONDE_TOOLS_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

#define SVG_WIDTH     1200 /* pixels, by default */
#define SVG_WIDTH_MIN 200
#define SVG_WIDTH_MAX 20000
#define SVG_ROW       18

/* The requested width, 0: the default. EXIT_USAGE if it is out of range, or if the output is no
 * picture. */
int svg_width_of(uint64_t asked, bool picture, unsigned *width, struct err *e);

/* A frame: its colour "#rrggbb", its title as HTML text (page_add_text), its label shortened to
 * fit. */
void svg_frame(struct strbuf *s, double x, unsigned y, double width, const char *colour,
	       const char *title, const char *label);
/* A line of text; size 0: the default. */
void svg_text(struct strbuf *s, unsigned x, unsigned y, unsigned size, const char *text);
/* Errors are left on the stream. */
void svg_write(unsigned width, unsigned height, const struct strbuf *head,
	       const struct strbuf *body, FILE *out);

#endif
