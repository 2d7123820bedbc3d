/* SPDX-License-Identifier: Apache-2.0 */
/* jfr: chunks, and what an event says. */
#include "schema/jfr/jfr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/jfr/jfr_in.h"

#define TIME_MAX      ((uint64_t)4102444800 * NSEC_PER_SEC) /* the year 2100 */
#define STEPS_PER_LEN 256
#define STEPS_MORE    (1u << 20)
#define FRAMES_MAX    (16u << 20) /* of all stacks of a chunk */

/* --- an event --- */

const char *jfr_type(const struct jfr_event *ev)
{
	return ev->c->classes[ev->type].name;
}

uint64_t jfr_type_id(const struct jfr_event *ev)
{
	return ev->c->classes[ev->type].id;
}

const char *jfr_type_named(const struct jfr_event *ev, uint64_t id)
{
	uint32_t i;
	const struct jfr_class *k = jfr_class_of(ev->c, id, &i);

	return k ? k->name : "";
}

static struct jfr_value field(const struct jfr_event *ev, const char *name)
{
	return jfr_get(ev->c, ev->type, ev->at, name);
}

static int64_t clamp(__int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static int64_t ticks_ns(const struct jfr_chunk *c, int64_t ticks)
{
	return clamp((__int128)ticks * NSEC_PER_SEC / (__int128)c->ticks_per_s);
}

int64_t jfr_start_ns(const struct jfr_event *ev)
{
	const struct jfr_chunk *c = ev->c;
	int64_t ticks = 0;

	if (!jfr_number(ev, "startTime", &ticks))
		return c->start_ns;
	return clamp((__int128)c->start_ns + ((__int128)ticks - (__int128)c->start_ticks) *
						     NSEC_PER_SEC / (__int128)c->ticks_per_s);
}

size_t jfr_place(const struct jfr_event *ev)
{
	return ev->begin;
}

int64_t jfr_chunk_ns(const struct jfr_event *ev)
{
	return ev->c->start_ns;
}

bool jfr_number(const struct jfr_event *ev, const char *name, int64_t *out)
{
	const struct jfr_value v = field(ev, name);

	*out = v.is == JFR_VALUE_REAL && v.real > -9e18 && v.real < 9e18 ? (int64_t)v.real :
									   v.number;
	return v.is == JFR_VALUE_NUMBER || v.is == JFR_VALUE_REAL;
}

bool jfr_span_ns(const struct jfr_event *ev, const char *name, int64_t *out)
{
	static const int64_t scale[] = {[JFR_NANOSECONDS] = 1,
					[JFR_MICROSECONDS] = 1000,
					[JFR_MILLISECONDS] = 1000000,
					[JFR_SECONDS] = NSEC_PER_SEC};
	const struct jfr_value v = field(ev, name);

	*out = 0;
	if (v.is != JFR_VALUE_NUMBER)
		return false;
	*out = v.field->unit == JFR_TICKS ? ticks_ns(ev->c, v.number) :
					    clamp((__int128)v.number * scale[v.field->unit]);
	return true;
}

/* "java/lang/String" is "java.lang.String". */
static const char *dotted(struct jfr_chunk *c, const char *name)
{
	const uint64_t key = hash_u64(HASH_SEED, (uintptr_t)name) | 1ull << 63;
	uint64_t i;
	char *text;

	if (!strchr(name, '/'))
		return name;
	if (idmap_get(&c->text_of, key, &i))
		return c->texts[i];
	text = mem_strdup(name);
	for (char *at = text; *at; at++)
		if (*at == '/')
			*at = '.';
	mem_grow(c->texts, c->n_texts, c->cap_texts);
	idmap_set(&c->text_of, key, c->n_texts);
	c->texts[c->n_texts++] = text;
	return text;
}

const char *jfr_text(const struct jfr_event *ev, const char *name)
{
	const struct jfr_value v = field(ev, name);
	const char *text = jfr_name_of(ev->c, v);

	return v.is == JFR_VALUE_STR ? text : dotted(ev->c, text);
}

bool jfr_thread_of(const struct jfr_event *ev, const char *name, struct jfr_thread *out)
{
	const struct jfr_value t = field(ev, name);
	struct jfr_value v;

	*out = (struct jfr_thread){.name = ""};
	if (t.is != JFR_VALUE_OBJECT || t.is_list)
		return false;
	out->name = jfr_name_of(ev->c, jfr_get(ev->c, t.type, t.at, "javaName"));
	if (!*out->name)
		out->name = jfr_name_of(ev->c, jfr_get(ev->c, t.type, t.at, "osName"));
	v = jfr_get(ev->c, t.type, t.at, "osThreadId");
	out->tid = v.number > 0 && v.number <= UINT32_MAX ? (uint32_t)v.number : 0;
	out->java_id = (uint64_t)jfr_get(ev->c, t.type, t.at, "javaThreadId").number;
	return true;
}

/* --- stacks --- */

static enum jfr_code code_of(const char *name)
{
	static const struct {
		const char *name;
		enum jfr_code code;
	} codes[] = {{"Interpreted", JFR_INTERPRETED},
		     {"JIT compiled", JFR_COMPILED},
		     {"C1 compiled", JFR_COMPILED},
		     {"Inlined", JFR_INLINED},
		     {"Native", JFR_NATIVE},
		     {"C++", JFR_NATIVE},
		     {"Kernel", JFR_KERNEL}};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (!strcmp(codes[i].name, name))
			return codes[i].code;
	return JFR_UNKNOWN;
}

/* What a Method is called: found once a chunk. */
static const struct jfr_method *method_of(struct jfr_chunk *c, const struct jfr_value *m)
{
	uint64_t i;

	if (m->is != JFR_VALUE_OBJECT)
		return NULL;
	if (!idmap_get(&c->method_of, m->at, &i)) {
		const char *of = jfr_name_of(c, jfr_get(c, m->type, m->at, "type"));

		i = c->n_methods;
		mem_grow(c->methods, c->n_methods, c->cap_methods);
		c->methods[c->n_methods++] = (struct jfr_method){
			.class_name = dotted(c, of),
			.method = jfr_name_of(c, jfr_get(c, m->type, m->at, "name"))};
		idmap_set(&c->method_of, m->at, i);
	}
	return &c->methods[i];
}

static struct jfr_frame frame_at(struct jfr_chunk *c, uint32_t type, size_t at)
{
	const struct jfr_value m = jfr_get(c, type, at, "method"),
			       line = jfr_get(c, type, at, "lineNumber"),
			       code = jfr_get(c, type, at, "type");
	const struct jfr_method *k = method_of(c, &m);
	struct jfr_frame fr = {.class_name = k ? k->class_name : "", .method = k ? k->method : ""};

	if (line.is == JFR_VALUE_NUMBER && line.number > 0 && line.number < INT32_MAX)
		fr.line = (uint32_t)line.number;
	if (code.is == JFR_VALUE_OBJECT && !code.is_list) {
		const struct jfr_value words = jfr_get(c, code.type, code.at, "description");

		fr.code = code_of(jfr_name_of(c, words));
	}
	return fr;
}

static void read_frames(struct jfr_chunk *c, const struct jfr_value *list, struct jfr_stack *st)
{
	struct jfr_cursor at = {.data = c->data, .at = list->at, .end = c->len};

	while (st->n < list->n && !at.bad && !c->why) {
		struct jfr_frame fr;

		if (st->n == JFR_FRAMES_MAX || c->n_frames == FRAMES_MAX) {
			st->truncated = true;
			return;
		}
		fr = frame_at(c, list->type, at.at);
		jfr_skip(c, &at, list->type, 0);
		if (at.bad)
			return;
		mem_grow(c->frames, c->n_frames, c->cap_frames);
		c->frames[c->n_frames++] = fr;
		st->n++;
	}
}

/* Its index in c->stacks. */
static size_t stack_at(struct jfr_chunk *c, const struct jfr_value *t)
{
	struct jfr_stack st = {.frame = c->n_frames};
	struct jfr_value list;
	uint64_t i;

	if (idmap_get(&c->stack_of, t->at, &i))
		return (size_t)i;
	st.truncated = jfr_get(c, t->type, t->at, "truncated").number != 0;
	list = jfr_get(c, t->type, t->at, "frames");
	if (list.is_list && !list.keys)
		read_frames(c, &list, &st);
	mem_grow(c->stacks, c->n_stacks, c->cap_stacks);
	c->stacks[c->n_stacks] = st;
	idmap_set(&c->stack_of, t->at, c->n_stacks);
	return c->n_stacks++;
}

size_t jfr_stack(const struct jfr_event *ev, const struct jfr_frame **frames, bool *truncated)
{
	struct jfr_chunk *c = ev->c;
	const struct jfr_value t = field(ev, "stackTrace");
	const struct jfr_stack *st;
	size_t i;

	*frames = NULL;
	*truncated = false;
	if (t.is != JFR_VALUE_OBJECT || t.is_list)
		return 0;
	i = stack_at(c, &t); /* may move them */
	st = &c->stacks[i];
	*frames = st->n ? c->frames + st->frame : NULL;
	*truncated = st->truncated;
	return st->n;
}

/* --- chunks --- */

static uint64_t big(const unsigned char *at, size_t size)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | at[i];
	return v;
}

