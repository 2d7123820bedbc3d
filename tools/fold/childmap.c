/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/childmap.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define FEW 8 /* children that are walked rather than hashed */

void childmap_release(struct childmap *m)
{
	free(m->nodes);
	idmap_release(&m->wide);
	*m = (struct childmap){0};
}

static uint64_t wide_key(uint32_t parent, uint32_t key)
{
	return (uint64_t)parent << 32 | key;
}

uint32_t childmap_find(const struct childmap *m, uint32_t parent, uint32_t key)
{
	uint64_t wide;
	uint32_t at;

	if (parent >= m->cap)
		return 0;
	if (m->nodes[parent].n > FEW)
		return idmap_get(&m->wide, wide_key(parent, key), &wide) ? (uint32_t)wide : 0;
	for (at = m->nodes[parent].first; at && m->nodes[at].key != key; at = m->nodes[at].next)
		;
	return at;
}

static void grow(struct childmap *m, size_t cap)
{
	m->nodes = mem_realloc(m->nodes, cap * sizeof(*m->nodes));
	memset(m->nodes + m->cap, 0, (cap - m->cap) * sizeof(*m->nodes));
	m->cap = cap;
}

static void make_room(struct childmap *m, size_t node)
{
	size_t cap = m->cap ? m->cap : 1024;

	if (node < m->cap)
		return;
	while (cap <= node)
		cap += cap / 2; /* all of it is written to */
	grow(m, cap);
}

void childmap_expect(struct childmap *m, size_t n)
{
	if (n > m->cap)
		grow(m, n);
}

void childmap_add(struct childmap *m, uint32_t parent, uint32_t key, uint32_t child)
{
	struct childmap_node *up;

	make_room(m, parent > child ? parent : child);
	up = &m->nodes[parent];
	m->nodes[child] = (struct childmap_node){.key = key, .next = up->first};
	up->first = child;
	if (++up->n == FEW + 1)
		for (uint32_t at = child; at; at = m->nodes[at].next)
			idmap_set(&m->wide, wide_key(parent, m->nodes[at].key), at);
	else if (up->n > FEW)
		idmap_set(&m->wide, wide_key(parent, key), child);
}
