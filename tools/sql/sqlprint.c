/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sql/sqlprint.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/print/json.h"
#include "tools/print/term.h"

#define BOX_ROWS 1000

static void add_hex(struct strbuf *out, const void *blob, int len)
{
	for (int i = 0; i < len; i++)
		strbuf_addf(out, "%02x", ((const unsigned char *)blob)[i]);
}

/* The cell's bytes as they are; "" for NULL. */
static void add_cell(struct strbuf *out, sqlite3_stmt *st, int col)
{
	if (sqlite3_column_type(st, col) == SQLITE_BLOB)
		add_hex(out, sqlite3_column_blob(st, col), sqlite3_column_bytes(st, col));
	else if (sqlite3_column_type(st, col) != SQLITE_NULL)
		strbuf_add(out, sqlite3_column_text(st, col),
			   (size_t)sqlite3_column_bytes(st, col));
}

/* --- csv --- */

static void csv_field(struct strbuf *line, const char *s, size_t len)
{
	bool quote = !len;

	for (size_t i = 0; i < len && !quote; i++)
		quote = strchr("\",\r\n", s[i]) != NULL || s[i] == '\0';
	if (!len)
		return;
	if (!quote) {
		strbuf_add(line, s, len);
		return;
	}
	strbuf_addch(line, '"');
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '"')
			strbuf_addch(line, '"');
		strbuf_addch(line, s[i]);
	}
	strbuf_addch(line, '"');
}

static void csv_header(sqlite3_stmt *st, int cols, struct strbuf *line, FILE *out)
{
	for (int i = 0; i < cols; i++) {
		const char *name = sqlite3_column_name(st, i);

		strbuf_addstr(line, i ? "," : "");
		csv_field(line, name, strlen(name));
	}
	fprintf(out, "%s\n", strbuf_str(line));
}

static int print_csv(sqlite3_stmt *st, FILE *out, uint64_t most, uint64_t *n)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	struct strbuf cell cleanup_strbuf = STRBUF_INIT;
	int cols = sqlite3_column_count(st), rc = sqlite3_step(st);

	/* a query that fails at once has printed nothing */
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		csv_header(st, cols, &line, out);
	for (; rc == SQLITE_ROW; rc = sqlite3_step(st)) {
		if ((*n)++ >= most)
			continue;
		strbuf_reset(&line);
		for (int i = 0; i < cols; i++) {
			strbuf_reset(&cell);
			add_cell(&cell, st, i);
			strbuf_addstr(&line, i ? "," : "");
			csv_field(&line, strbuf_str(&cell), cell.len);
		}
		strbuf_addch(&line, '\n');
		fwrite(line.buf, 1, line.len, out);
	}
	return rc;
}

/* --- json --- */

static json_t *json_cell(sqlite3_stmt *st, int col)
{
	struct strbuf hex = STRBUF_INIT;
	json_t *v;

	switch (sqlite3_column_type(st, col)) {
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(st, col));
	case SQLITE_FLOAT:
		v = json_real(sqlite3_column_double(st, col));
		return v ? v : json_null(); /* infinities have no JSON */
	case SQLITE_NULL:
		return json_null();
	case SQLITE_BLOB:
		add_cell(&hex, st, col);
		v = json_text(strbuf_str(&hex));
		strbuf_release(&hex);
		return v;
	default:
		return json_text((const char *)sqlite3_column_text(st, col));
	}
}

static json_t *json_row(sqlite3_stmt *st)
{
	json_t *row = json_object();

	for (int i = 0; i < sqlite3_column_count(st); i++)
		json_object_set_new_nocheck(row, sqlite3_column_name(st, i), json_cell(st, i));
	return row;
}

static int print_json(sqlite3_stmt *st, FILE *out, json_t *rows, uint64_t most, uint64_t *n)
{
	int rc;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		json_t *row = (*n)++ < most ? json_row(st) : NULL;

		if (!row)
			continue;
		if (rows) {
			json_array_append_new(rows, row);
			continue;
		}
		json_dumpf(row, out, JSON_COMPACT);
		fputc('\n', out);
		json_decref(row);
	}
	return rc;
}

