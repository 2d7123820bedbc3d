/* SPDX-License-Identifier: Apache-2.0 */
/* sealrare: see the header; the numbers are its rules. */
#include "schema/store/sealrare.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/kinds.h"
#include "schema/store/rareparts.h"
#include "schema/store/reader.h"
#include "schema/store/sealparts.h"

#define HOUR_S 3600

/* --- which hours --- */

static int hours_of(sqlite3 *day, int64_t t0, int64_t now_ns, struct rare_hours *out)
{
	sqlite3_stmt *st = NULL;
	int64_t before = now_ns / NSEC_PER_SEC - 2 * HOUR_S; /* starts of hours */
	int rc = sqlite3_prepare_v2(day, "SELECT DISTINCT p.ts - ((p.ts + ?1) % 3600 + 3600) % 3600 AS h FROM sample_pack p"
					 " WHERE h + ?1 <= ?2 AND h NOT IN (SELECT ts FROM rare_hour) ORDER BY h", -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, t0);
		sqlite3_bind_int64(st, 2, before);
	}
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		mem_grow(out->ts, out->n, out->cap);
		out->ts[out->n++] = sqlite3_column_int64(st, 0);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* --- whose series --- */

static uint32_t group_of(struct rare *r, struct rare_group g)
{
	uint64_t key = hash_u64(hash_u64(hash_u64(HASH_SEED, g.run), g.exe), g.container), i;

	for (; idmap_get(&r->group_of, key, &i); key++) {
		const struct rare_group *x = &r->groups[i];

		if (x->run == g.run && x->exe == g.exe && x->container == g.container)
			return (uint32_t)i;
	}
	mem_grow(r->groups, r->n_groups, r->cap_groups);
	idmap_set(&r->group_of, key, r->n_groups);
	r->groups[r->n_groups] = g;
	return (uint32_t)r->n_groups++;
}

static int load_series(struct rare *r)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(r->d->day, "SELECT e.id, e.task, e.stack, t.run, p.exe, p.container, t.kind FROM series e"
					       " JOIN task t ON t.id = e.task JOIN process p ON p.id = t.process ORDER BY e.id", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct rare_series s = {.task = (uint32_t)sqlite3_column_int64(st, 1), .stack = (uint32_t)sqlite3_column_int64(st, 2)};
		struct rare_group g = {.run = (uint32_t)sqlite3_column_int64(st, 3), .exe = (uint32_t)sqlite3_column_int64(st, 4),
				       .container = (uint32_t)sqlite3_column_int64(st, 5)};
		size_t id = (size_t)sqlite3_column_int64(st, 0);

		s.counted = sqlite3_column_int(st, 6) == STORE_KIND_CPU;
		s.group = group_of(r, g);
		while (r->n_series <= id) { /* those that are not there are all zero */
			mem_grow(r->series, r->n_series, r->cap_series);
			r->series[r->n_series++] = (struct rare_series){0};
		}
		r->series[id] = s;
		if (s.counted)
			idmap_set(&r->by_place, (uint64_t)s.task << 32 | s.stack, id);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int load_frames(struct rare *r)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(r->d->day, "SELECT id, function, outer FROM frame ORDER BY id", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		size_t id = (size_t)sqlite3_column_int64(st, 0);

		while (r->n_frames <= id) {
			mem_grow(r->frames, r->n_frames, r->cap_frames);
			r->frames[r->n_frames++] = (struct rare_frame){0};
		}
		r->frames[id] = (struct rare_frame){(uint32_t)sqlite3_column_int64(st, 1), (uint32_t)sqlite3_column_int64(st, 2)};
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Where each stack ends in the tree. */
static void load_nodes(struct rare *r)
{
	const struct seal_tree *x = &r->d->tree;

	r->n_stacks = (size_t)x->n_rows + 1;
	r->node = mem_array(r->n_stacks, sizeof(*r->node));
	for (uint32_t i = 1; i < x->t.n; i++)
		if (x->own[i] && x->own[i] < r->n_stacks)
			r->node[x->own[i]] = i;
}

static int number_of(sqlite3 *day, const char *sql, int64_t *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(day, sql, -1, &st, NULL);

	*out = 0;
	if (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		*out = sqlite3_column_int64(st, 0);
		rc = SQLITE_DONE;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

#define MARK_FIND "SELECT r.id FROM frame r JOIN function f ON f.id = r.function WHERE f.name = '" STORE_RARE "' AND f.image = 0" \
		  " AND r.image = 0"
#define MARK_MAKE "INSERT INTO function(hash, image, line, name, file, source) SELECT %lld, 0, 0, '" STORE_RARE "', '', 0;" \
		  "INSERT INTO frame(image, offset, function, line, flags, outer) SELECT 0, 0, last_insert_rowid(), 0, 0, 0"

static int make_mark(sqlite3 *day)
{
	char *sql = sqlite3_mprintf(MARK_MAKE, (long long)(hash_str(HASH_SEED, STORE_RARE) & 0x7fffffff));
	int rc = sql ? sqlite3_exec(day, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

/* The frame that rare stacks end in. */
static int load_mark(struct rare *r)
{
	int64_t id;
	int rc = number_of(r->d->day, MARK_FIND, &id);

	if (rc == SQLITE_OK && !id) {
		rc = make_mark(r->d->day);
		id = sqlite3_last_insert_rowid(r->d->day);
	}
	r->mark = (uint32_t)id;
	return rc;
}

static int rare_load(struct rare *r)
{
	int rc = load_mark(r);

	if (rc == SQLITE_OK)
		rc = load_frames(r);
	if (rc == SQLITE_OK)
		rc = load_series(r);
	if (rc == SQLITE_OK)
		load_nodes(r);
	return rc;
}

static void rare_release(struct rare *r)
{
	free(r->groups);
	free(r->series);
	free(r->frames);
	free(r->node);
	idmap_release(&r->group_of);
	idmap_release(&r->by_place);
}

int sealrare_fold(struct sealdict *d, int64_t t0, int64_t now_ns, uint64_t *samples)
{
	struct rare r = {.d = d, .t0 = t0};
	struct rare_hours hours = {0};
	int rc = hours_of(d->day, t0, now_ns, &hours);

	*samples = 0;
	if (rc == SQLITE_OK && hours.n)
		rc = d->tree.t.n ? SQLITE_OK : sealstack_load(d);
	if (rc == SQLITE_OK && hours.n)
		rc = rare_load(&r);
	for (size_t i = 0; rc == SQLITE_OK && i < hours.n; i++)
		rc = rare_hour(&r, hours.ts[i], samples);
	if (rc == SQLITE_OK && *samples)
		rc = rare_sweep(&r);
	rare_release(&r);
	free(hours.ts);
	return rc;
}
