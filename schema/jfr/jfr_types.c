/* SPDX-License-Identifier: Apache-2.0 */
/* jfr_types: the metadata of a chunk: strings, then a tree of elements whose attributes are pairs
 * of strings: root > metadata > class > field > annotation. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/jfr/jfr_in.h"

#define STRINGS_MAX  (1u << 20)
#define CLASSES_MAX  65536
#define FIELDS_MAX   (1u << 20)
#define DEPTH_MAX    16
#define ELEMENTS_MAX (4u << 20)

struct tree {
	struct jfr_chunk *c;
	struct jfr_cursor at;
	const char **strings;
	size_t n_strings;
	size_t elements;
};

struct attributes {
	const char *id, *name, *class_id, *is_key, *dimension, *value;
};

static const char *string_at(const struct tree *t, uint64_t i)
{
	return i < t->n_strings ? t->strings[i] : "";
}

static uint64_t number(const char *s)
{
	return s ? strtoull(s, NULL, 10) : 0;
}

static enum jfr_base base_of(const char *name)
{
	static const struct {
		const char *name;
		enum jfr_base base;
	} bases[] = {
		{"boolean", JFR_BYTE},  {"byte", JFR_BYTE},     {"char", JFR_INTEGER},
		{"short", JFR_INTEGER}, {"int", JFR_INTEGER},   {"long", JFR_INTEGER},
		{"float", JFR_FLOAT},   {"double", JFR_DOUBLE}, {"java.lang.String", JFR_STRING}};

	for (size_t i = 0; i < ARRAY_SIZE(bases); i++)
		if (!strcmp(bases[i].name, name))
			return bases[i].base;
	return JFR_STRUCT;
}

static void take_attribute(struct attributes *a, const char *key, const char *value)
{
	static const struct {
		const char *key;
		size_t at;
	} keys[] = {{"id", offsetof(struct attributes, id)},
		    {"name", offsetof(struct attributes, name)},
		    {"class", offsetof(struct attributes, class_id)},
		    {"constantPool", offsetof(struct attributes, is_key)},
		    {"dimension", offsetof(struct attributes, dimension)},
		    {"value", offsetof(struct attributes, value)}};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].key, key))
			*(const char **)((char *)a + keys[i].at) = value;
}

static void begin_class(struct tree *t, const struct attributes *a)
{
	struct jfr_chunk *c = t->c;

	if (c->n_classes == CLASSES_MAX) {
		c->why = "it declares too many types";
		return;
	}
	mem_grow(c->classes, c->n_classes, c->cap_classes);
	c->classes[c->n_classes] = (struct jfr_class){.name = a->name ? a->name : "",
						      .id = number(a->id),
						      .base = base_of(a->name ? a->name : ""),
						      .field = c->n_fields};
	idmap_set(&c->class_of, number(a->id), c->n_classes++);
}

static void add_field(struct tree *t, const struct attributes *a)
{
	struct jfr_chunk *c = t->c;

	if (!c->n_classes || c->n_fields == FIELDS_MAX) {
		c->why = "it declares a field of no type, or too many";
		return;
	}
	mem_grow(c->fields, c->n_fields, c->cap_fields);
	c->fields[c->n_fields++] =
		(struct jfr_field){.name = a->name ? a->name : "",
				   .type_id = number(a->class_id),
				   .is_key = a->is_key && !strcmp(a->is_key, "true"),
				   .is_list = number(a->dimension) > 0};
	c->classes[c->n_classes - 1].n_fields++;
}

static void add_note(struct tree *t, const struct attributes *a)
{
	struct jfr_chunk *c = t->c;

	if (!c->n_fields || !a->value)
		return;
	mem_grow(c->notes, c->n_notes, c->cap_notes);
	c->notes[c->n_notes++] = (struct jfr_note){
		.field = c->n_fields - 1, .type_id = number(a->class_id), .value = a->value};
}

static void read_element(struct tree *t, const char *parent, unsigned depth)
{
	const char *name = string_at(t, jfr_varint(&t->at));
	uint64_t n = jfr_varint(&t->at);
	struct attributes a = {0};

	if (depth > DEPTH_MAX || ++t->elements > ELEMENTS_MAX)
		t->c->why = "its metadata are nested too deep, or too many";
	for (; n && !t->at.bad && !t->c->why; n--) {
		const char *key = string_at(t, jfr_varint(&t->at)),
			   *value = string_at(t, jfr_varint(&t->at));

		take_attribute(&a, key, value);
	}
	if (t->at.bad || t->c->why)
		return;
	if (!strcmp(name, "class"))
		begin_class(t, &a);
	else if (!strcmp(name, "field"))
		add_field(t, &a);
	else if (!strcmp(name, "annotation") && !strcmp(parent, "field"))
		add_note(t, &a);
	for (n = jfr_varint(&t->at); n && !t->at.bad && !t->c->why; n--)
		read_element(t, name, depth + 1);
}

static void resolve(struct jfr_chunk *c)
{
	static const char *const units[] = {[JFR_TICKS] = "TICKS",
					    [JFR_NANOSECONDS] = "NANOSECONDS",
					    [JFR_MICROSECONDS] = "MICROSECONDS",
					    [JFR_MILLISECONDS] = "MILLISECONDS",
					    [JFR_SECONDS] = "SECONDS"};
	uint64_t i;

	for (size_t f = 0; f < c->n_fields; f++)
		c->fields[f].type = idmap_get(&c->class_of, c->fields[f].type_id, &i) ?
					    (uint32_t)i :
					    UINT32_MAX;
	for (size_t k = 0; k < c->n_notes; k++) {
		if (!idmap_get(&c->class_of, c->notes[k].type_id, &i) ||
		    strcmp(c->classes[i].name, "jdk.jfr.Timespan") != 0)
			continue;
		for (size_t u = 0; u < ARRAY_SIZE(units); u++)
			if (!strcmp(c->notes[k].value, units[u]))
				c->fields[c->notes[k].field].unit = (enum jfr_unit)u;
	}
}

void jfr_types_read(struct jfr_chunk *c, size_t at)
{
	cleanup_free const char **strings = NULL;
	struct tree t = {.c = c, .at = {.data = c->data, .at = at, .end = c->len}};
	const uint64_t size = jfr_varint(&t.at), type = jfr_varint(&t.at);
	uint64_t n;

	if (size > c->len - at || type) {
		c->why = "its metadata are not where its head says";
		return;
	}
	t.at.end = at + (size_t)size;
	for (int i = 0; i < 3; i++) /* start, duration, id */
		jfr_varint(&t.at);
	n = jfr_varint(&t.at);
	if (t.at.bad || n > STRINGS_MAX || n > t.at.end - t.at.at) {
		c->why = "its metadata end early";
		return;
	}
	strings = mem_array((size_t)n + 1, sizeof(*strings));
	t.strings = strings;
	for (; t.n_strings < n && !t.at.bad; t.n_strings++) {
		const struct jfr_str s = jfr_str_read(&t.at);

		strings[t.n_strings] = jfr_keep(c, &s);
	}
	read_element(&t, "", 0);
	if (!c->why && t.at.bad)
		c->why = "its metadata end early";
	if (!c->why)
		resolve(c);
}

const struct jfr_class *jfr_class_of(const struct jfr_chunk *c, uint64_t id, uint32_t *index)
{
	uint64_t i;

	if (!idmap_get(&c->class_of, id, &i))
		return NULL;
	*index = (uint32_t)i;
	return &c->classes[i];
}
