/* SPDX-License-Identifier: Apache-2.0 */
/* table: aligned columns. */
#include "tools/print/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/print/term.h"

#define READ_MIN  20 /* what is cut to this can still be read */
#define TEXT_MIN  40 /* TABLE_TEXT on a terminal */
#define TIGHT_MIN 6  /* on a narrow terminal columns are not cut narrower than this */
#define LEFT_OUT  SIZE_MAX

#define ROWS_SHOWN 30 /* default of -n */

struct table {
	struct table_column *columns;
	size_t n_columns, cap_columns;
	char **cells; /* row by row */
	size_t n, cap;
	enum term_color *colors; /* of rows, as far as any was set */
	size_t n_colors, cap_colors;
	bool *omitted; /* by column; NULL: none */
};

struct layout {
	size_t *widths; /* by column, LEFT_OUT */
	size_t gap;     /* between columns */
};

struct table *table_new(const struct table_column *columns, size_t n)
{
	struct table *t = mem_alloc(sizeof(*t));

	for (size_t i = 0; i < n; i++)
		table_column_add(t, columns[i].title, columns[i].align);
	return t;
}

void table_column_add(struct table *t, const char *title, enum table_align align)
{
	mem_grow(t->columns, t->n_columns, t->cap_columns);
	t->columns[t->n_columns++] = (struct table_column){.title = title, .align = align};
}

void table_free(struct table *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->colors);
	free(t->omitted);
	free(t->columns);
	free(t);
}

void table_cell(struct table *t, const char *text)
{
	struct strbuf clean = STRBUF_INIT;

	strbuf_addshown(&clean, text, strlen(text));
	mem_grow(t->cells, t->n, t->cap);
	t->cells[t->n++] = strbuf_take(&clean);
}

void table_cellf(struct table *t, const char *fmt, ...)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&s, fmt, ap);
	va_end(ap);
	table_cell(t, strbuf_str(&s));
}

void table_row_color(struct table *t, enum term_color c)
{
	size_t row = t->n ? (t->n - 1) / t->n_columns : 0;

	while (t->n_colors <= row) {
		mem_grow(t->colors, t->n_colors, t->cap_colors);
		t->colors[t->n_colors++] = TERM_PLAIN;
	}
	t->colors[row] = c;
}

static const char *equal(const struct table *t, size_t column)
{
	for (size_t i = column + t->n_columns; i < t->n; i += t->n_columns)
		if (strcmp(t->cells[i], t->cells[column]))
			return NULL;
	return column < t->n ? t->cells[column] : NULL;
}

static void omit(struct table *t, size_t column)
{
	if (!t->omitted)
		t->omitted = mem_array(t->n_columns, sizeof(*t->omitted));
	t->omitted[column] = true;
}

void table_omit_empty(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *same = equal(t, i);

		if (same && (!*same || !strcmp(same, "-")))
			omit(t, i);
	}
}

const char *table_omit_equal(struct table *t, const char *title)
{
	for (size_t i = 0; t->n > t->n_columns && i < t->n_columns; i++) {
		const char *same = strcmp(t->columns[i].title, title) ? NULL : equal(t, i);

		if (!same || (t->omitted && t->omitted[i]))
			continue;
		omit(t, i);
		return same;
	}
	return NULL;
}

static void measure(const struct table *t, size_t *widths)
{
	size_t i, w;

	for (i = 0; i < t->n_columns; i++)
		widths[i] = term_columns(t->columns[i].title);
	for (i = 0; i < t->n; i++) {
		w = term_columns(t->cells[i]);
		if (w > widths[i % t->n_columns])
			widths[i % t->n_columns] = w;
	}
	for (i = 0; i < t->n_columns && t->omitted; i++)
		if (t->omitted[i])
			widths[i] = LEFT_OUT;
}

static bool may_be_cut(enum table_align a)
{
	return a == TABLE_MIDDLE || a == TABLE_SPARE || a == TABLE_TEXT;
}

static size_t line_width(const struct table *t, const size_t *widths, size_t gap)
{
	size_t total = 0, n = 0, i;

	for (i = 0; i < t->n_columns; i++)
		if (widths[i] != LEFT_OUT)
			total += widths[i] + (n++ ? gap : 0);
	return total;
}

/* Take from the widest column that may be cut, until the line fits. `text`: least of TABLE_TEXT. */
static void squeeze(const struct table *t, size_t *widths, unsigned width, size_t gap, size_t least,
		    size_t text)
{
	size_t total = line_width(t, widths, gap), i, widest;
	bool found;

	while (total > width) {
		found = false;
		widest = 0;
		for (i = 0; i < t->n_columns; i++) {
			if (!may_be_cut(t->columns[i].align) || widths[i] == LEFT_OUT ||
			    widths[i] <= (t->columns[i].align == TABLE_TEXT ? text : least))
				continue;
			if (!found || widths[i] > widths[widest])
				widest = i;
			found = true;
		}
		if (!found)
			return;
		widths[widest]--;
		total--;
	}
}