bool jfr_looks(const void *data, size_t len)
{
	return len >= 4 && !memcmp(data, "FLR", 4);
}

static void note_chunk(struct jfr_totals *t, uint64_t start, uint64_t duration)
{
	int64_t from, to;

	t->chunks++;
	if (start > TIME_MAX || duration > TIME_MAX)
		return;
	from = (int64_t)start;
	to = from + (int64_t)duration;
	t->from_ns = !t->from_ns || from < t->from_ns ? from : t->from_ns;
	t->to_ns = to > t->to_ns ? to : t->to_ns;
}

static int tell_events(struct jfr_chunk *c, int (*each)(void *ctx, const struct jfr_event *ev),
		       void *ctx, struct jfr_totals *totals)
{
	struct jfr_cursor at = {.data = c->data, .at = JFR_HEADER, .end = c->len};
	int rc = 0;

	while (at.at < c->len && !rc && !c->why) {
		const size_t begin = at.at;
		const uint64_t size = jfr_varint(&at), id = jfr_varint(&at);
		struct jfr_event ev = {.c = c, .begin = begin, .at = at.at};

		/* the end of a chunk that is being written */
		if (at.bad || size > c->len - begin || size < at.at - begin)
			break;
		at.at = begin + (size_t)size;
		totals->end = at.at;
		if (id < 2 || !jfr_class_of(c, id, &ev.type))
			continue;
		totals->events++;
		rc = each(ctx, &ev);
	}
	return rc;
}

