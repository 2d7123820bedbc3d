/* SPDX-License-Identifier: Apache-2.0 */
/* stacktree: loading stacks as a tree. */
#include "schema/store/read/stacktree.h"

#include <errno.h>
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
	uint32_t *depth; /* by stack id */
	size_t cap_stacks, cap_depths;
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

	stacktree_grow(t);
	t->parent[t->n] = parent;
	t->frame[t->n] = frame;
	t->n++;
}

/* The empty stack. */
static void add_empty(struct loading *l)
{
	add_node(l, 0, 0);
	mem_grow(l->t.node, l->t.n_stacks, l->cap_stacks);
	mem_grow(l->depth, l->t.n_stacks, l->cap_depths);
	l->depth[l->t.n_stacks] = 0;
	l->t.node[l->t.n_stacks++] = 0;
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
	uint32_t node, frame, depth;

	if (r->base < 0 || r->base >= r->id || r->leaf < 0 || r->leaf > UINT32_MAX || !tail)
		return SQLITE_CORRUPT; /* a base comes before */
	node = l->t.node[r->base];
	depth = l->depth[r->base];
	if (r->keep < 0 || r->keep > depth || l->t.n >= UINT32_MAX - (1u << 30))
		return SQLITE_CORRUPT;
	for (; depth > r->keep; depth--)
		node = l->t.parent[node];
	for (; next_frame(&tail, &frame); depth++) {
		add_node(l, node, frame);
		node = (uint32_t)l->t.n - 1;
	}
	add_node(l, node, (uint32_t)r->leaf);
	l->t.node[r->id] = (uint32_t)l->t.n - 1;
	l->depth[r->id] = depth + 1;
	return *tail ? SQLITE_CORRUPT : SQLITE_OK;
}

/* Of all: ids are dense. */
static int load_next(struct loading *l, const struct stack_row *r)
{
	if (r->id != (int64_t)l->t.n_stacks)
		return SQLITE_CORRUPT;
	mem_grow(l->t.node, l->t.n_stacks, l->cap_stacks);
	mem_grow(l->depth, l->t.n_stacks, l->cap_depths);
	l->t.node[l->t.n_stacks++] = 0;
	return load_row(l, r);
}

#define COLUMNS "id, base, keep, leaf, tail"

/* --- of an archive --- */

struct walking {
	struct loading *l;
	uint32_t *at_depth; /* the nodes of the stack at hand */
	size_t n, cap;
};

/* Their number is known: to grow would take twice the room. */
static int walk_begin(void *ctx, size_t frames)
{
	struct walking *w = ctx;
	struct stacktree *t = &w->l->t;

	t->cap = t->n + frames;
	t->parent = mem_realloc(t->parent, t->cap * sizeof(*t->parent));
	t->frame = mem_realloc(t->frame, t->cap * sizeof(*t->frame));
	return 0;
}

static int walk_stack(void *ctx, const struct stackcolumns_stack *s)
{
	struct walking *w = ctx;
	struct loading *l = w->l;

	w->n = s->keep + 1;
	for (size_t i = 0; i < s->n; i++) {
		add_node(l, w->at_depth[w->n - 1], s->frames[i]);
		mem_grow(w->at_depth, w->n, w->cap);
		w->at_depth[w->n++] = (uint32_t)l->t.n - 1;
	}
	l->t.node[s->id] = (uint32_t)l->t.n - 1;
	return 0;
}

/* Ids are dense: those of all rows. */
static bool ids_are_dense(const struct packedread *p)
{
	for (size_t i = 0; i < p->t.n_rows; i++)
		if (packedread_number(p, 0, i) != (int64_t)i + 1)
			return false;
	return true;
}

/* Stacks that are stored as a tree. 0; -ENOTSUP: they are not. */
static int load_tree(struct loading *l, sqlite3 *db)
{
	struct walking w = {.l = l};
	const struct stackcolumns_walk each = {walk_begin, walk_stack, &w};
	struct packedread p;
	int rc = packedread_open(&p, db, "stack", COLUMNS) ? 0 : -ENOTSUP;

	if (rc)
		return rc;
	mem_grow(w.at_depth, w.n, w.cap);
	w.at_depth[w.n++] = 0;
	rc = packedread_stacks(&p, 4, &each);
	packedread_release(&p);
	free(w.at_depth);
	return rc;
}