/* Of those that are not left out. */
static void measure_rest(const struct table *t, size_t *widths)
{
	cleanup_free size_t *whole = mem_array(t->n_columns, sizeof(*whole));

	measure(t, whole);
	for (size_t i = 0; i < t->n_columns; i++)
		if (widths[i] != LEFT_OUT)
			widths[i] = whole[i];
}

/* For a terminal that is narrower still. Returns the gap between columns. */
static size_t tighten(const struct table *t, size_t *widths, unsigned width)
{
	bool out = false;
	size_t i;

	for (i = t->n_columns; i-- > 0 && line_width(t, widths, 2) > width;)
		if ((t->columns[i].align == TABLE_SPARE_RIGHT ||
		     t->columns[i].align == TABLE_SPARE) &&
		    widths[i] != LEFT_OUT) {
			widths[i] = LEFT_OUT;
			out = true;
		}
	if (out) { /* what stays has their room */
		measure_rest(t, widths);
		squeeze(t, widths, width, 2, READ_MIN, TEXT_MIN);
	}
	squeeze(t, widths, width, 2, TIGHT_MIN, TIGHT_MIN);
	return line_width(t, widths, 2) > width ? 1 : 2;
}

static void add_padded(struct strbuf *line, const char *text, enum table_align align, size_t width,
		       bool last)
{
	const bool right = align == TABLE_RIGHT || align == TABLE_SPARE_RIGHT;
	struct strbuf cut cleanup_strbuf = STRBUF_INIT;
	size_t used;

	if (may_be_cut(align))
		term_add_middle(&cut, text, width);
	else
		strbuf_addstr(&cut, text);
	used = term_columns(strbuf_str(&cut));
	if (right && used < width)
		strbuf_addf(line, "%*s", (int)(width - used), "");
	strbuf_addstr(line, strbuf_str(&cut));
	if (!right && !last && used < width)
		strbuf_addf(line, "%*s", (int)(width - used), "");
}

static void print_row(const struct table *t, char *const *cells, const struct layout *l,
		      enum term_color color, FILE *out)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	size_t last = t->n_columns, i;
	bool any = false;

	while (last && l->widths[last - 1] == LEFT_OUT)
		last--;
	for (i = 0; i < last; i++) {
		const char *text = cells ? cells[i] : t->columns[i].title;

		if (l->widths[i] == LEFT_OUT)
			continue;
		if (any)
			strbuf_addf(&line, "%*s", (int)l->gap, "");
		any = true;
		add_padded(&line, text, t->columns[i].align, l->widths[i], i + 1 == last);
	}
	if (color == TERM_PLAIN)
		fprintf(out, "%s\n", strbuf_str(&line));
	else
		fprintf(out, "%s%s%s\n", term_on(out, color), strbuf_str(&line), term_off(out));
}

static void print(const struct table *t, FILE *out, unsigned width, bool fit)
{
	struct layout l = {.widths = mem_array(t->n_columns, sizeof(*l.widths)), .gap = 2};
	size_t i;

	measure(t, l.widths);
	if (width)
		squeeze(t, l.widths, width, l.gap, READ_MIN, fit ? TEXT_MIN : READ_MIN);
	if (width && fit)
		l.gap = tighten(t, l.widths, width);
	print_row(t, NULL, &l, TERM_BOLD, out);
	for (i = 0; i + t->n_columns <= t->n; i += t->n_columns)
		print_row(t, t->cells + i, &l,
			  i / t->n_columns < t->n_colors ? t->colors[i / t->n_columns] : TERM_PLAIN,
			  out);
	free(l.widths);
}

void table_print(const struct table *t, FILE *out, unsigned width)
{
	print(t, out, width, term_is_tty(out));
}

void table_print_fit(const struct table *t, FILE *out, unsigned width)
{
	print(t, out, width, true);
}

void table_answer(struct table *t, size_t n, size_t of, bool wide, bool quiet)
{
	table_print(t, stdout, wide ? 0 : term_width(stdout));
	table_free(t);
	if (n < of && !quiet)
		fprintf(stderr, "%zu more: -n %zu shows them\n", of - n, of);
}

size_t table_rows(uint64_t asked, size_t n)
{
	const uint64_t most = asked ? asked : ROWS_SHOWN;

	return n < most ? n : (size_t)most;
}
