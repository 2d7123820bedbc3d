/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde_frames(stack): the frames of one stack, depth 0 being its root: as ids of view `frames`.
 * A stack is the first `keep` frames of its base, then `tail`, then `leaf`
 * (schema/sql/0020-code.sql); an inlined function comes after those that it was inlined into.
 */
#include <sqlite3ext.h>
#include <stdlib.h>
#include <string.h>

#include "schema/extension/tables.h"

SQLITE_EXTENSION_INIT3

enum column { DEPTH, FRAME_ID, STACK_ID };

#define COLUMNS    "CREATE TABLE x(depth INTEGER, frame_id INTEGER, stack_id HIDDEN)"
#define FRAMES_MAX 8192 /* of one stack: more is damage */
#define OUTER_MAX  64   /* as in view stack_place */

struct cursor {
	sqlite3_vtab_cursor base;
	sqlite3_stmt *stack, *outer;
	sqlite3_int64 stack_id;
	int64_t places[FRAMES_MAX]; /* by place of the physical function; 0: none */
	int64_t frames[FRAMES_MAX];
	size_t n_places, n, at;
};

TABLES_CONNECT(COLUMNS)

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *c = &info->aConstraint[i];

		if (c->iColumn != STACK_ID || c->op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		if (!c->usable)
			return SQLITE_CONSTRAINT;
		info->aConstraintUsage[i].argvIndex = 1;
		info->aConstraintUsage[i].omit = 1;
		info->estimatedRows = 30;
		info->estimatedCost = 100;
		return SQLITE_OK;
	}
	return tables_error(base, SQLITE_ERROR,
			    "sonde_frames() is asked with a stack: sonde_frames(stack_id)");
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	sqlite3 *db = tables_of(base)->db;
	int rc = tables_cursor(sizeof(struct cursor), out);
	struct cursor *c = (struct cursor *)*out;

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_prepare_v2(db, "SELECT base, keep, leaf, tail FROM main.stack WHERE id = ?1",
				-1, &c->stack, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, "SELECT f.outer FROM main.frame f WHERE f.id = ?1", -1,
					&c->outer, NULL);
	if (rc != SQLITE_OK) {
		tables_error(base, rc, NULL);
		sqlite3_finalize(c->stack);
		sqlite3_free(c);
		*out = NULL;
	}
	return rc;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	sqlite3_finalize(c->stack);
	sqlite3_finalize(c->outer);
	sqlite3_free(c);
	return SQLITE_OK;
}

/* Sets one place if it is below `upto` and still empty. */
static bool put(struct cursor *c, int64_t place, int64_t upto, int64_t frame)
{
	if (place >= upto)
		return true;
	if (place < 0 || place >= FRAMES_MAX)
		return false;
	c->places[place] = frame;
	if (c->n_places < (size_t)place + 1)
		c->n_places = (size_t)place + 1;
	return true;
}

/* What one stack adds to its base: '12,7,9' and the leaf. */
static bool put_own(struct cursor *c, int64_t keep, int64_t upto, const char *tail, int64_t leaf)
{
	int64_t place = keep;

	while (tail && *tail) {
		char *end;
		int64_t frame = strtoll(tail, &end, 10);

		if (end == tail || !put(c, place++, upto, frame))
			return false;
		tail = *end == ',' ? end + 1 : end;
	}
	return put(c, place, upto, leaf);
}

/* From the stack to its base, and so on: a base is an earlier stack, so this ends. */
static bool put_stack(struct cursor *c, int64_t id)
{
	int64_t upto = INT64_MAX;

	while (id > 0) {
		int64_t base = 0, keep;
		bool good = true;

		sqlite3_bind_int64(c->stack, 1, id);
		if (sqlite3_step(c->stack) == SQLITE_ROW) {
			base = sqlite3_column_int64(c->stack, 0);
			keep = sqlite3_column_int64(c->stack, 1);
			good = keep >= 0 && keep <= FRAMES_MAX && base < id &&
			       put_own(c, keep, upto,
				       (const char *)sqlite3_column_text(c->stack, 3),
				       sqlite3_column_int64(c->stack, 2));
			upto = keep < upto ? keep : upto;
		}
		sqlite3_reset(c->stack);
		if (!good)
			return false;
		id = base;
	}
	return true;
}

static int64_t outer_of(struct cursor *c, int64_t frame)
{
	int64_t outer = 0;

	sqlite3_bind_int64(c->outer, 1, frame);
	if (sqlite3_step(c->outer) == SQLITE_ROW)
		outer = sqlite3_column_int64(c->outer, 0);
	sqlite3_reset(c->outer);
	return outer;
}

/* A place's functions, outermost first. */
static bool add_place(struct cursor *c, int64_t frame)
{
	int64_t inside[OUTER_MAX + 1];
	size_t n = 0;

	for (; frame > 0 && n <= OUTER_MAX; frame = outer_of(c, frame))
		inside[n++] = frame;
	if (c->n + n > FRAMES_MAX)
		return false;
	while (n)
		c->frames[c->n++] = inside[--n];
	return true;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
			 sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	bool good;

	(void)number;
	(void)plan;
	memset(c->places, 0, c->n_places * sizeof(c->places[0]));
	c->n_places = c->n = c->at = 0;
	c->stack_id = argc == 1 ? sqlite3_value_int64(argv[0]) : 0;
	good = put_stack(c, c->stack_id);
	for (size_t i = 0; good && i < c->n_places; i++)
		good = add_place(c, c->places[i]);
	return good ? SQLITE_OK :
		      tables_error(base->pVtab, SQLITE_CORRUPT_VTAB,
				   "the file is damaged: a stack cannot be read");
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
	((struct cursor *)base)->at++;
	return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
	const struct cursor *c = (struct cursor *)base;

	return c->at >= c->n;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
	const struct cursor *c = (struct cursor *)base;

	switch ((enum column)column) {
	case DEPTH:
		sqlite3_result_int64(out, (sqlite3_int64)c->at);
		break;
	case FRAME_ID:
		sqlite3_result_int64(out, c->frames[c->at]);
		break;
	case STACK_ID:
		sqlite3_result_int64(out, c->stack_id);
		break;
	}
	return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = (sqlite3_int64)((struct cursor *)base)->at;
	return SQLITE_OK;
}

const sqlite3_module FRAMES_TABLE = TABLES_MODULE;
