/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/schema/jsonschema.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/print/json.h"

#define DEPTH_MOST 16

/* What a key's ending says about its value. */
static const struct {
	const char *end, *about;
} UNITS[] = {
	{"_ns", "nanoseconds; a time: since 1970, UTC"},
	{"_us", "microseconds"},
	{"_seconds", "seconds"},
	{"_bytes", "bytes"},
	{"_bytes_per_s", "bytes per second"},
	{"_share", "a part of 1"},
	{"_cores", "CPUs: 1.5 is one and a half"},
	{"_total", "how many there are in all"},
};

static json_t *object_of(const char **at, char end, int depth);

static void skip(const char **at)
{
	*at += strspn(*at, " \n");
}

static json_t *nullable(const char *type)
{
	return json_pack("{s:[s,s]}", "type", type, "null");
}

/* `[$]`, `[#]`, `[%]`: a list of texts, whole numbers or numbers, of which any may be null;
 * `[...]`: of objects. `always`: "array"; NULL: it may be null. */
static json_t *list_of(const char **at, int depth, const char *always)
{
	const char *type = **at == '$' ? "string" : **at == '#' ? "integer" : "number";
	json_t *items;

	if (strchr("$#%", **at) && **at) {
		(*at)++;
		if (**at != ']')
			return NULL;
		(*at)++;
		items = nullable(type);
	} else {
		items = object_of(at, ']', depth + 1);
	}
	return !items ? NULL :
	       always ? json_pack("{s:s, s:o}", "type", always, "items", items) :
			json_pack("{s:[s,s], s:o}", "type", "array", "null", "items", items);
}

static json_t *value_of(const char **at, int depth)
{
	static const char marks[] = "#%!*{[?";
	const char mark = **at;

	if (!mark || !strchr(marks, mark))
		return nullable("string");
	(*at)++;
	switch (mark) {
	case '#':
		return nullable("integer");
	case '%':
		return nullable("number");
	case '!':
		return nullable("boolean");
	case '*':
		return json_object(); /* anything */
	case '[':
		return list_of(at, depth, "array");
	case '?':
		if (**at != '[')
			return NULL;
		(*at)++;
		return list_of(at, depth, NULL);
	default:
		return object_of(at, '}', depth + 1);
	}
}

static void describe(json_t *value, const char *key)
{
	const size_t len = strlen(key);

	for (size_t i = 0; i < ARRAY_SIZE(UNITS); i++) {
		const size_t n = strlen(UNITS[i].end);

		if (len > n && !strcmp(key + len - n, UNITS[i].end))
			json_object_set_new(value, "description", json_string(UNITS[i].about));
	}
}

static bool add_field(const char **at, json_t *properties, int depth)
{
	char key[64];
	size_t n = 0;
	json_t *value;

	while (isalnum((unsigned char)(*at)[n]) || (*at)[n] == '_')
		n++;
	if (!n || n >= sizeof(key))
		return false;
	memcpy(key, *at, n);
	key[n] = '\0';
	*at += n;
	value = value_of(at, depth);
	if (!value)
		return false;
	describe(value, key);
	return !json_object_set_new(properties, key, value);
}

/* Fields up to `end`, which is taken. An object without any has keys that depend on what was
 * asked. */
static json_t *object_of(const char **at, char end, int depth)
{
	json_t *properties = json_object();
	bool ok = depth < DEPTH_MOST;

	for (skip(at); ok && **at != end; skip(at))
		ok = add_field(at, properties, depth);
	if (!ok) {
		json_decref(properties);
		return NULL;
	}
	*at += end != '\0';
	return json_pack("{s:[s,s], s:o}", "type", "object", "null", "properties", properties);
}

json_t *jsonschema_of(const char *shape)
{
	return object_of(&shape, '\0', 0);
}

/* The keys of every envelope, before the verb's own. */
static json_t *with_envelope(json_t *own)
{
	json_t *whole = jsonschema_of("schema from from_ns# to to_ns# total# rest# warnings[$]");

	json_object_update(json_object_get(whole, "properties"),
			   json_object_get(own, "properties"));
	json_object_set_new(whole, "required",
			    json_pack("[s,s,s,s,s,s,s]", "schema", "from", "from_ns", "to", "to_ns",
				      "rows", "warnings"));
	json_decref(own);
	return whole;
}

/* Says of lists that have to be asked for how. */
static void describe_lists(json_t *properties, const char *lists)
{
	const char *key;
	json_t *value;

	json_object_foreach (properties, key, value)
		if (lists && json_names_has(lists, key))
			json_object_set_new(value, "description",
					    json_sprintf("only with --with %s", key));
}

int jsonschema_print(const char *verb, FILE *out)
{
	const char *shape = jsonshape_of(verb);
	const bool alone = shape && *shape == '=';
	json_t *own = shape ? jsonschema_of(shape + alone) : NULL, *top;
	int rc;

	if (!own)
		return -ENOENT;
	if (!alone)
		own = with_envelope(own);
	describe_lists(json_object_get(own, "properties"), jsonshape_lists(verb));
	top = json_pack("{s:s, s:o, s:s}", "$schema",
			"https://json-schema.org/draft/2020-12/schema", "title",
			json_sprintf("sonde %s --json", verb), "type", "object");
	json_object_update_missing(top, own);
	json_decref(own);
	rc = json_dumpf(top, out, JSON_INDENT(1));
	json_decref(top);
	return rc || fputc('\n', out) == EOF || fflush(out) ? -EIO : 0;
}
