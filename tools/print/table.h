/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: aligned columns for people: the header once, numbers to the right, two spaces between.
 * Cells are escaped (control bytes become \xNN). Where a line would not fit:
 *   1. the columns marked TABLE_MIDDLE, SPARE and TEXT are cut in the middle, as long as they can
 *      still be read; on a terminal TEXT (what was asked for: SQL, a path) keeps twice as much;
 *   2. on a terminal those marked SPARE are left out, from the right: better one column less than
 *      unreadable ones;
 *   3. on a terminal the rest is cut shorter, with one space between columns.
 */
#ifndef SONDE_TOOLS_TABLE_H
#define SONDE_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/print/term.h"

struct table;

enum table_align {
	TABLE_LEFT = 0,
	TABLE_RIGHT = 1,
	TABLE_MIDDLE = 2,      /* left, and may be cut */
	TABLE_SPARE_RIGHT = 3, /* right, and may be left out */
	TABLE_SPARE = 4,       /* left, may be cut and left out */
	TABLE_TEXT = 5         /* left, may be cut: but on a terminal SPARE columns go first */
};

struct table_column {
	const char *title; /* borrowed */
	enum table_align align;
};

struct table *table_new(const struct table_column *columns, size_t n);
/* One more column, before its cell of the first row. */
void table_column_add(struct table *t, const char *title, enum table_align align);
void table_free(struct table *t);
/* Cells go in row by row; each is copied. */
void table_cell(struct table *t, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* How the row at hand (of the last cell put in) looks where there are colours. */
void table_row_color(struct table *t, enum term_color c);
/* Leave out the columns in which every row has the same as all others and that is "" or "-". */
void table_omit_empty(struct table *t);
/* The text of this column (by its title), where two rows or more all have the same: it is left out.
 * NULL: it stays. Borrowed. */
const char *table_omit_equal(struct table *t, const char *title);
/* `width` columns at most, 0: as wide as it is. */
void table_print(const struct table *t, FILE *out, unsigned width);
/* How many of `n` rows are shown where `asked` (-n, 0: 30) were asked for. */
size_t table_rows(uint64_t asked, size_t n);
/* As an answer: on standard output, as wide as that is, and freed; where it has `n` rows `of` more,
 * how to see them is said, unless `quiet`. */
void table_answer(struct table *t, size_t n, size_t of, bool wide, bool quiet);
/* As on a terminal of that width, whatever `out` is. */
void table_print_fit(const struct table *t, FILE *out, unsigned width);

#endif
