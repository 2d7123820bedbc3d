/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/row.h"

#include <stdio.h>

#include "schema/base/units.h"
#include "tools/print/json.h"

struct row row_of_table(void)
{
	return (struct row){.table = table_new(NULL, 0)};
}

struct row row_of_json(void)
{
	return (struct row){.json = json_object()};
}

void row_end(struct row *r)
{
	r->titled = true;
}

void row_color(struct row *r, enum term_color c)
{
	if (r->table)
		table_row_color(r->table, c);
}

void row_cell(struct row *r, const char *title, enum table_align align, const char *text)
{
	if (!r->table || !title)
		return;
	if (!r->titled)
		table_column_add(r->table, title, align);
	table_cell(r->table, text ? text : "-");
}

void row_json(struct row *r, const char *key, json_t *value)
{
	if (r->json && key)
		json_object_set_new(r->json, key, value);
	else
		json_decref(value);
}

void row_time(struct row *r, const char *key, int64_t ns)
{
	if (r->json)
		json_set_time(r->json, key, ns);
}

void row_text(struct row *r, const char *title, enum table_align align, const char *key,
	      const char *s)
{
	row_cell(r, title, align, s && *s ? s : NULL);
	if (r->json && key)
		row_json(r, key, json_text_or_null(s));
}

void row_word(struct row *r, const char *title, enum table_align align, const char *key,
	      const char *s)
{
	row_cell(r, title, align, s && *s ? s : NULL);
	if (r->json && key)
		row_json(r, key, json_text(s));
}

static void number(struct row *r, const char *title, enum table_align align, const char *key,
		   int64_t n, bool known, const char *text)
{
	row_cell(r, title, align, text);
	if (r->json && key)
		row_json(r, key, json_number_or_null(n, known));
}

void row_number(struct row *r, const char *title, enum table_align align, const char *key,
		int64_t n, bool known)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)n);
	number(r, title, align, key, n, known, known ? text : NULL);
}

void row_count(struct row *r, const char *title, enum table_align align, const char *key,
	       uint64_t n, bool known)
{
	char text[UNITS_MAX];

	number(r, title, align, key, (int64_t)n, known,
	       known && n ? units_count(n, text, sizeof(text)) : NULL);
}

void row_bytes(struct row *r, const char *title, enum table_align align, const char *key,
	       uint64_t n, bool known)
{
	char text[UNITS_MAX];

	number(r, title, align, key, (int64_t)n, known,
	       known && n ? units_bytes(n, text, sizeof(text)) : NULL);
}

void row_ns(struct row *r, const char *title, enum table_align align, const char *key, int64_t ns,
	    bool known)
{
	char text[UNITS_MAX];

	number(r, title, align, key, ns, known, known ? units_ns(ns, text, sizeof(text)) : NULL);
}

void row_us(struct row *r, const char *title, enum table_align align, const char *key, int64_t us,
	    bool known)
{
	char text[UNITS_MAX];

	number(r, title, align, key, us, known,
	       known ? units_ns(us * 1000, text, sizeof(text)) : NULL);
}
