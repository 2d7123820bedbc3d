/* SPDX-License-Identifier: Apache-2.0 */
/* jfr_in: a chunk at hand. Private to schema/jfr. */
#ifndef SONDE_JFR_IN_H
#define SONDE_JFR_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/jfr/jfr.h"

#define JFR_HEADER 68

struct jfr_cursor { /* over a chunk; `bad` once it would leave it */
	const unsigned char *data;
	size_t at, end;
	bool bad;
};

uint64_t jfr_varint(struct jfr_cursor *c);
unsigned char jfr_byte(struct jfr_cursor *c);

struct jfr_str { /* UTF-8 or Latin-1 bytes, or UTF-16 units as integers, in place */
	enum { JFR_STR_NONE, JFR_STR_KEY, JFR_STR_UTF8, JFR_STR_UNITS, JFR_STR_LATIN } how;
	size_t at, len; /* len: bytes, or units */
	uint64_t key;
};
struct jfr_str jfr_str_read(struct jfr_cursor *c);

enum jfr_base { JFR_STRUCT, JFR_BYTE, JFR_INTEGER, JFR_FLOAT, JFR_DOUBLE, JFR_STRING };
enum jfr_unit { JFR_TICKS, JFR_NANOSECONDS, JFR_MICROSECONDS, JFR_MILLISECONDS, JFR_SECONDS };

struct jfr_field {
	const char *name;
	uint64_t type_id;
	uint32_t type; /* index; UINT32_MAX: not declared */
	bool is_key, is_list;
	enum jfr_unit unit;
};
struct jfr_class {
	const char *name;
	uint64_t id;
	enum jfr_base base;
	size_t field, n_fields;
};

struct jfr_note { /* a field's annotation, which may say its unit */
	size_t field;
	uint64_t type_id;
	const char *value;
};

struct jfr_chunk {
	const unsigned char *data;
	size_t len;
	const char *why; /* what is wrong with it */
	uint64_t steps;  /* values read so far */
	uint64_t steps_max;
	int64_t start_ns;
	uint64_t start_ticks, ticks_per_s;
	/* metadata */
	struct jfr_class *classes;
	size_t n_classes, cap_classes;
	struct jfr_field *fields;
	size_t n_fields, cap_fields;
	struct jfr_note *notes;
	size_t n_notes, cap_notes;
	struct idmap class_of; /* id -> index */
	/* pools: (type id, key) -> where its value begins */
	struct idmap pool;
	/* text that lives as long as the chunk */
	char **texts;
	size_t n_texts, cap_texts;
	struct idmap text_of, method_of; /* by place; by key */
	struct jfr_method {
		const char *class_name, *method;
	} * methods;
	size_t n_methods, cap_methods;
	/* stacks: each is read once */
	struct jfr_frame *frames;
	size_t n_frames, cap_frames;
	struct jfr_stack {
		size_t frame, n;
		bool truncated;
	} * stacks;
	size_t n_stacks, cap_stacks;
	struct idmap stack_of; /* by place */
};

struct jfr_value {
	enum {
		JFR_VALUE_NONE,
		JFR_VALUE_NUMBER,
		JFR_VALUE_REAL,
		JFR_VALUE_STR,
		JFR_VALUE_OBJECT
	} is;
	int64_t number;
	double real;
	struct jfr_str str;
	uint32_t type; /* of an object: its class, */
	size_t at;     /* and where its fields begin */
	const struct jfr_field *field;
	bool is_list; /* a list of objects: `at` is its first, */
	bool keys;    /* or the key of its first */
	uint64_t n;
};

struct jfr_event {
	struct jfr_chunk *c;
	uint32_t type;
	size_t begin, at; /* at: of its first field */
};

/* Classes and fields; c->why where it is damaged. */
void jfr_types_read(struct jfr_chunk *c, size_t at);
const struct jfr_class *jfr_class_of(const struct jfr_chunk *c, uint64_t id, uint32_t *index);
/* What the checkpoints hold, from the last one on. */
void jfr_pools_read(struct jfr_chunk *c, size_t last);
/* The text of a string, kept; "" where it has no text. */
const char *jfr_keep(struct jfr_chunk *c, const struct jfr_str *s);
/* Past a value of this class. */
void jfr_skip(struct jfr_chunk *c, struct jfr_cursor *at, uint32_t type, unsigned depth);
/* A field of an object by name, references followed once. */
struct jfr_value jfr_get(struct jfr_chunk *c, uint32_t type, size_t at, const char *name);
/* The same of what an object refers to in turn: "type", "name", "string" of a Method. */
const char *jfr_name_of(struct jfr_chunk *c, struct jfr_value v);
void jfr_chunk_release(struct jfr_chunk *c);

#endif
