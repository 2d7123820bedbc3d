/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: sentences on a terminal, broken between words; elsewhere one line, for programs that read
 * lines. */
#ifndef SONDE_TOOLS_WRAP_H
#define SONDE_TOOLS_WRAP_H

#include <stddef.h>
#include <stdio.h>

#include "schema/base/strbuf.h"

/* Adds `text`, broken at spaces into lines of at most `width` columns (0: not at all), those after
 * the first with `indent` spaces before. A longer word gets its own line. Colour escape sequences
 * take no columns. */
void wrap_add(struct strbuf *out, const char *text, unsigned width, unsigned indent);
/* The same and a newline, as wide as the terminal is. */
void wrap_print(FILE *out, const char *text, unsigned indent);

#endif
