/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes: tables first, as they may come after the samples that refer
 * to them. */
#include "loaders/scrape/profile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"

#define TYPES_MAX     16
#define MAPPINGS_MAX  1024
#define LOCATIONS_MAX (1u << 20)

enum {
	PROFILE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_STRING = 6,
	PROFILE_DURATION = 10
};
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };

static const struct wanted {
	const char *name[WIRE_VALUES];
	bool time[WIRE_VALUES];
} WANTED[WIRE_ASKS] = {
	[WIRE_ASK_CPU] = {{"samples", "cpu"}, {false, true}},
	[WIRE_ASK_HEAP] = {{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"},
			   {false}},
	[WIRE_ASK_GOROUTINE] = {{"goroutine"}, {false}},
	[WIRE_ASK_BLOCK] = {{"contentions", "delay"}, {false, true}},
	[WIRE_ASK_MUTEX] = {{"contentions", "delay"}, {false, true}},
};

struct type {
	uint64_t type, unit; /* strings */
	bool is_time;
	int value; /* which of ours; -1: none */
};

struct reading {
	const struct wanted *wanted;
	const struct profile_out *out;
	struct type types[TYPES_MAX];
	size_t n_types, n_mappings, n_found;
	struct idmap addresses;    /* of locations */
	uint64_t strings;          /* so far */
	uint64_t path[WIRE_DEPTH]; /* of the sample at hand */
	struct wire_end end;
	uint64_t stacks, frames; /* reported */
	bool bad;
};

/* Numbers of a message by field, as far as `max`. */
static void numbers(struct reading *r, const struct proto_field *message, uint64_t *by_field,
		    unsigned int max)
{
	struct cursor c = cursor_init(message->data, message->type == 2 ? message->len : 0);
	struct proto_field f;

	r->bad |= message->type != 2;
	while (proto_next(&c, &f))
		if (f.number <= max && f.type == 0)
			by_field[f.number] = f.value;
	r->bad |= c.bad;
}

/* ---- the tables ---- */

static void read_type(struct reading *r, const struct proto_field *f)
{
	uint64_t v[3] = {0};

	numbers(r, f, v, 2);
	if (r->n_types == TYPES_MAX)
		r->bad = true;
	else
		r->types[r->n_types++] = (struct type){v[1], v[2], false, -1};
}

static void read_mapping(struct reading *r, const struct proto_field *f)
{
	uint64_t v[5] = {0};

	numbers(r, f, v, 4);
	if (!r->bad && r->n_mappings++ < MAPPINGS_MAX)
		r->out->mapping(r->out->ctx, &(struct wire_mapping){v[2], v[3], v[4]});
}

static void read_location(struct reading *r, const struct proto_field *f)
{
	uint64_t v[4] = {0};

	numbers(r, f, v, 3);
	if (r->addresses.n >= LOCATIONS_MAX)
		r->bad = true;
	else if (!r->bad)
		idmap_set(&r->addresses, v[1], v[3]);
}

static void tables_read(struct reading *r, const void *data, size_t len)
{
	struct cursor c = cursor_init(data, len);
	struct proto_field f;

	while (!r->bad && proto_next(&c, &f)) {
		if (f.number == PROFILE_TYPE)
			read_type(r, &f);
		else if (f.number == PROFILE_MAPPING)
			read_mapping(r, &f);
		else if (f.number == PROFILE_LOCATION)
			read_location(r, &f);
		else if (f.number == PROFILE_DURATION && f.type == 0)
			r->end.duration_ns = f.value <= INT64_MAX ? (int64_t)f.value : 0;
	}
	r->bad |= c.bad;
}

static bool is_text(const struct proto_field *f, const char *text)
{
	return text && f->len == strlen(text) && !memcmp(f->data, text, f->len);
}

/* What the types are called. */
static void types_name(struct reading *r, const void *data, size_t len)
{
	struct cursor c = cursor_init(data, len);
	struct proto_field f;

	for (uint64_t i = 0; !r->bad && proto_next(&c, &f);) {
		if (f.number != PROFILE_STRING)
			continue;
		r->bad |= f.type != 2;
		for (size_t t = 0; !r->bad && t < r->n_types; t++) {
			for (int v = 0; r->types[t].type == i && v < WIRE_VALUES; v++)
				if (is_text(&f, r->wanted->name[v]))
					r->types[t].value = v;
			r->types[t].is_time |= r->types[t].unit == i && is_text(&f, "nanoseconds");
		}
		i++;
	}
}

static bool types_fit(const struct reading *r)
{
	bool has[WIRE_VALUES] = {false};

	for (size_t t = 0; t < r->n_types; t++) {
		int v = r->types[t].value;

		if (v < 0)
			continue;
		if (has[v] || (r->wanted->time[v] && !r->types[t].is_time))
			return false;
		has[v] = true;
	}
	for (int v = 0; v < WIRE_VALUES; v++)
		if (r->wanted->name[v] && !has[v])
			return false;
	return true;
}

/* ---- samples ---- */

static void add_location(struct reading *r, uint64_t id, size_t *n)
{
	uint64_t address;

	if (!idmap_get(&r->addresses, id, &address))
		r->bad = true;
	else if (*n < WIRE_DEPTH)
		r->path[(*n)++] = address;
}

static void add_value(struct reading *r, uint64_t v, size_t at, uint64_t values[WIRE_VALUES])
{
	if (at >= r->n_types || v > INT64_MAX)
		r->bad = true;
	else if (r->types[at].value >= 0)
		values[r->types[at].value] = v;
}

static void sample_read(struct reading *r, const struct proto_field *m)
{
	struct cursor c = cursor_init(m->data, m->type == 2 ? m->len : 0), left = {0};
	uint64_t values[WIRE_VALUES] = {0}, v;
	size_t n = 0, at = 0;
	struct proto_field f;

	r->bad |= m->type != 2;
	while (!r->bad && proto_next(&c, &f)) {
		bool started = false;

		while (!r->bad && f.number <= SAMPLE_VALUE &&
		       proto_next_number(&f, &left, &started, &v)) {
			if (f.number == SAMPLE_LOCATION)
				add_location(r, v, &n);
			else
				add_value(r, v, at++, values);
		}
		r->bad |= left.bad;
	}
	r->bad |= c.bad;
	if (r->bad)
		return;
	if (r->stacks >= WIRE_STACKS_MAX || r->frames + n > WIRE_FRAMES_MAX) {
		r->end.left_out++;
		return;
	}
	r->stacks++;
	r->frames += n;
	r->out->stack(r->out->ctx, values, r->path, n);
}

static void samples_read(struct reading *r, const void *data, size_t len)
{
	struct cursor c = cursor_init(data, len);
	struct proto_field f;

	while (!r->bad && proto_next(&c, &f))
		if (f.number == PROFILE_SAMPLE)
			sample_read(r, &f);
}

int profile_read(const void *data, size_t len, enum wire_ask ask, const struct profile_out *out,
		 struct wire_end *end)
{
	struct reading r = {.out = out};

	if (ask <= WIRE_ASK_INDEX || ask >= WIRE_ASKS)
		return -EBADMSG;
	r.wanted = &WANTED[ask];
	tables_read(&r, data, len);
	types_name(&r, data, len);
	r.bad |= !types_fit(&r);
	samples_read(&r, data, len);
	idmap_release(&r.addresses);
	*end = r.end;
	return r.bad ? -EBADMSG : 0;
}