/* --- box --- */

struct box {
	int cols;
	size_t *width;
	bool *number; /* to the right */
	char **cells; /* row by row */
	size_t n;
};

static void box_rule(const struct box *b, FILE *out, const char *left, const char *middle,
		     const char *right)
{
	for (int c = 0; c < b->cols; c++) {
		fputs(c ? middle : left, out);
		for (size_t i = 0; i < b->width[c] + 2; i++)
			fputs("─", out);
	}
	fprintf(out, "%s\n", right);
}

static void box_line(const struct box *b, FILE *out, char *const *cells, bool header)
{
	for (int c = 0; c < b->cols; c++) {
		int pad = (int)(b->width[c] - term_columns(cells[c]));
		bool right = b->number[c] && !header;

		fprintf(out, "│ %*s%s%*s ", right ? pad : 0, "", cells[c], right ? 0 : pad, "");
	}
	fputs("│\n", out);
}

static char *box_cell(sqlite3_stmt *st, int col)
{
	struct strbuf raw cleanup_strbuf = STRBUF_INIT;
	struct strbuf shown = STRBUF_INIT;

	add_cell(&raw, st, col);
	strbuf_addshown(&shown, strbuf_str(&raw), raw.len);
	return strbuf_take(&shown);
}

static void box_print(struct box *b, FILE *out, char *const *names)
{
	for (int c = 0; c < b->cols; c++)
		b->width[c] = term_columns(names[c]);
	for (size_t i = 0; i < b->n * (size_t)b->cols; i++) {
		size_t w = term_columns(b->cells[i]);

		if (w > b->width[i % (size_t)b->cols])
			b->width[i % (size_t)b->cols] = w;
	}
	box_rule(b, out, "┌", "┬", "┐");
	box_line(b, out, names, true);
	box_rule(b, out, "├", "┼", "┤");
	for (size_t r = 0; r < b->n; r++)
		box_line(b, out, b->cells + r * (size_t)b->cols, false);
	box_rule(b, out, "└", "┴", "┘");
	for (size_t i = 0; i < b->n * (size_t)b->cols; i++)
		free(b->cells[i]);
	b->n = 0;
}

static int print_box(sqlite3_stmt *st, FILE *out, uint64_t most, uint64_t *n)
{
	struct box b = {.cols = sqlite3_column_count(st)};
	size_t cols = (size_t)b.cols;
	char **names = mem_array(cols, sizeof(*names));
	int rc;

	b.width = mem_array(cols, sizeof(*b.width));
	b.number = mem_array(cols, sizeof(*b.number));
	b.cells = mem_array(BOX_ROWS * cols, sizeof(*b.cells));
	for (int c = 0; c < b.cols; c++) {
		names[c] = mem_strdup(sqlite3_column_name(st, c));
		b.number[c] = true;
	}
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if ((*n)++ >= most)
			continue;
		if (b.n == BOX_ROWS)
			box_print(&b, out, names);
		for (int c = 0; c < b.cols; c++) {
			int type = sqlite3_column_type(st, c);

			if (type == SQLITE_TEXT || type == SQLITE_BLOB)
				b.number[c] = false;
			b.cells[b.n * cols + (size_t)c] = box_cell(st, c);
		}
		b.n++;
	}
	if (*n || rc == SQLITE_DONE)
		box_print(&b, out, names);
	for (int c = 0; c < b.cols; c++)
		free(names[c]);
	free(names);
	free(b.width);
	free(b.number);
	free(b.cells);
	return rc;
}

int sqlprint(sqlite3_stmt *st, enum sqlprint_form form, FILE *out, json_t *rows, uint64_t most,
	     uint64_t *n)
{
	switch (form) {
	case SQLPRINT_CSV:
		return print_csv(st, out, most, n);
	case SQLPRINT_JSON:
	case SQLPRINT_NDJSON:
		return print_json(st, out, form == SQLPRINT_JSON ? rows : NULL, most, n);
	default:
		return print_box(st, out, most, n);
	}
}
