/* SPDX-License-Identifier: Apache-2.0 */
/* sealstack: stacks of a segment into a day's: compared as trees of (parent, frame), written as stacktree.h tells. */
#include "schema/store/sealparts.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"

static void tree_room(struct seal_tree *x)
{
	size_t cap = x->cap;

	stacktree_grow(&x->t);
	if (x->t.cap == cap)
		return;
	x->cap = x->t.cap;
	x->depth = mem_realloc(x->depth, x->cap * sizeof(*x->depth));
	x->row = mem_realloc(x->row, x->cap * sizeof(*x->row));
	x->own = mem_realloc(x->own, x->cap * sizeof(*x->own));
}

/* The node of this frame below that parent; new ones have no row yet. */
static uint32_t child(struct seal_tree *x, uint32_t parent, uint32_t frame)
{
	bool fresh;
	uint64_t *node = idmap_ref(&x->by_child, (uint64_t)parent << 32 | frame, &fresh);

	if (!fresh)
		return (uint32_t)*node;
	*node = x->t.n;
	tree_room(x);
	x->t.parent[x->t.n] = parent;
	x->t.frame[x->t.n] = frame;
	x->depth[x->t.n] = x->depth[parent] + 1;
	x->row[x->t.n] = x->own[x->t.n] = 0;
	return (uint32_t)x->t.n++;
}

void sealstack_plant(struct seal_tree *x)
{
	tree_room(x);
	x->t.parent[0] = x->t.frame[0] = x->depth[0] = x->row[0] = x->own[0] = 0;
	x->t.n = 1;
}

int sealstack_load(struct sealdict *d)
{
	struct seal_tree *x = &d->tree;
	struct stacktree old;
	uint32_t *node;
	size_t at = 1;
	int rc = stacktree_load(d->day, &old);

	if (rc != SQLITE_OK)
		return rc;
	sealstack_plant(x);
	idmap_reserve(&x->by_child, old.n);
	node = mem_array(old.n, sizeof(*node));
	for (uint32_t id = 1; id < old.n_stacks; id++) {
		for (; at <= old.node[id]; at++) { /* a row's nodes stand behind those of the rows before it */
			node[at] = child(x, node[old.parent[at]], old.frame[at]);
			x->row[node[at]] = x->row[node[at]] ? x->row[node[at]] : id;
		}
		if (!x->own[node[old.node[id]]])
			x->own[node[old.node[id]]] = id;
	}
	x->n_rows = (uint32_t)old.n_stacks - 1;
	free(node);
	stacktree_free(&old);
	return SQLITE_OK;
}

void sealstack_release(struct seal_tree *x)
{
	stacktree_free(&x->t);
	idmap_release(&x->by_child);
	free(x->depth);
	free(x->row);
	free(x->own);
}

/* The frames from `top` (not included) down to `leaf` (not included), root first. */
static void write_tail(const struct seal_tree *x, uint32_t top, uint32_t leaf, struct strbuf *tail)
{
	uint32_t n = x->depth[leaf] - x->depth[top] - 1, *frames = mem_array(n + 1u, sizeof(*frames));
	uint32_t at = x->t.parent[leaf];

	strbuf_reset(tail);
	for (uint32_t i = n; i-- > 0; at = x->t.parent[at])
		frames[i] = x->t.frame[at];
	for (uint32_t i = 0; i < n; i++)
		strbuf_addf(tail, "%s%u", i ? "," : "", frames[i]);
	free(frames);
}

static int write_stack(struct sealdict *d, sqlite3_stmt *st, uint32_t leaf)
{
	struct seal_tree *x = &d->tree;
	uint32_t top = x->t.parent[leaf], id = x->n_rows + 1;

	while (top && !x->row[top])
		top = x->t.parent[top];
	write_tail(x, top, leaf, &d->key);
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_int64(st, 2, x->row[top]);
	sqlite3_bind_int64(st, 3, x->depth[top]);
	sqlite3_bind_int64(st, 4, x->t.frame[leaf]);
	sqlite3_bind_text(st, 5, strbuf_str(&d->key), (int)d->key.len, SQLITE_STATIC);
	if (sqlite3_step(st) != SQLITE_DONE)
		return sqlite3_reset(st);
	sqlite3_reset(st);
	for (uint32_t at = leaf; at != top; at = x->t.parent[at])
		x->row[at] = x->row[at] ? x->row[at] : id;
	x->own[leaf] = x->n_rows = id;
	return SQLITE_OK;
}

int sealstack_prepare(sqlite3 *day, sqlite3_stmt **put)
{
	return sqlite3_prepare_v2(day, "INSERT INTO stack(id, base, keep, leaf, tail) VALUES(?1, ?2, ?3, ?4, ?5)", -1, put, NULL);
}

static int own_stack(struct sealdict *d, sqlite3_stmt *put, uint32_t leaf, uint32_t *id)
{
	int rc = d->tree.own[leaf] ? SQLITE_OK : write_stack(d, put, leaf);

	*id = d->tree.own[leaf];
	return rc;
}

int sealstack_below(struct sealdict *d, sqlite3_stmt *put, uint32_t top, uint32_t frame, uint32_t *id)
{
	return own_stack(d, put, child(&d->tree, top, frame), id);
}

int sealstack_copy(struct sealdict *d, sqlite3_stmt *put, const struct stacktree *from, uint32_t leaf, uint32_t *id)
{
	uint32_t *path, n = 0, node = 0;

	for (uint32_t at = leaf; at; at = from->parent[at])
		n++;
	path = mem_array(n + 1u, sizeof(*path));
	for (uint32_t at = leaf, i = n; at; at = from->parent[at])
		path[--i] = from->frame[at];
	for (uint32_t i = 0; i < n; i++)
		node = child(&d->tree, node, path[i]);
	free(path);
	return node ? own_stack(d, put, node, id) : SQLITE_CORRUPT;
}

int sealstack_take(struct sealdict *d, sqlite3 *segment)
{
	struct seal_map *m = &d->map[SEAL_STACK];
	sqlite3_stmt *st = NULL;
	struct stacktree from;
	uint32_t *node;
	int rc = stacktree_load(segment, &from);

	if (rc != SQLITE_OK)
		return rc;
	node = mem_array(from.n, sizeof(*node));
	for (size_t i = 1; i < from.n; i++)
		node[i] = child(&d->tree, node[from.parent[i]], sealdict_id(d, SEAL_FRAME, from.frame[i]));
	m->n = from.n_stacks;
	m->to = mem_array(m->n, sizeof(*m->to));
	rc = sealstack_prepare(d->day, &st);
	for (size_t i = 1; rc == SQLITE_OK && i < m->n; i++) {
		uint32_t leaf = node[from.node[i]];

		rc = own_stack(d, st, leaf, &m->to[i]);
	}
	sqlite3_finalize(st);
	free(node);
	stacktree_free(&from);
	return rc;
}
