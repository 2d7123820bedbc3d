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
	uint32_t *depth; /* by node */
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

	if (r->base < 0 || r->base >= r->id || r->leaf < 0 || r->leaf > UINT32_MAX || !tail)
		return SQLITE_CORRUPT; /* a base comes before */
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
	l->t.node[r->id] = (uint32_t)l->t.n - 1;
	return *tail ? SQLITE_CORRUPT : SQLITE_OK;
}

/* Of all: ids are dense. */
static int load_next(struct loading *l, const struct stack_row *r)
{
	if (r->id != (int64_t)l->t.n_stacks)
		return SQLITE_CORRUPT;
	mem_grow(l->t.node, l->t.n_stacks, l->cap_stacks);
	l->t.node[l->t.n_stacks++] = 0;
	return load_row(l, r);
}

#define COLUMNS "id, base, keep, leaf, tail"

/* SQLITE_DONE where all went well, as SQLite says it. */
static int load_packed(struct loading *l, const struct packedread *p)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < p->t.n_rows && rc == SQLITE_OK; i++)
		rc = load_next(l, &(struct stack_row){
					  packedread_number(p, 0, i), packedread_number(p, 1, i),
					  packedread_number(p, 2, i), packedread_number(p, 3, i),
					  packedread_text(p, 4, i)});
	return rc == SQLITE_OK ? SQLITE_DONE : rc;
}

static int load_rows(struct loading *l, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT " COLUMNS " FROM stack ORDER BY id", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		rc = load_next(l, &(struct stack_row){
					  sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
					  sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3),
					  (const char *)sqlite3_column_text(st, 4)});
	sqlite3_finalize(st);
	return rc;
}

/* --- some of them --- */

/* Marks what those that are marked begin as. */
static int bases_mark(sqlite3_stmt *st, uint8_t *wanted, size_t n)
{
	int rc = SQLITE_DONE;

	for (size_t i = n; i-- > 1 && rc == SQLITE_DONE;) { /* a base has a smaller id */
		int64_t base;

		if (!wanted[i])
			continue;
		sqlite3_bind_int64(st, 1, (int64_t)i);
		rc = sqlite3_step(st);
		base = rc == SQLITE_ROW ? sqlite3_column_int64(st, 1) : 0;
		if (base > 0 && base < (int64_t)i)
			wanted[base] = 1;
		sqlite3_reset(st);
		rc = rc == SQLITE_ROW ? SQLITE_DONE : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
	}
	return rc;
}

static int marked_load(struct loading *l, sqlite3_stmt *st, const uint8_t *wanted)
{
	int rc = SQLITE_OK;

	for (size_t i = 1; i < l->t.n_stacks && rc == SQLITE_OK; i++) {
		if (!wanted[i])
			continue;
		sqlite3_bind_int64(st, 1, (int64_t)i);
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			rc = load_row(
				l, &(struct stack_row){
					   sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
					   sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3),
					   (const char *)sqlite3_column_text(st, 4)});
		sqlite3_reset(st);
	}
	return rc;
}

int stacktree_load_some(sqlite3 *db, const uint32_t *ids, size_t n, struct stacktree *out)
{
	struct loading l = {0};
	sqlite3_stmt *st = NULL;
	uint32_t most = 0;
	uint8_t *wanted;
	int rc = sqlite3_prepare_v2(db, "SELECT " COLUMNS " FROM stack WHERE id = ?1", -1, &st,
				    NULL);

	for (size_t i = 0; i < n; i++)
		most = ids[i] > most ? ids[i] : most;
	if (rc == SQLITE_OK && most >= UINT32_MAX - (1u << 30))
		rc = SQLITE_CORRUPT;
	if (rc != SQLITE_OK) {
		sqlite3_finalize(st);
		return rc;
	}
	wanted = mem_array((size_t)most + 1, 1);
	for (size_t i = 0; i < n; i++)
		wanted[ids[i]] = 1;
	add_node(&l, 0, 0);
	l.t.n_stacks = (size_t)most + 1;
	l.t.node = mem_array(l.t.n_stacks, sizeof(*l.t.node));
	rc = bases_mark(st, wanted, l.t.n_stacks);
	if (rc == SQLITE_DONE)
		rc = marked_load(&l, st, wanted);
	sqlite3_finalize(st);
	free(wanted);
	free(l.depth);
	if (rc != SQLITE_OK) {
		stacktree_free(&l.t);
		return rc;
	}
	*out = l.t;
	return SQLITE_OK;
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
