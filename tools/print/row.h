/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row: one row of an answer, written as a line of a table or as a JSON object. A verb describes its
 * row once, in one function that makes one call for each column; so text and JSON cannot differ.
 *
 *   title, align  its column in the table; NULL: it is only in JSON
 *   key           its name in JSON; NULL: it is only in the table
 *
 * A function that describes a row makes the same calls for each row of a table: the calls for the
 * first row make the columns. What is not known is "-" in the table and null in JSON.
 */
#ifndef SONDE_TOOLS_ROW_H
#define SONDE_TOOLS_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/print/table.h"

struct row {
	struct table *table; /* the caller frees it */
	json_t *json;        /* the caller's reference */
	bool titled;         /* the table has its columns */
};

struct row row_of_table(void);
struct row row_of_json(void);
void row_end(struct row *r);
/* As table_row_color, where it is a table. */
void row_color(struct row *r, enum term_color c);

/* NULL and "" are not known. */
void row_text(struct row *r, const char *title, enum table_align align, const char *key,
	      const char *s);
/* The same, but "" stays "" in JSON. */
void row_word(struct row *r, const char *title, enum table_align align, const char *key,
	      const char *s);
/* "812": a number that names something. */
void row_number(struct row *r, const char *title, enum table_align align, const char *key,
		int64_t n, bool known);
/* "7 921"; 0 is "-" in the table. */
void row_count(struct row *r, const char *title, enum table_align align, const char *key,
	       uint64_t n, bool known);
/* "412 KiB"; 0 is "-" in the table. */
void row_bytes(struct row *r, const char *title, enum table_align align, const char *key,
	       uint64_t n, bool known);
/* "1.24 s". In JSON ns and us as integers. */
void row_ns(struct row *r, const char *title, enum table_align align, const char *key, int64_t ns,
	    bool known);
void row_us(struct row *r, const char *title, enum table_align align, const char *key, int64_t us,
	    bool known);
/* Only in the table (NULL: "-"), and only in JSON (takes the reference). */
void row_cell(struct row *r, const char *title, enum table_align align, const char *text);
void row_json(struct row *r, const char *key, json_t *value);
void row_time(struct row *r, const char *key, int64_t ns); /* only in JSON: json_set_time */

#endif
