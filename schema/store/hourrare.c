/* SPDX-License-Identifier: Apache-2.0 */
/* hourrare: see the header. */
#include "schema/store/hourrare.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/reader.h"
#include "schema/store/reading.h"

#define HOUR_S 3600
#define ID_MAX ((int64_t)1 << 28)

static uint32_t id_at(sqlite3_stmt *st, int column)
{
	int64_t v = sqlite3_column_int64(st, column);

	return v > 0 && v < ID_MAX ? (uint32_t)v : 0;
}

static uint64_t pair(uint32_t exe, uint32_t container)
{
	return (uint64_t)exe << 32 | container;
}

static void take(struct hourrare *r, sqlite3_stmt *st)
{
	bool fresh;
	uint64_t *owner = idmap_ref(&r->owner_of, pair(id_at(st, 2), id_at(st, 3)), &fresh);

	if (fresh)
		*owner = r->owner_of.n;
	mem_grow(r->rows, r->n_rows, r->cap_rows);
	r->rows[r->n_rows++] = (struct hourrare_row){
		.ts = sqlite3_column_int64(st, 0), .run = id_at(st, 1), .owner = (uint32_t)*owner, .function = id_at(st, 4), .frame = id_at(st, 5),
		.self = (uint64_t)sqlite3_column_int64(st, 6), .total = (uint64_t)sqlite3_column_int64(st, 7)};
}

static int compare(const void *a, const void *b)
{
	const struct hourrare_row *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

int hourrare_load(struct hourrare *r, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT ts, run, exe, container, function, frame, self, total FROM rare_row", -1, &st, NULL);

	*r = (struct hourrare){0};
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		take(r, st);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	if (r->n_rows)
		qsort(r->rows, r->n_rows, sizeof(*r->rows), compare);
	if (r->n_rows)
		r->mark = (uint32_t)reading_number(db, "SELECT r.id FROM frame r JOIN function f ON f.id = r.function WHERE f.name = '" STORE_RARE
						       "' AND f.image = 0 AND r.image = 0", 0);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void hourrare_release(struct hourrare *r)
{
	idmap_release(&r->owner_of);
	free(r->rows);
}

uint32_t hourrare_owner(const struct hourrare *r, uint32_t exe, uint32_t container)
{
	uint64_t owner;

	return idmap_get(&r->owner_of, pair(exe, container), &owner) ? (uint32_t)owner : 0;
}

const struct hourrare_row *hourrare_find(const struct hourrare *r, int64_t ts, uint32_t run, uint32_t owner, size_t *n)
{
	const struct hourrare_row key = {.ts = ts - (ts % HOUR_S + HOUR_S) % HOUR_S, .run = run, .owner = owner};
	size_t low = 0, high = r->n_rows, end;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&r->rows[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < r->n_rows && !compare(&r->rows[end], &key);)
		end++;
	*n = end - low;
	return r->rows + low;
}
