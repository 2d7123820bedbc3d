/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs and their options as JSON. Man pages are made from it, and tests read it. */
#include "tools/verbs/help.h"

#include "tools/print/json.h"

static json_t *option_json(const struct option *o)
{
	const char letter[2] = {o->letter, '\0'};
	json_t *row = json_object();

	json_object_set_new(row, "name", json_text(o->name));
	json_object_set_new(row, "letter", json_text(o->letter ? letter : NULL));
	json_object_set_new(row, "arg", json_text(o->type == OPTION_FLAG ? NULL : o->arg));
	json_object_set_new(row, "repeatable", json_boolean(o->type == OPTION_LIST));
	json_object_set_new(row, "help", json_text(o->help));
	return row;
}

static json_t *table_json(const struct option *table)
{
	json_t *rows = json_array();

	for (const struct option *o = table; o && o->name; o++)
		json_array_append_new(rows, option_json(o));
	return rows;
}

static json_t *verb_json(const struct verb *v)
{
	static const char *const names[VERB_TABLES] = {"options", "json",    "store",
						       "range",   "filters", "common"};
	const struct option *tables[VERB_TABLES];
	json_t *row = json_object(), *examples = json_array();
	size_t i;

	for (const char *const *x = v->examples; *x; x++)
		json_array_append_new(examples, json_text(*x));
	json_object_set_new(row, "verb", json_text(v->name));
	json_object_set_new(row, "now", json_text(v->now));
	json_object_set_new(row, "summary", json_text(v->summary));
	json_object_set_new(row, "usage", json_text(v->usage));
	json_object_set_new(row, "examples", examples);
	json_object_set_new(row, "more", json_text(v->more));
	verb_tables(v, tables);
	for (i = 0; i < VERB_TABLES; i++)
		json_object_set_new(row, names[i], table_json(tables[i]));
	return row;
}

int help_json(const struct verb *only, FILE *out)
{
	json_t *envelope = json_envelope("help", 0, 0);

	for (const struct verb *const *v = VERBS; *v; v++)
		if (!only || *v == only)
			json_array_append_new(json_rows(envelope), verb_json(*v));
	return json_print(envelope, out, 0);
}
