/* SPDX-License-Identifier: Apache-2.0 */
/* stacktree: writing and loading the tree of stacks. */
#include "schema/store/stacktree.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/commit.h"

static uint32_t stacktree_put_one(struct commit *c, uint32_t node)
{
	struct dict_node *n = dict_at(c->dict, DICT_NODE, dict_node, node);
	uint32_t frame = commit_frame(c, n->frame);
	uint32_t parent = n->parent ? dict_at(c->dict, DICT_NODE, dict_node, n->parent)->row : 0;
	sqlite3_stmt *st = commit_stmt(c, ST_NODE);
	uint32_t row;

	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, parent);
	sqlite3_bind_int64(st, 2, frame);
	row = commit_insert(c, st);
	if (row)
		commit_mark(c, DICT_NODE, node, row);
	return row;
}

uint32_t stacktree_put(struct commit *c, uint32_t node)
{
	uint32_t depth = 0;
	uint32_t row = 0;

	if (!node)
		return 0;
	for (; node; node = dict_at(c->dict, DICT_NODE, dict_node, node)->parent) {
		row = dict_at(c->dict, DICT_NODE, dict_node, node)->row;
		if (row)
			break;
		mem_grow(c->chain, depth, c->cap_chain);
		c->chain[depth++] = node;
	}
	while (depth) {
		row = stacktree_put_one(c, c->chain[--depth]);
		if (!row)
			return 0;
	}
	return row;
}

int stacktree_load(sqlite3 *db, uint32_t **parent, uint32_t **frame, size_t *n)
{
	sqlite3_stmt *st = NULL;
	uint32_t *p = NULL, *f = NULL;
	size_t count = 1, cap = 0;
	int rc = sqlite3_prepare_v2(db, "SELECT id, parent, frame FROM stack ORDER BY id", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		sqlite3_int64 id = sqlite3_column_int64(st, 0);
		sqlite3_int64 up = sqlite3_column_int64(st, 1);
		sqlite3_int64 fr = sqlite3_column_int64(st, 2);

		rc = SQLITE_OK;
		if (id != (sqlite3_int64)count || up < 0 || up >= id || fr < 0 || fr > UINT32_MAX) {
			rc = SQLITE_CORRUPT; /* ids are dense, parents come first */
			break;
		}
		if (count >= cap) {
			cap = cap ? cap * 2 : 1024;
			p = mem_realloc(p, cap * sizeof(*p));
			f = mem_realloc(f, cap * sizeof(*f));
		}
		p[count] = (uint32_t)up;
		f[count++] = (uint32_t)fr;
	}
	sqlite3_finalize(st);
	if (rc != SQLITE_DONE) {
		free(p);
		free(f);
		return rc;
	}
	if (!cap) {
		p = mem_array(1, sizeof(*p));
		f = mem_array(1, sizeof(*f));
	}
	p[0] = f[0] = 0;
	*parent = p;
	*frame = f;
	*n = count;
	return SQLITE_OK;
}
