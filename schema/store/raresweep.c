/* SPDX-License-Identifier: Apache-2.0 */
/* raresweep: what nothing in a day points to any more (sealrare.h, rule 6). Ids of series and frames stay; stacks, which stand on
 * each other, are written anew, those that are left in their old order. */
#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/rareparts.h"
#include "schema/store/sealparts.h"
#include "schema/store/sealsamples.h"

/* Sets live[x] for each x that `sql` gives. */
static int note_live(sqlite3 *day, const char *sql, bool *live, size_t n)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(day, sql, -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		sqlite3_int64 id = sqlite3_column_int64(st, 0);

		if (id > 0 && (size_t)id < n)
			live[id] = true;
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int note_blocks(sqlite3 *day, bool *live, size_t n)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(day, "SELECT ts, data FROM sample_pack", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct sample_row rows[256];
		struct pack_reader r;
		size_t k;

		pack_open(&r, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), sqlite3_column_int64(st, 0));
		while ((k = pack_next(&r, rows, 256)))
			while (k--)
				if (rows[k].series < n)
					live[rows[k].series] = true;
		rc = r.bad ? SQLITE_CORRUPT : SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Those that are not live go. */
static int drop_dead(sqlite3 *day, const char *sql, const bool *live, size_t n)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(day, sql, -1, &st, NULL);

	for (size_t i = 1; rc == SQLITE_OK && i < n; i++) {
		if (live[i])
			continue;
		sqlite3_bind_int64(st, 1, (sqlite3_int64)i);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

static int sweep_series(const struct rare *r)
{
	bool *live = mem_array(r->n_series + 1, sizeof(*live));
	int rc = note_blocks(r->d->day, live, r->n_series);

	if (rc == SQLITE_OK)
		rc = note_live(r->d->day, "SELECT series FROM sample UNION ALL SELECT series FROM amount", live, r->n_series);
	if (rc == SQLITE_OK)
		rc = drop_dead(r->d->day, "DELETE FROM series WHERE id = ?1", live, r->n_series);
	free(live);
	return rc;
}

/* --- stacks --- */

/* What points to a stack; by negative numbers first, so that none meets one that is not renumbered yet. */
#define POINTED "SELECT stack FROM series UNION ALL SELECT stack FROM wake_row UNION ALL SELECT stack FROM wait_on_row"
#define RENUMBER(table) "UPDATE " table " SET stack = -coalesce((SELECT new FROM temp.moved m WHERE m.id = stack), 0) WHERE stack > 0;" \
			"UPDATE " table " SET stack = -stack WHERE stack < 0;"

static int renumber(sqlite3 *day, const uint32_t *moved, size_t n)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_exec(day, "CREATE TEMP TABLE moved(id INTEGER PRIMARY KEY, new INTEGER NOT NULL)", NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(day, "INSERT INTO temp.moved(id, new) VALUES(?1, ?2)", -1, &st, NULL);
	for (size_t i = 1; rc == SQLITE_OK && i < n; i++) {
		if (!moved[i])
			continue;
		sqlite3_bind_int64(st, 1, (sqlite3_int64)i);
		sqlite3_bind_int64(st, 2, moved[i]);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(day, RENUMBER("series") RENUMBER("wake_row") RENUMBER("wait_on_row") "DROP TABLE temp.moved", NULL, NULL,
				  NULL);
	return rc;
}

/* The stacks that are left, in a tree of their own: d->tree is that one from here on. */
static int write_stacks(struct rare *r, const bool *live, const uint32_t *node, uint32_t *moved, size_t n)
{
	struct seal_tree old = r->d->tree;
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_exec(r->d->day, "DELETE FROM stack", NULL, NULL, NULL);

	r->d->tree = (struct seal_tree){0};
	sealstack_plant(&r->d->tree);
	if (rc == SQLITE_OK)
		rc = sealstack_prepare(r->d->day, &st);
	for (size_t i = 1; rc == SQLITE_OK && i < n; i++)
		if (live[i])
			rc = sealstack_copy(r->d, st, &old.t, node[i], &moved[i]);
	sqlite3_finalize(st);
	sealstack_release(&old);
	return rc;
}

static int sweep_stacks(struct rare *r)
{
	size_t n = (size_t)r->d->tree.n_rows + 1;
	bool *live = mem_array(n, sizeof(*live));
	uint32_t *moved = mem_array(n, sizeof(*moved)), *node = mem_array(n, sizeof(*node));
	int rc = note_live(r->d->day, POINTED, live, n);

	for (uint32_t i = 1; i < r->d->tree.t.n; i++)
		node[r->d->tree.own[i]] = i; /* of 0: never asked for */
	if (rc == SQLITE_OK)
		rc = write_stacks(r, live, node, moved, n);
	if (rc == SQLITE_OK)
		rc = renumber(r->d->day, moved, n);
	free(live);
	free(moved);
	free(node);
	return rc;
}

/* --- frames --- */

static int sweep_frames(const struct rare *r)
{
	const struct stacktree *t = &r->d->tree.t;
	bool *live = mem_array(r->n_frames + 1, sizeof(*live));
	int rc = note_live(r->d->day, "SELECT frame FROM rare_row", live, r->n_frames);

	if (r->mark < r->n_frames)
		live[r->mark] = true;
	for (size_t i = 1; i < t->n; i++)
		if (t->frame[i] < r->n_frames)
			live[t->frame[i]] = true;
	for (size_t i = 1; i < r->n_frames; i++)
		for (uint32_t at = live[i] ? r->frames[i].outer : 0; at && at < r->n_frames && !live[at]; at = r->frames[at].outer)
			live[at] = true;
	if (rc == SQLITE_OK)
		rc = drop_dead(r->d->day, "DELETE FROM frame WHERE id = ?1", live, r->n_frames);
	free(live);
	return rc;
}

int rare_sweep(struct rare *r)
{
	int rc = sweep_series(r);

	if (rc == SQLITE_OK)
		rc = sweep_stacks(r);
	return rc == SQLITE_OK ? sweep_frames(r) : rc;
}