static int read_chunk(struct jfr_chunk *c, int (*each)(void *ctx, const struct jfr_event *ev),
		      void *ctx, struct jfr_totals *totals)
{
	const uint64_t pools = big(c->data + 16, 8), types = big(c->data + 24, 8);

	note_chunk(totals, big(c->data + 32, 8), big(c->data + 40, 8));
	c->start_ns = big(c->data + 32, 8) <= TIME_MAX ? (int64_t)big(c->data + 32, 8) : 0;
	c->start_ticks = big(c->data + 48, 8);
	c->ticks_per_s = big(c->data + 56, 8);
	c->steps_max = (uint64_t)c->len * STEPS_PER_LEN + STEPS_MORE;
	if (big(c->data + 4, 2) != 2)
		c->why = "its version is not 2";
	else if (!(big(c->data + 66, 2) & 1))
		c->why = "its integers are not compressed";
	else if (!c->ticks_per_s)
		c->why = "its clock does not tick";
	if (c->why)
		return 0;
	if (types < JFR_HEADER || types >= c->len) {
		totals->unreadable++;
		return 0;
	}
	jfr_types_read(c, (size_t)types);
	if (!c->why && pools < c->len)
		jfr_pools_read(c, (size_t)pools);
	return c->why ? 0 : tell_events(c, each, ctx, totals);
}

int jfr_read(const void *data, size_t len, int (*each)(void *ctx, const struct jfr_event *ev),
	     void *ctx, struct jfr_totals *totals, const char **why)
{
	const unsigned char *at = data, *end = at + len;
	int rc = 0;

	*totals = (struct jfr_totals){0};
	*why = NULL;
	while (at < end && !rc && !*why) {
		const size_t left = (size_t)(end - at);
		struct jfr_chunk *c;
		uint64_t size;

		if (left < JFR_HEADER || !jfr_looks(at, left)) {
			if (!totals->chunks)
				*why = "it does not begin with a chunk";
			totals->unreadable += totals->chunks != 0;
			break;
		}
		size = big(at + 8, 8);
		c = mem_alloc(sizeof(*c));
		c->data = at;
		c->len = size < JFR_HEADER || size > left ? left : (size_t)size;
		rc = read_chunk(c, each, ctx, totals);
		*why = c->why;
		at += c->len;
		jfr_chunk_release(c);
		free(c);
	}
	return rc ? rc : *why ? -EBADMSG : 0;
}
