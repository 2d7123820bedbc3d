/* SPDX-License-Identifier: Apache-2.0 */
/* idmap: linear probing, at most 5/8 full, deletion by shifting back (Knuth 6.4, algorithm R). */
#include "schema/base/idmap.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

void idmap_release(struct idmap *m)
{
	free(m->slots);
	*m = (struct idmap){0};
}

void idmap_clear(struct idmap *m)
{
	if (m->slots)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->n = 0;
}

/* The slot of the key, or the empty one where it would go. */
static size_t idmap_find(const struct idmap *m, uint64_t key)
{
	size_t i = hash_u64(0, key) & (m->cap - 1);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

bool idmap_get(const struct idmap *m, uint64_t key, uint64_t *value)
{
	size_t i;

	if (!m->n)
		return false;
	i = idmap_find(m, key);
	if (!m->slots[i].used)
		return false;
	if (value)
		*value = m->slots[i].value;
	return true;
}

static void idmap_resize(struct idmap *m, size_t cap)
{
	struct idmap old = *m;

	m->slots = mem_array(cap, sizeof(*m->slots));
	m->cap = cap;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].used)
			m->slots[idmap_find(m, old.slots[i].key)] = old.slots[i];
	free(old.slots);
}

void idmap_reserve(struct idmap *m, size_t n)
{
	size_t cap = m->cap ? m->cap : 32;

	while (n * 8 > cap * 5)
		cap *= 2;
	if (cap > m->cap)
		idmap_resize(m, cap);
}

uint64_t *idmap_ref(struct idmap *m, uint64_t key, bool *fresh)
{
	size_t i;

	if ((m->n + 1) * 8 > m->cap * 5)
		idmap_resize(m, m->cap ? m->cap * 2 : 32);
	i = idmap_find(m, key);
	*fresh = !m->slots[i].used;
	if (*fresh) {
		m->n++;
		m->slots[i] = (struct idmap_slot){.key = key, .used = 1};
	}
	return &m->slots[i].value;
}

void idmap_set(struct idmap *m, uint64_t key, uint64_t value)
{
	bool fresh;

	*idmap_ref(m, key, &fresh) = value;
}

bool idmap_del(struct idmap *m, uint64_t key)
{
	size_t i, j;

	if (!m->n)
		return false;
	i = idmap_find(m, key);
	if (!m->slots[i].used)
		return false;
	for (j = (i + 1) & (m->cap - 1); m->slots[j].used; j = (j + 1) & (m->cap - 1)) {
		size_t home = hash_u64(0, m->slots[j].key) & (m->cap - 1);

		if (((j - home) & (m->cap - 1)) >= ((j - i) & (m->cap - 1))) {
			m->slots[i] = m->slots[j];
			i = j;
		}
	}
	m->slots[i] = (struct idmap_slot){0};
	m->n--;
	return true;
}
