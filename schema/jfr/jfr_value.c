/* SPDX-License-Identifier: Apache-2.0 */
/* jfr_value: values of a chunk, which stay where they are, and what refers to them by key. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/jfr/jfr_in.h"

#define DEPTH_MAX       16 /* of objects within objects */
#define TEXT_MAX        65536
#define CHECKPOINTS_MAX 1000000
#define POOL_MAX        (16u << 20)

unsigned char jfr_byte(struct jfr_cursor *c)
{
	if (c->at >= c->end) {
		c->bad = true;
		return 0;
	}
	return c->data[c->at++];
}

uint64_t jfr_varint(struct jfr_cursor *c)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 9; i++) {
		const unsigned char b = jfr_byte(c);

		if (i == 8)
			return v | (uint64_t)b << 56;
		v |= (uint64_t)(b & 127) << 7 * i;
		if (!(b & 128))
			break;
	}
	return v;
}

/* --- strings --- */

static void past(struct jfr_cursor *c, uint64_t n)
{
	if (n > c->end - c->at)
		c->bad = true;
	else
		c->at += (size_t)n;
}

struct jfr_str jfr_str_read(struct jfr_cursor *c)
{
	const unsigned char how = jfr_byte(c);
	struct jfr_str s = {0};

	if (how < 2)
		return s;
	if (how == 2) {
		s.how = JFR_STR_KEY;
		s.key = jfr_varint(c);
		return s;
	}
	s.how = how == 3 ? JFR_STR_UTF8 : how == 4 ? JFR_STR_UNITS : JFR_STR_LATIN;
	s.len = (size_t)jfr_varint(c);
	s.at = c->at;
	if (how > 5)
		c->bad = true;
	else if (how != 4)
		past(c, s.len);
	for (size_t i = 0; how == 4 && i < s.len && !c->bad; i++)
		jfr_varint(c);
	if (c->bad)
		return (struct jfr_str){0};
	return s;
}

static void add_point(struct strbuf *out, uint32_t p)
{
	if (p < 0x80) {
		strbuf_addch(out, (char)p);
	} else if (p < 0x800) {
		strbuf_addch(out, (char)(0xc0 | p >> 6));
		strbuf_addch(out, (char)(0x80 | (p & 63)));
	} else if (p < 0x10000) {
		strbuf_addch(out, (char)(0xe0 | p >> 12));
		strbuf_addch(out, (char)(0x80 | (p >> 6 & 63)));
		strbuf_addch(out, (char)(0x80 | (p & 63)));
	} else {
		strbuf_addch(out, (char)(0xf0 | (p >> 18 & 7)));
		strbuf_addch(out, (char)(0x80 | (p >> 12 & 63)));
		strbuf_addch(out, (char)(0x80 | (p >> 6 & 63)));
		strbuf_addch(out, (char)(0x80 | (p & 63)));
	}
}

static void add_units(struct jfr_chunk *c, const struct jfr_str *s, struct strbuf *out)
{
	struct jfr_cursor at = {.data = c->data, .at = s->at, .end = c->len};
	uint32_t high = 0;

	for (size_t i = 0; i < s->len && i < TEXT_MAX; i++) {
		const uint32_t u = (uint32_t)jfr_varint(&at) & 0xffff;

		if (high && u >= 0xdc00 && u < 0xe000)
			add_point(out, 0x10000 + ((high - 0xd800) << 10) + (u - 0xdc00));
		else if (u < 0xd800 || u > 0xdbff)
			add_point(out, u);
		high = u >= 0xd800 && u < 0xdc00 ? u : 0;
	}
}

const char *jfr_keep(struct jfr_chunk *c, const struct jfr_str *s)
{
	struct strbuf text = STRBUF_INIT;
	uint64_t i;

	if (s->how == JFR_STR_NONE || s->how == JFR_STR_KEY || !s->len)
		return "";
	if (idmap_get(&c->text_of, s->at, &i))
		return c->texts[i];
	if (s->how == JFR_STR_UTF8)
		strbuf_add(&text, c->data + s->at, s->len < TEXT_MAX ? s->len : TEXT_MAX);
	else if (s->how == JFR_STR_UNITS)
		add_units(c, s, &text);
	else
		for (size_t k = 0; k < s->len && k < TEXT_MAX; k++)
			add_point(&text, c->data[s->at + k]);
	mem_grow(c->texts, c->n_texts, c->cap_texts);
	c->texts[c->n_texts] = mem_strdup(strbuf_str(&text));
	strbuf_release(&text);
	idmap_set(&c->text_of, s->at, c->n_texts);
	return c->texts[c->n_texts++];
}

