/* SPDX-License-Identifier: Apache-2.0 */
/* idtable: see the header. Open addresses; what is taken out makes those behind it move up. */
#include "loaders/lib/protocols/idtable.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

static uint32_t slot(const struct idtable *m, uint64_t id)
{
	return (uint32_t)(hash_u64(HASH_SEED, id) & (m->cap - 1));
}

static uint32_t find(const struct idtable *m, uint64_t id)
{
	uint32_t i = slot(m, id);

	while (m->entries[i].value && m->entries[i].id != id)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static void grow(struct idtable *m)
{
	struct idtable old = *m;

	m->cap = old.cap ? old.cap * 2 : 8;
	m->entries = mem_array(m->cap, sizeof(*m->entries));
	for (uint32_t i = 0; i < old.cap; i++)
		if (old.entries[i].value)
			m->entries[find(m, old.entries[i].id)] = old.entries[i];
	free(old.entries);
}

static void drop(struct idtable *m, uint32_t i)
{
	uint32_t at = (i + 1) & (m->cap - 1);

	m->entries[i].value = 0;
	m->n--;
	for (; m->entries[at].value; at = (at + 1) & (m->cap - 1)) {
		struct idtable_entry e = m->entries[at];

		m->entries[at].value = 0;
		m->entries[find(m, e.id)] = e;
	}
}

void idtable_put(struct idtable *m, uint64_t id, uint32_t value)
{
	uint32_t i;

	if (!m->cap && !value)
		return;
	if (m->n * 2 >= m->cap)
		grow(m);
	i = find(m, id);
	if (!value) {
		if (m->entries[i].value)
			drop(m, i);
		return;
	}
	if (!m->entries[i].value && m->n >= IDTABLE_MAX) {
		memset(m->entries, 0, m->cap * sizeof(*m->entries));
		m->n = 0;
		i = find(m, id);
	}
	m->n += !m->entries[i].value;
	m->entries[i] = (struct idtable_entry){.id = id, .value = value};
}

uint32_t idtable_get(const struct idtable *m, uint64_t id)
{
	return m->cap ? m->entries[find(m, id)].value : 0;
}

void idtable_release(struct idtable *m)
{
	free(m->entries);
	memset(m, 0, sizeof(*m));
}

uint64_t idtable_text(const void *text, size_t n)
{
	return hash_bytes(HASH_SEED, text, n);
}
