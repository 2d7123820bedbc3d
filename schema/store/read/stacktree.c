/* SPDX-License-Identifier: Apache-2.0 */
/* stacktree: loading stacks as a tree. */
#include "schema/store/read/stacktree.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/packed/read.h"

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
