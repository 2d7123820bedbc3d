/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8object: V8's objects: a function's name, its script, the line of a place in it. The memory is
 * untrusted: each object's type is checked (its map's, whose map must be the map of maps), lengths
 * and loops are bounded.
 *
 * A tagged word is an object if its lowest two bits are 01; if the lowest bit is 0 it is a small
 * number in the upper half.
 */
#ifndef SONDE_RUNTIMES_V8OBJECT_H
#define SONDE_RUNTIMES_V8OBJECT_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/v8_layout.h"

#define V8_SCRIPTS 16u /* whose lines are kept */
/* of a Script, to its number, which no other script of its process has */
#define V8_SCRIPT_BYTES 80u
#define V8_SOURCE_MAX   (32u << 20) /* characters; lines of longer ones are not known */

struct v8_script {
	uint64_t at, source, is; /* is: what the object says of itself, its number too */
	uint32_t *ends;          /* own: where each line ends */
	size_t n, cap;
	int64_t first; /* its first line, less one */
};

struct v8heap {
	const struct runtime_memory *m; /* borrowed */
	struct v8_layout l;
	uint64_t meta; /* the map of maps; 0: not met */
	struct v8_script scripts[V8_SCRIPTS];
	unsigned next_script;
};

static inline bool v8_is_object(uint64_t tagged)
{
	return (tagged & 3) == 1;
}
/* A small number; false: something else. */
static inline bool v8_small(uint64_t tagged, int64_t *out)
{
	*out = (int64_t)tagged >> 32;
	return !(tagged & 1);
}

/* A number of the layout. */
static inline int32_t v8_n(const struct v8heap *h, enum v8_number which)
{
	return h->l.n[which];
}

void v8heap_release(struct v8heap *h);
/* Before each thread: objects may have moved. */
void v8heap_fresh(struct v8heap *h);
/* A word of an object. */
bool v8_word(const struct v8heap *h, uint64_t object, int32_t offset, uint64_t *out);
bool v8_half(const struct v8heap *h, uint64_t object, int32_t offset, uint32_t *out);
/* The type in an object's map; -1: not an object. */
int32_t v8_type(struct v8heap *h, uint64_t object);
bool v8_is(struct v8heap *h, uint64_t object, enum v8_number type);
/* The type in this map; -1: not a map. */
int32_t v8_map_type(struct v8heap *h, uint64_t map);
/* A member that is an object of that type; 0: it is not. */
uint64_t v8_member(struct v8heap *h, uint64_t object, int32_t offset, enum v8_number type);
/* An array of bytes; own. NULL: none, or more than `max`. */
uint8_t *v8_bytes(struct v8heap *h, uint64_t array, size_t max, size_t *len);

/* The bytecode of a SharedFunctionInfo; 0: it has none. */
uint64_t v8_bytecodes(struct v8heap *h, uint64_t shared);
/* What a function is called, where its script is, and the line of the place; function NULL: it has
 * no name, and is no script's. */
void v8_place_read(struct v8heap *h, uint64_t shared, int64_t bytecode, struct script_place *out);
/*
 * A frame of that function for native frame `at`: name and file, and the line of the place
 * `bytecode` (an offset; < 0: not known); where V8 has kept no positions, that at which the
 * function begins. A function of a script that has no name is "(anonymous)"; a builtin without one
 * is left out.
 */
void v8_frame_add(struct v8heap *h, uint64_t shared, int64_t bytecode, size_t at,
		  struct script_stack *out);

#endif
