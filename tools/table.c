/* SPDX-License-Identifier: Apache-2.0 */
/* table: aligned columns. */
#include "tools/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/term.h"

#define MIDDLE_MIN 12 /* columns are not cut narrower than this */

struct table {
	struct table_column *columns;
	size_t n_columns;
	char **cells; /* row by row */
	size_t n, cap;
	enum term_color *colors; /* of rows, as far as any was set */
	size_t n_colors, cap_colors;
};

struct table *table_new(const struct table_column *columns, size_t n)
{
	struct table *t = mem_alloc(sizeof(*t));

	t->columns = mem_array(n, sizeof(*columns));
	memcpy(t->columns, columns, n * sizeof(*columns));
	t->n_columns = n;
	return t;
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
	free(t->columns);
	free(t);
}

void table_cell(struct table *t, const char *text)
{
	struct strbuf clean = STRBUF_INIT;

	strbuf_addutf8(&clean, text, strlen(text));
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
}

/* Take from the widest column that may be cut, until the line fits. */
static void squeeze(const struct table *t, size_t *widths, unsigned width)
{
	size_t total = 2 * (t->n_columns - 1), i, widest;
	bool found;

	for (i = 0; i < t->n_columns; i++)
		total += widths[i];
	while (total > width) {
		found = false;
		widest = 0;
		for (i = 0; i < t->n_columns; i++) {
			if (t->columns[i].align != TABLE_MIDDLE || widths[i] <= MIDDLE_MIN)
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

static void add_padded(struct strbuf *line, const char *text, enum table_align align, size_t width, bool last)
{
	struct strbuf cut cleanup_strbuf = STRBUF_INIT;
	size_t used;

	if (align == TABLE_MIDDLE)
		term_add_middle(&cut, text, width);
	else
		strbuf_addstr(&cut, text);
	used = term_columns(strbuf_str(&cut));
	if (align == TABLE_RIGHT && used < width)
		strbuf_addf(line, "%*s", (int)(width - used), "");
	strbuf_addstr(line, strbuf_str(&cut));
	if (align != TABLE_RIGHT && !last && used < width)
		strbuf_addf(line, "%*s", (int)(width - used), "");
}

static void print_row(const struct table *t, char *const *cells, const size_t *widths, enum term_color color, FILE *out)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	size_t i;

	for (i = 0; i < t->n_columns; i++) {
		const char *text = cells ? cells[i] : t->columns[i].title;

		if (i)
			strbuf_addstr(&line, "  ");
		add_padded(&line, text, t->columns[i].align, widths[i], i + 1 == t->n_columns);
	}
	if (color == TERM_PLAIN)
		fprintf(out, "%s\n", strbuf_str(&line));
	else
		fprintf(out, "%s%s%s\n", term_on(out, color), strbuf_str(&line), term_off(out));
}

void table_print(const struct table *t, FILE *out, unsigned width)
{
	size_t *widths = mem_array(t->n_columns, sizeof(*widths));
	size_t i;

	measure(t, widths);
	if (width)
		squeeze(t, widths, width);
	print_row(t, NULL, widths, TERM_BOLD, out);
	for (i = 0; i + t->n_columns <= t->n; i += t->n_columns)
		print_row(t, t->cells + i, widths,
			  i / t->n_columns < t->n_colors ? t->colors[i / t->n_columns] : TERM_PLAIN, out);
	free(widths);
}
