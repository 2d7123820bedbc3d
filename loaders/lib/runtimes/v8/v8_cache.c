/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8_cache.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "loaders/lib/runtimes/v8/v8tables.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define TRIES        4
#define SHARED_BYTES 64u /* of a SharedFunctionInfo, from its name on */

struct key {
	uint64_t shared;
	int64_t bytecode;
};

struct v8_place {
	struct key key;
	uint64_t cookie;
	struct script_place place; /* own */
	UT_hash_handle hh;
};

static void place_free(struct v8_cache *p, struct v8_place *place)
{
	HASH_DELETE(hh, p->all, place);
	script_place_release(&place->place);
	free(place);
}

void v8_cache_release(struct v8_cache *p)
{
	struct v8_place *place, *next;

	HASH_ITER (hh, p->all, place, next)
		place_free(p, place);
}

/* 0: it cannot be read, or is not a function. */
static uint64_t cookie_read(struct v8heap *h, uint64_t shared, int64_t bytecode)
{
	struct {
		uint64_t script, bytecodes, positions;
		uint8_t shared_bytes[SHARED_BYTES], script_bytes[V8_SCRIPT_BYTES];
	} of = {0};

	if (!v8_is(h, shared, V8_TYPE_SHARED) ||
	    !h->m->read(h->m->ctx, shared - 1 + (uint64_t)v8_n(h, V8_SHARED_NAME), of.shared_bytes,
			sizeof(of.shared_bytes)))
		return 0;
	of.script = v8_member(h, shared, v8_n(h, V8_SHARED_SCRIPT), V8_TYPE_SCRIPT);
	if (of.script &&
	    !h->m->read(h->m->ctx, of.script - 1, of.script_bytes, sizeof(of.script_bytes)))
		return 0;
	of.bytecodes = of.script && bytecode >= 0 ? v8_bytecodes(h, shared) : 0;
	if (of.bytecodes)
		v8_word(h, of.bytecodes, v8_n(h, V8_BYTECODES_POSITIONS), &of.positions);
	return hash_bytes(HASH_SEED, &of, sizeof(of)) | 1;
}

/* 0: it cannot be read, or keeps changing. The collector notes in a function how long its bytecode
 * was not used: try again then. */
static uint64_t place_read(struct v8heap *h, struct runtime_budget *b, uint64_t shared,
			   int64_t bytecode, uint64_t cookie, struct script_place *found)
{
	for (int i = 0; i < TRIES && cookie; i++) {
		uint64_t before = cookie;

		v8_place_read(h, shared, bytecode, found);
		runtime_budget_fresh(b);
		cookie = cookie_read(h, shared, bytecode);
		if (cookie == before)
			return cookie;
		script_place_release(found);
	}
	return 0;
}

const struct script_place *v8_cache_get(struct v8_cache *p, struct v8heap *h,
					struct runtime_budget *b, uint64_t shared, int64_t bytecode)
{
	struct key key;
	struct v8_place *place;
	struct script_place found;
	uint64_t cookie = cookie_read(h, shared, bytecode);

	memset(&key, 0, sizeof(key));
	key.shared = shared;
	key.bytecode = bytecode < 0 ? V8_NOWHERE : bytecode;
	if (!cookie)
		return NULL;
	HASH_FIND(hh, p->all, &key, sizeof(key), place);
	if (place && place->cookie == cookie)
		return &place->place;
	if (place)
		place_free(p, place);
	cookie = place_read(h, b, shared, bytecode, cookie, &found);
	if (!cookie)
		return NULL;
	if (HASH_COUNT(p->all) >= V8_CACHE_MAX)
		v8_cache_release(p);
	place = mem_alloc(sizeof(*place));
	*place = (struct v8_place){.key = key, .cookie = cookie, .place = found};
	HASH_ADD(hh, p->all, key, sizeof(key), place);
	return &place->place;
}
