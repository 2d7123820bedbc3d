/* SPDX-License-Identifier: Apache-2.0 */
/* stacktree: writing stacks as what they add to an earlier one, and loading them as a tree. */
#include "schema/store/read/stacktree.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/write/transaction.h"
#include "schema/store/packed/read.h"

/* --- writing --- */

static struct dict_node *node_at(const struct commit *c, uint32_t node)
{
	return dict_at(c->dict, DICT_NODE, dict_node, node);
}

/* The leaf and its ancestors up to one that is in the segment, leaf first. Returns that ancestor, or 0. */
static uint32_t chain_of(struct commit *c, uint32_t leaf, uint32_t *n)
{
	uint32_t node = leaf;

	*n = 0;
	do {
		mem_grow(c->chain, *n, c->cap_chain);
		c->chain[(*n)++] = node;
		node = node_at(c, node)->parent;
	} while (node && !node_at(c, node)->row);
	return node;
}

static uint32_t depth_of(const struct commit *c, uint32_t node)
{
	uint32_t depth = 0;

	for (; node; node = node_at(c, node)->parent)
		depth++;
	return depth;
}

/* Frames between base and leaf, as text; then the leaf's id. */
static uint32_t write_frames(struct commit *c, uint32_t n)
{
	strbuf_reset(&c->tail);
	while (--n) {
		if (c->tail.len)
			strbuf_addch(&c->tail, ',');
		strbuf_addu(&c->tail, commit_frame(c, node_at(c, c->chain[n])->frame));
		if (c->rc)
			return 0;
	}
	return commit_frame(c, node_at(c, c->chain[0])->frame);
}

uint32_t stacktree_put(struct commit *c, uint32_t leaf)
{
	uint32_t n, base, frame, row;
	sqlite3_stmt *st;

	if (!leaf || node_at(c, leaf)->own)
		return leaf ? node_at(c, leaf)->own : 0;
	base = chain_of(c, leaf, &n);
	frame = write_frames(c, n);
	st = commit_stmt(c, ST_STACK);
	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, base ? node_at(c, base)->row : 0);
	sqlite3_bind_int64(st, 2, depth_of(c, base));
	sqlite3_bind_int64(st, 3, frame);
	sqlite3_bind_text(st, 4, strbuf_str(&c->tail), -1, SQLITE_STATIC);
	row = commit_insert(c, st);
	if (!row)
		return 0;
	while (n--)
		if (!node_at(c, c->chain[n])->row)
			commit_mark(c, DICT_NODE, c->chain[n], row);
	commit_mark_stack(c, leaf, row);
	return row;
}

/* --- loading --- */

void stacktree_free(struct stacktree *t)
{
	free(t->parent);
	free(t->frame);
	free(t->node);
	*t = (struct stacktree){0};
}

struct loading {
	struct stacktree t;
	uint32_t *depth;      /* by node */
	size_t cap_stacks;
};

void stacktree_grow(struct stacktree *t)
{
	if (t->n < t->cap)
		return;
	t->cap = t->cap ? t->cap * 2 : 1024;
	t->parent = mem_realloc(t->parent, t->cap * sizeof(*t->parent));
	t->frame = mem_realloc(t->frame, t->cap * sizeof(*t->frame));
}

static void add_node(struct loading *l, uint32_t parent, uint32_t frame)
{
	struct stacktree *t = &l->t;

	size_t cap = t->cap;

	stacktree_grow(t);
	if (t->cap != cap)
		l->depth = mem_realloc(l->depth, t->cap * sizeof(*l->depth));
	t->parent[t->n] = parent;
	t->frame[t->n] = frame;
	l->depth[t->n] = t->n ? l->depth[parent] + 1 : 0;
	t->n++;
}

/* The next number of "12,7,9"; false at the end, or at what is no number. */
static bool next_frame(const char **p, uint32_t *frame)
{
	uint64_t v = 0;

	if (**p < '0' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9' && v <= UINT32_MAX; (*p)++)
		v = v * 10 + (uint64_t)(**p - '0');
	if (**p == ',')
		(*p)++;
	*frame = (uint32_t)v;
	return v <= UINT32_MAX;
}

struct stack_row {
	int64_t id, base, keep, leaf;
	const char *tail;
};

static int load_row(struct loading *l, const struct stack_row *r)
{
	const char *tail = r->tail;
	uint32_t node, frame;

	if (r->id != (int64_t)l->t.n_stacks || r->base < 0 || r->base >= r->id || r->leaf < 0 || r->leaf > UINT32_MAX || !tail)
		return SQLITE_CORRUPT; /* ids are dense, a base comes before */
	node = l->t.node[r->base];
	if (r->keep < 0 || r->keep > l->depth[node] || l->t.n >= UINT32_MAX - (1u << 30))
		return SQLITE_CORRUPT;
	while (l->depth[node] > r->keep)
		node = l->t.parent[node];
	while (next_frame(&tail, &frame)) {
		add_node(l, node, frame);
		node = (uint32_t)l->t.n - 1;
	}
	add_node(l, node, (uint32_t)r->leaf);
	mem_grow(l->t.node, l->t.n_stacks, l->cap_stacks);
	l->t.node[l->t.n_stacks++] = (uint32_t)l->t.n - 1;
	return *tail ? SQLITE_CORRUPT : SQLITE_OK;
}

#define COLUMNS "id, base, keep, leaf, tail"

/* SQLITE_DONE where all went well, as SQLite says it. */
static int load_packed(struct loading *l, const struct packedread *p)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < p->t.n_rows && rc == SQLITE_OK; i++)
		rc = load_row(l, &(struct stack_row){packedread_number(p, 0, i), packedread_number(p, 1, i), packedread_number(p, 2, i),
						     packedread_number(p, 3, i), packedread_text(p, 4, i)});
	return rc == SQLITE_OK ? SQLITE_DONE : rc;
}

static int load_rows(struct loading *l, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT " COLUMNS " FROM stack ORDER BY id", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		rc = load_row(l, &(struct stack_row){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 2),
						     sqlite3_column_int64(st, 3), (const char *)sqlite3_column_text(st, 4)});
	sqlite3_finalize(st);
	return rc;
}

int stacktree_load(sqlite3 *db, struct stacktree *out)
{
	struct loading l = {0};
	struct packedread packed;
	int rc;

	add_node(&l, 0, 0);
	mem_grow(l.t.node, l.t.n_stacks, l.cap_stacks);
	l.t.node[l.t.n_stacks++] = 0;
	if (packedread_open_whole(&packed, db, "stack", COLUMNS)) {
		rc = load_packed(&l, &packed);
		packedread_release(&packed);
	} else {
		rc = load_rows(&l, db);
	}
	free(l.depth);
	if (rc != SQLITE_DONE) {
		stacktree_free(&l.t);
		return rc;
	}
	*out = l.t;
	return SQLITE_OK;
}