/* How many numbers all lists of a cursor have, which stays where it is. */
static size_t numbers_left(struct column_cursor c)
{
	size_t n = 0, of_list;
	int64_t v;

	while (column_cursor_list(&c, &of_list)) {
		n += of_list;
		while (column_cursor_next(&c, &v))
			;
	}
	return n;
}

/* As load_row, of stack i + 1. */
static int load_listed(struct loading *l, const struct packedread *p, size_t i,
		       struct column_cursor *tails)
{
	const int64_t base = packedread_number(p, 0, i), keep = packedread_number(p, 1, i),
		      leaf = packedread_number(p, 2, i);
	uint32_t node, depth;
	int64_t frame;
	size_t n;

	if (base < 0 || base > (int64_t)i || leaf < 0 || leaf > UINT32_MAX ||
	    !column_cursor_list(tails, &n))
		return -EBADMSG;
	node = l->t.node[base];
	depth = l->depth[base];
	if (keep < 0 || keep > depth)
		return -EBADMSG;
	for (; depth > keep; depth--)
		node = l->t.parent[node];
	for (; column_cursor_next(tails, &frame); depth++) {
		add_node(l, node, (uint32_t)frame);
		node = (uint32_t)l->t.n - 1;
	}
	add_node(l, node, (uint32_t)leaf);
	l->t.node[i + 1] = (uint32_t)l->t.n - 1;
	l->depth[i + 1] = depth + 1;
	return 0;
}

/* Stacks whose tails are lists, without these as text. */
static int load_lists(struct loading *l, sqlite3 *db)
{
	struct column_cursor tails;
	struct packedread p, tail;
	int rc, end;

	if (!packedread_open(&tail, db, "stack", "tail"))
		return -ENOTSUP;
	rc = packedread_lists(&tail, 0, &tails);
	packedread_release(&tail);
	if (rc)
		return rc;
	if (packedread_open_whole(&p, db, "stack", "base, keep, leaf")) {
		struct walking w = {.l = l};

		l->depth = mem_realloc(l->depth, l->t.n_stacks * sizeof(*l->depth));
		walk_begin(&w, numbers_left(tails) + p.t.n_rows);
		for (size_t i = 0; !rc && i < p.t.n_rows; i++)
			rc = load_listed(l, &p, i, &tails);
		packedread_release(&p);
	} else {
		rc = -ENOTSUP;
	}
	end = column_cursor_close(&tails);
	return rc ? rc : end;
}

/* SQLITE_DONE where all went well, as SQLite says it; SQLITE_NOTFOUND: they are no such columns, or
 * damaged, and nothing is loaded. */
static int load_packed(struct loading *l, sqlite3 *db)
{
	const size_t n_stacks = l->t.n_stacks;
	struct packedread ids;
	bool dense;
	int rc;

	if (!packedread_open_whole(&ids, db, "stack", "id"))
		return SQLITE_NOTFOUND;
	dense = ids_are_dense(&ids);
	l->t.n_stacks += ids.t.n_rows;
	packedread_release(&ids);
	l->t.node = mem_realloc(l->t.node, l->t.n_stacks * sizeof(*l->t.node));
	rc = dense ? load_tree(l, db) : -ENOTSUP;
	if (dense && rc == -ENOTSUP)
		rc = load_lists(l, db);
	if (!rc)
		return SQLITE_DONE;
	l->t.n_stacks = l->cap_stacks = l->cap_depths = n_stacks; /* both were cut to the rows */
	l->t.n = 1;
	return SQLITE_NOTFOUND;
}

/* --- of rows --- */

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
	l.depth = mem_array(l.t.n_stacks, sizeof(*l.depth));
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
	int rc;

	add_empty(&l);
	rc = load_packed(&l, db);
	if (rc == SQLITE_NOTFOUND)
		rc = load_rows(&l, db);
	free(l.depth);
	if (rc != SQLITE_DONE) {
		stacktree_free(&l.t);
		return rc;
	}
	*out = l.t;
	return SQLITE_OK;
}