/* --- past values --- */

static bool step(struct jfr_chunk *c, struct jfr_cursor *at)
{
	if (++c->steps > c->steps_max) {
		c->why = "its values are nested without end";
		at->bad = true;
	}
	return !at->bad;
}

static void skip_field(struct jfr_chunk *c, struct jfr_cursor *at, const struct jfr_field *f,
		       unsigned depth)
{
	uint64_t n = f->is_list ? jfr_varint(at) : 1;

	for (; n && step(c, at); n--)
		if (f->is_key)
			jfr_varint(at);
		else
			jfr_skip(c, at, f->type, depth + 1);
}

void jfr_skip(struct jfr_chunk *c, struct jfr_cursor *at, uint32_t type, unsigned depth)
{
	const struct jfr_class *k = type < c->n_classes ? &c->classes[type] : NULL;

	if (!k || depth > DEPTH_MAX) {
		at->bad = true;
		return;
	}
	switch (k->base) {
	case JFR_BYTE:
		jfr_byte(at);
		return;
	case JFR_INTEGER:
		jfr_varint(at);
		return;
	case JFR_FLOAT:
		past(at, 4);
		return;
	case JFR_DOUBLE:
		past(at, 8);
		return;
	case JFR_STRING:
		jfr_str_read(at);
		return;
	default:
		for (size_t i = 0; i < k->n_fields && step(c, at); i++)
			skip_field(c, at, &c->fields[k->field + i], depth);
	}
}

/* --- pools --- */

static uint64_t pool_key(uint64_t type_id, uint64_t key)
{
	return hash_u64(hash_u64(HASH_SEED, type_id), key);
}

/* false: it cannot be read to its end. */
static bool read_pool(struct jfr_chunk *c, struct jfr_cursor *at)
{
	const uint64_t id = jfr_varint(at);
	uint64_t n = jfr_varint(at), *known;
	uint32_t type = 0;
	bool fresh;

	if (!jfr_class_of(c, id, &type))
		return !n;
	for (; n && step(c, at); n--) {
		const uint64_t key = pool_key(id, jfr_varint(at));

		if (c->pool.n == POOL_MAX) {
			c->why = "its constant pools are too large";
			return false;
		}
		known = idmap_ref(&c->pool, key, &fresh);
		if (fresh)
			*known = at->at;
		jfr_skip(c, at, type, 0);
	}
	return !at->bad;
}

void jfr_pools_read(struct jfr_chunk *c, size_t last)
{
	for (size_t i = 0; i < CHECKPOINTS_MAX && last >= JFR_HEADER && last < c->len; i++) {
		struct jfr_cursor at = {.data = c->data, .at = last, .end = c->len};
		const uint64_t size = jfr_varint(&at), type = jfr_varint(&at);
		int64_t back;
		uint64_t n;

		if (type != 1 || size > c->len - last)
			return;
		at.end = last + (size_t)size;
		jfr_varint(&at); /* start, duration */
		jfr_varint(&at);
		back = (int64_t)jfr_varint(&at);
		jfr_byte(&at);
		for (n = jfr_varint(&at); n && !at.bad && !c->why && read_pool(c, &at); n--)
			;
		if (c->why || back >= 0 || back < -(int64_t)last)
			return;
		last -= (size_t)-back;
	}
}

/* --- values by name --- */

static struct jfr_value object_at(struct jfr_chunk *c, uint32_t type, uint64_t key)
{
	struct jfr_value v = {.is = JFR_VALUE_NONE};
	struct jfr_cursor at = {.data = c->data, .end = c->len};
	uint64_t place;

