/* SPDX-License-Identifier: Apache-2.0 */
/* packorder: see the header; the numbers of the rules are those of the header. */
#include "schema/store/packorder.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/reading.h"
#include "schema/store/stacktree.h"

#define ID_MAX    (1 << 28)
#define OUTER_MAX 64 /* as in view stack_place */

static int room(sqlite3 *db, struct packorder *o, enum packorder_kind kind, const char *max)
{
	int64_t v = reading_number(db, max, 0);

	if (v < 0 || v >= ID_MAX)
		return SQLITE_CORRUPT;
	o->n[kind] = (size_t)v + 1;
	o->to[kind] = mem_array(o->n[kind], sizeof(*o->to[kind]));
	return SQLITE_OK;
}

uint32_t packorder_number(const struct packorder *o, enum packorder_kind kind, int64_t old)
{
	return old > 0 && (uint64_t)old < o->n[kind] ? o->to[kind][old] : 0;
}

#define NUMBERS 5

/* Rows of so many numbers at most, in the order that sql gives them. */
struct numbers {
	int64_t (*v)[NUMBERS];
	size_t n, cap;
};

static int read_numbers(sqlite3 *db, const char *sql, struct numbers *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL), columns = sqlite3_column_count(st);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		mem_grow(out->v, out->n, out->cap);
		for (int i = 0; i < columns && i < NUMBERS; i++)
			out->v[out->n][i] = sqlite3_column_int64(st, i);
		rc = out->v[out->n][0] > 0 && out->v[out->n][0] < ID_MAX ? SQLITE_OK : SQLITE_CORRUPT;
		out->n++;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* --- rules 1 and 2 --- */

struct place {
	int64_t image, offset;
	uint32_t id, depth, function;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t id_below(int64_t id, size_t n)
{
	return id > 0 && (uint64_t)id < n ? (uint32_t)id : 0;
}

static uint32_t depth_of(const uint32_t *outer, uint32_t frame)
{
	uint32_t depth = 0;

	for (frame = outer[frame]; frame && depth < OUTER_MAX; frame = outer[frame])
		depth++;
	return depth;
}

static struct place *places_of(const struct packorder *o, const struct numbers *rows)
{
	struct place *places = mem_array(rows->n + 1, sizeof(*places));
	uint32_t *outer = mem_array(o->n[PACKORDER_FRAME], sizeof(*outer));

