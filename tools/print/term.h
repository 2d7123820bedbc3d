/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term: what a stream can show: colours, width. Colours only on a terminal; NO_COLOR, TERM=dumb and
 * --color=never switch them off, --color=always and CLICOLOR_FORCE on. Colour is never the only
 * sign: a word or a character says the same.
 */
#ifndef SONDE_TOOLS_TERM_H
#define SONDE_TOOLS_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/strbuf.h"

enum term_color {
	TERM_PLAIN = 0,
	TERM_BOLD,
	TERM_DIM,
	TERM_RED,
	TERM_GREEN,
	TERM_YELLOW,
	TERM_CYAN
};

/* "auto", "always", "never", NULL for auto. -EINVAL for another. */
int term_set_color(const char *mode);
bool term_has_color(FILE *f);
/* Escape sequence, or "" where `f` shows none. */
const char *term_on(FILE *f, enum term_color c);
const char *term_off(FILE *f);
bool term_is_tty(FILE *f);
/* A terminal, although what is written will go through a pipe to a pager: as wide and colourful as
 * it is now. */
void term_keep(FILE *f);
unsigned term_width(FILE *f); /* columns; 100 where there is no terminal */

/* Columns that a UTF-8 string takes on a terminal. */
size_t term_columns(const char *s);
/* Add `s` cut in the middle (`com.foo…Handler.run`) to at most `columns`; control characters are
 * shown. */
void term_add_middle(struct strbuf *out, const char *s, size_t columns);

/* printf of lines that hold names: what a terminal would obey is shown instead. */
void term_printf(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
