/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/slices.h"

#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "probes/lib/tables.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

size_t slices_words(uint32_t count)
{
	return (size_t)count * (1 + MAPPING_WORDS);
}

void slices_init(struct slices *s, uint64_t *memory, uint32_t elements, uint64_t grace_ns)
{
	*s = (struct slices){.memory = memory};
	arena_init(&s->arena, 0, elements, grace_ns);
}

void slices_release(struct slices *s)
{
	struct slice *slice, *next;

	HASH_ITER (hh, s->by_hash, slice, next) {
		HASH_DEL(s->by_hash, slice);
		free(slice);
	}
	arena_release(&s->arena);
}

static struct slice *find(const struct slices *s, uint64_t hash)
{
	struct slice *slice;

	HASH_FIND(hh, s->by_hash, &hash, sizeof(hash), slice);
	return slice;
}

/* The slice with that content. NULL: none, and *hash is an unused hash. If two contents share a
 * hash, the second gets the next number; if the first is freed then, a third slice equal to the
 * second is written again, which only costs room. */
static struct slice *find_content(const struct slices *s, const uint64_t *words, uint32_t count,
				  uint64_t *hash)
{
	struct slice *slice;

	*hash = hash_bytes(HASH_SEED, words, slices_words(count) * sizeof(*words));
	for (; (slice = find(s, *hash)); (*hash)++)
		if (slice->count == count &&
		    !memcmp(s->memory + slice->first, words, slices_words(count) * sizeof(*words)))
			return slice;
	return NULL;
}

static struct slice *add(struct slices *s, uint64_t hash, uint32_t first, uint32_t count)
{
	struct slice *slice = mem_alloc(sizeof(*slice));

	slice->hash = hash;
	slice->first = first;
	slice->count = count;
	slice->refs = 1;
	HASH_ADD(hh, s->by_hash, hash, sizeof(slice->hash), slice);
	return slice;
}

struct slice *slices_get(struct slices *s, const uint64_t *words, uint32_t count)
{
	uint64_t hash;
	struct slice *slice = find_content(s, words, count, &hash);
	uint32_t first;

	if (slice) {
		slice->refs++;
		return slice;
	}
	if (!arena_take(&s->arena, (uint32_t)slices_words(count), &first))
		return NULL;
	memcpy(s->memory + first, words, slices_words(count) * sizeof(*words));
	return add(s, hash, first, count);
}

struct slice *slices_get_at(struct slices *s, uint32_t first, uint32_t count)
{
	struct slice *slice;
	uint64_t hash;

	if (!count || count > TABLES_SLICE_MAX)
		return NULL;
	for (slice = s->by_hash; slice; slice = slice->hh.next)
		if (slice->first == first && slice->count == count) {
			slice->refs++;
			return slice;
		}
	if (!arena_take_at(&s->arena, first, (uint32_t)slices_words(count)))
		return NULL;
	for (hash = hash_bytes(HASH_SEED, s->memory + first,
			       slices_words(count) * sizeof(*s->memory));
	     find(s, hash);)
		hash++;
	return add(s, hash, first, count);
}

void slices_put(struct slices *s, struct slice *slice, uint64_t now_ns)
{
	if (!slice || --slice->refs)
		return;
	arena_give(&s->arena, slice->first, (uint32_t)slices_words(slice->count), now_ns);
	HASH_DEL(s->by_hash, slice);
	free(slice);
}