	if (type >= c->n_classes ||
	    !idmap_get(&c->pool, pool_key(c->classes[type].id, key), &place))
		return v;
	at.at = (size_t)place;
	v.type = type;
	v.at = at.at;
	if (c->classes[type].base == JFR_STRING) {
		v.is = JFR_VALUE_STR;
		v.str = jfr_str_read(&at);
	} else {
		v.is = c->classes[type].base == JFR_STRUCT ? JFR_VALUE_OBJECT : JFR_VALUE_NONE;
	}
	return v;
}

static double real_at(const struct jfr_cursor *at, size_t size)
{
	uint64_t bits = 0;
	double d;
	float f;

	if (size > at->end - at->at)
		return 0;
	for (size_t i = 0; i < size; i++)
		bits = bits << 8 | at->data[at->at + i];
	if (size == 8) {
		memcpy(&d, &bits, sizeof(d));
		return d;
	}
	memcpy(&f, &(uint32_t){(uint32_t)bits}, sizeof(f));
	return (double)f;
}

static struct jfr_value value_at(struct jfr_chunk *c, struct jfr_cursor *at,
				 const struct jfr_field *f)
{
	struct jfr_value v = {.type = f->type, .at = at->at, .field = f};

	if (f->type >= c->n_classes)
		return v;
	if (f->is_list) {
		v.is = JFR_VALUE_OBJECT;
		v.is_list = true;
		v.keys = f->is_key;
		v.n = jfr_varint(at);
		v.at = at->at;
		return v;
	}
	if (f->is_key) {
		v = object_at(c, f->type, jfr_varint(at));
		v.field = f;
		return v;
	}
	switch (c->classes[f->type].base) {
	case JFR_BYTE:
		v.number = jfr_byte(at);
		break;
	case JFR_INTEGER:
		v.number = (int64_t)jfr_varint(at);
		break;
	case JFR_FLOAT:
	case JFR_DOUBLE:
		v.real = real_at(at, c->classes[f->type].base == JFR_FLOAT ? 4 : 8);
		v.is = JFR_VALUE_REAL;
		return v;
	case JFR_STRING:
		v.str = jfr_str_read(at);
		v.is = JFR_VALUE_STR;
		return v;
	default:
		v.is = JFR_VALUE_OBJECT;
		return v;
	}
	v.is = JFR_VALUE_NUMBER;
	return v;
}

struct jfr_value jfr_get(struct jfr_chunk *c, uint32_t type, size_t place, const char *name)
{
	struct jfr_cursor at = {.data = c->data, .at = place, .end = c->len};
	const struct jfr_class *k = type < c->n_classes ? &c->classes[type] : NULL;

	for (size_t i = 0; k && i < k->n_fields && step(c, &at); i++) {
		const struct jfr_field *f = &c->fields[k->field + i];

		if (!strcmp(f->name, name)) {
			struct jfr_value v = value_at(c, &at, f);

			return at.bad ? (struct jfr_value){0} : v;
		}
		skip_field(c, &at, f, 0);
	}
	return (struct jfr_value){0};
}

/* A string; of a class, a module or a symbol what it is called. */
const char *jfr_name_of(struct jfr_chunk *c, struct jfr_value v)
{
	for (int i = 0; i < 4; i++) {
		if (v.is == JFR_VALUE_STR && v.str.how == JFR_STR_KEY) {
			v = object_at(c, v.type, v.str.key);
			continue;
		}
		if (v.is == JFR_VALUE_STR)
			return jfr_keep(c, &v.str);
		if (v.is != JFR_VALUE_OBJECT || v.is_list)
			return "";
		const struct jfr_value string = jfr_get(c, v.type, v.at, "string");

		v = string.is ? string : jfr_get(c, v.type, v.at, "name");
	}
	return "";
}

void jfr_chunk_release(struct jfr_chunk *c)
{
	for (size_t i = 0; i < c->n_texts; i++)
		free(c->texts[i]);
	free(c->texts);
	free(c->classes);
	free(c->fields);
	free(c->notes);
	free(c->methods);
	free(c->frames);
	free(c->stacks);
	idmap_release(&c->stack_of);
	idmap_release(&c->class_of);
	idmap_release(&c->pool);
	idmap_release(&c->text_of);
	idmap_release(&c->method_of);
}