	for (size_t i = 0; i < rows->n; i++)
		outer[rows->v[i][0]] = id_below(rows->v[i][4], o->n[PACKORDER_FRAME]);
	for (size_t i = 0; i < rows->n; i++)
		places[i] = (struct place){.image = rows->v[i][1], .offset = rows->v[i][2], .id = (uint32_t)rows->v[i][0],
					   .depth = depth_of(outer, (uint32_t)rows->v[i][0]),
					   .function = id_below(rows->v[i][3], o->n[PACKORDER_FUNCTION])};
	if (rows->n)
		qsort(places, rows->n, sizeof(*places), by_place);
	free(outer);
	return places;
}

static int number_frames(sqlite3 *db, struct packorder *o, struct place **places, size_t *n)
{
	struct numbers rows = {0};
	int rc = read_numbers(db, "SELECT id, image, offset, function, outer FROM frame", &rows);

	if (rc == SQLITE_OK) {
		*places = places_of(o, &rows);
		*n = rows.n;
	}
	for (size_t i = 0; rc == SQLITE_OK && i < *n; i++)
		o->to[PACKORDER_FRAME][(*places)[i].id] = (uint32_t)i + 1;
	free(rows.v);
	return rc;
}

static int number_functions(sqlite3 *db, struct packorder *o, const struct place *places, size_t n)
{
	uint32_t *to = o->to[PACKORDER_FUNCTION], last = 0;
	bool *is_there = mem_array(o->n[PACKORDER_FUNCTION], sizeof(*is_there));
	struct numbers rows = {0};
	int rc = read_numbers(db, "SELECT id FROM function ORDER BY image, name", &rows);

	for (size_t i = 0; rc == SQLITE_OK && i < rows.n; i++)
		is_there[rows.v[i][0]] = true;
	for (size_t i = 0; i < n; i++)
		if (is_there[places[i].function] && !to[places[i].function])
			to[places[i].function] = ++last;
	for (size_t i = 0; rc == SQLITE_OK && i < rows.n; i++)
		if (!to[rows.v[i][0]])
			to[rows.v[i][0]] = ++last;
	free(is_there);
	free(rows.v);
	return rc;
}

/* --- rule 3 --- */

struct packorder_tree {
	struct stacktree t;  /* its nodes may be twice: */
	uint32_t *same;      /* by node, the first one of that parent and frame */
	uint32_t *depth;     /* by node */
};

static int tree_load(sqlite3 *db, struct packorder_tree *x)
{
	struct idmap nodes = {0};
	int rc = stacktree_load(db, &x->t);

	if (rc != SQLITE_OK)
		return rc;
	x->same = mem_array(x->t.n, sizeof(*x->same));
	x->depth = mem_array(x->t.n, sizeof(*x->depth));
	idmap_reserve(&nodes, x->t.n);
	for (size_t i = 1; i < x->t.n; i++) {
		uint32_t parent = x->same[x->t.parent[i]];
		bool fresh;
		uint64_t *at = idmap_ref(&nodes, (uint64_t)parent << 32 | x->t.frame[i], &fresh);

		*at = fresh ? i : *at;
		x->same[i] = (uint32_t)*at;
		x->t.parent[i] = parent;
		x->depth[i] = x->depth[parent] + 1;
	}
	idmap_release(&nodes);
	return SQLITE_OK;
}

static void tree_free(struct packorder_tree *x)
{
	if (!x)
		return;
	stacktree_free(&x->t);
	free(x->same);
	free(x->depth);
	free(x);
}

static uint32_t end_of(const struct packorder_tree *x, uint32_t stack)
{
	return x->same[x->t.node[stack]];
}

/* A stack that others go on from comes before them. */
static int by_tree(const void *a, const void *b, void *ctx)
{
	const struct packorder *o = ctx;
	const struct packorder_tree *x = o->tree;
	uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b, p = end_of(x, first), q = end_of(x, second);
	int longer = x->depth[p] < x->depth[q] ? -1 : x->depth[p] > x->depth[q];
	uint32_t m, n;

	while (x->depth[p] > x->depth[q])
		p = x->t.parent[p];
	while (x->depth[q] > x->depth[p])
		q = x->t.parent[q];
	if (p == q)
		return longer ? longer : first < second ? -1 : first > second;
	while (x->t.parent[p] != x->t.parent[q]) {
		p = x->t.parent[p];
		q = x->t.parent[q];
	}
	m = packorder_number(o, PACKORDER_FRAME, x->t.frame[p]);
	n = packorder_number(o, PACKORDER_FRAME, x->t.frame[q]);
	return m != n ? (m < n ? -1 : 1) : p < q ? -1 : 1; /* both may be 0 */
}

static int number_stacks(sqlite3 *db, struct packorder *o)
{
	uint32_t *order;
	size_t n;
	int rc;

	o->tree = mem_array(1, sizeof(*o->tree));
	rc = tree_load(db, o->tree);
	if (rc != SQLITE_OK)
		return rc;
	n = o->tree->t.n_stacks - 1;
	if (n >= o->n[PACKORDER_STACK])
		return SQLITE_CORRUPT;
	order = mem_array(n + 1, sizeof(*order));
	for (uint32_t i = 0; i < n; i++)
		order[i] = i + 1;
	if (n)
		qsort_r(order, n, sizeof(*order), by_tree, o);
	for (uint32_t i = 0; i < n; i++)
		o->to[PACKORDER_STACK][order[i]] = i + 1;
	free(order);
	return SQLITE_OK;
}

/* --- rule 4 --- */

static int by_task(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	for (int i = 1; i < 3; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return x[0] < y[0] ? -1 : x[0] > y[0];
}

static int number_series(sqlite3 *db, struct packorder *o)
{
	struct numbers rows = {0};
	int rc = read_numbers(db, "SELECT id, task, stack FROM series", &rows);

	for (size_t i = 0; i < rows.n; i++)
		rows.v[i][2] = packorder_number(o, PACKORDER_STACK, rows.v[i][2]);
	if (rc == SQLITE_OK && rows.n)
		qsort(rows.v, rows.n, sizeof(*rows.v), by_task);
	for (size_t i = 0; rc == SQLITE_OK && i < rows.n; i++)
		o->to[PACKORDER_SERIES][rows.v[i][0]] = (uint32_t)i + 1;
	free(rows.v);
	return rc;
}

/* --- all --- */

int packorder_load(sqlite3 *db, struct packorder *out)
{
	static const char *const MAX[] = {"SELECT max(id) FROM frame", "SELECT max(id) FROM function", "SELECT max(id) FROM stack",
					  "SELECT max(id) FROM series"};
	struct packorder o = {0};
	struct place *places = NULL;
	size_t n = 0;
	int rc = SQLITE_OK;

	for (enum packorder_kind kind = 0; rc == SQLITE_OK && kind < PACKORDER_KINDS; kind++)
		rc = room(db, &o, kind, MAX[kind]);
	if (rc == SQLITE_OK)
		rc = number_frames(db, &o, &places, &n);
	if (rc == SQLITE_OK)
		rc = number_functions(db, &o, places, n);
	free(places);
	if (rc == SQLITE_OK)
		rc = number_stacks(db, &o);
	if (rc == SQLITE_OK)
		rc = number_series(db, &o);
	if (rc == SQLITE_OK)
		*out = o;
	else
		packorder_release(&o);
	return rc;
}

void packorder_release(struct packorder *o)
{
	for (enum packorder_kind kind = 0; kind < PACKORDER_KINDS; kind++)
		free(o->to[kind]);
	tree_free(o->tree);
	*o = (struct packorder){0};
}

/* --- stacks as rows again --- */

struct writing {
	const struct packorder *o;
	const struct packorder_tree *x;
	struct stackcolumns c;
	uint32_t *owner, *path;  /* by depth, of the stack at hand */
	size_t depth, cap, len, cap_text;
};

static void depth_room(struct writing *w, size_t depth)
{
	if (depth < w->cap)
		return;
	w->cap = 2 * depth + 64;
	w->owner = mem_realloc(w->owner, w->cap * sizeof(*w->owner));
	w->path = mem_realloc(w->path, w->cap * sizeof(*w->path));
}

/* How many frames this one has from the one before, its last one excepted. */
static size_t kept(const struct writing *w, uint32_t end)
{
	size_t depth = w->x->depth[end];

	for (; depth > w->depth; depth--)
		end = w->x->t.parent[end];
	for (; depth && w->path[depth] != end; depth--)
		end = w->x->t.parent[end];
	return depth;
}

static void text_room(struct writing *w)
{
	if (w->cap_text - w->len > COLUMN_DIGITS_MAX + 1)
		return;
	w->cap_text = 2 * w->cap_text + 4096;
	w->c.tail.text = mem_realloc(w->c.tail.text, w->cap_text);
}

static void write_number(struct writing *w, uint32_t v, bool comma)
{
	text_room(w);
	if (comma)
		w->c.tail.text[w->len++] = ',';
	w->len = (size_t)(column_put_number(w->c.tail.text + w->len, v) - w->c.tail.text);
}

static void write_stack(struct writing *w, size_t i, uint32_t end)
{
	size_t depth = w->x->depth[end], keep = kept(w, end);

	keep = keep == depth ? depth - 1 : keep;
	depth_room(w, depth);
	for (size_t k = depth, at = end; k > keep; k--, at = w->x->t.parent[at])
		w->path[k] = (uint32_t)at;
	w->c.base.numbers[i] = keep ? w->owner[keep] : 0;
	w->c.keep.numbers[i] = (int64_t)keep;
	w->c.leaf.numbers[i] = packorder_number(w->o, PACKORDER_FRAME, w->x->t.frame[end]);
	w->c.tail.at[i] = (uint32_t)w->len;
	for (size_t k = keep + 1; k <= depth; k++) {
		w->owner[k] = (uint32_t)i + 1;
		if (k < depth)
			write_number(w, packorder_number(w->o, PACKORDER_FRAME, w->x->t.frame[w->path[k]]), k > keep + 1);
	}
	text_room(w);
	w->c.tail.text[w->len++] = '\0';
	w->depth = depth;
}

static void write_stacks(struct writing *w)
{
	size_t n = w->x->t.n_stacks - 1;
	uint32_t *old = mem_array(n + 2, sizeof(*old));

	for (uint32_t i = 1; i <= n; i++)
		old[packorder_number(w->o, PACKORDER_STACK, i)] = i;
	w->c.base = (struct column){.n = n, .numbers = mem_array(n + 1, sizeof(int64_t))};
	w->c.keep = (struct column){.n = n, .numbers = mem_array(n + 1, sizeof(int64_t))};
	w->c.leaf = (struct column){.n = n, .numbers = mem_array(n + 1, sizeof(int64_t))};
	w->c.tail = (struct column){.n = n, .at = mem_array(n + 2, sizeof(*old))};
	for (size_t i = 0; i < n; i++)
		write_stack(w, i, end_of(w->x, old[i + 1]));
	w->c.tail.at[n] = (uint32_t)w->len;
	free(old);
}

int packorder_stacks(const struct packorder *o, struct stackcolumns *out)
{
	struct writing w = {.o = o, .x = o->tree};
	int rc;

	write_stacks(&w);
	rc = w.len > COLUMN_MAX ? SQLITE_TOOBIG : SQLITE_OK;
	*out = rc == SQLITE_OK ? w.c : (struct stackcolumns){0};
	if (rc != SQLITE_OK)
		stackcolumns_release(&w.c);
	free(w.owner);
	free(w.path);
	return rc;
}
