/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packedread.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "schema/store/packedfetch.h"

#define COLUMN_NAME_MAX 64

/* packedcolumns.h's */
static int fetch(void *ctx, int i, uint8_t **data, size_t *len)
{
	struct packedread *r = ctx;
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(r->db, "SELECT data FROM packed_column WHERE \"table\" = ?1 AND number = ?2", -1, &st, NULL) != SQLITE_OK)
		return -EIO;
	return packed_fetch(st, r->table, i, data, len);
}

/* The word that `columns` begins with, and what is behind its comma; false: there is none, or it is too long. */
static bool next_name(const char **columns, char name[COLUMN_NAME_MAX])
{
	size_t n;

	*columns += strspn(*columns, ", ");
	n = strcspn(*columns, ", ");
	if (!n || n >= COLUMN_NAME_MAX)
		return false;
	memcpy(name, *columns, n);
	name[n] = '\0';
	*columns += n;
	return true;
}

/* Its rows and columns, and the numbers of those asked for: how many, 0 where one of them is not there. */
static int read_names(struct packedread *r, const char *columns, int number[PACKEDCOLUMNS_MAX], bool is_number[PACKEDCOLUMNS_MAX])
{
	char name[PACKEDCOLUMNS_MAX][COLUMN_NAME_MAX];
	sqlite3_stmt *st = NULL;
	int n = 0;

	while (n < PACKEDCOLUMNS_MAX && next_name(&columns, name[n]))
		number[n++] = -1;
	if (*columns || sqlite3_prepare_v2(r->db, "SELECT c.number, c.name, t.rows, c.type = 'INTEGER' FROM packed_table t JOIN packed_column c ON c.\"table\" = t.name"
					   " WHERE t.name = ?1 ORDER BY c.number", -1, &st, NULL) != SQLITE_OK)
		return 0;
	sqlite3_bind_text(st, 1, r->table, -1, SQLITE_STATIC);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *is = (const char *)sqlite3_column_text(st, 1);
		sqlite3_int64 rows = sqlite3_column_int64(st, 2);

		if (sqlite3_column_int(st, 0) != r->p.n || r->p.n == PACKEDCOLUMNS_MAX || rows <= 0 || rows > COLUMN_MAX)
			break;
		for (int i = 0; is && i < n; i++)
			if (!strcmp(is, name[i]))
				number[i] = r->p.n;
		is_number[r->p.n] = sqlite3_column_int(st, 3) != 0;
		r->p.n_rows = (size_t)rows;
		r->p.n++;
	}
	sqlite3_finalize(st);
	for (int i = 0; i < n; i++)
		if (number[i] < 0)
			return 0;
	return n;
}

bool packedread_open(struct packedread *r, sqlite3 *db, const char *table, const char *columns)
{
	bool is_number[PACKEDCOLUMNS_MAX];
	int number[PACKEDCOLUMNS_MAX], n;

	*r = (struct packedread){.db = db, .table = table, .p = {.fetch = fetch, .ctx = r}};
	n = read_names(r, columns, number, is_number);
	for (int i = 0; i < n; i++) {
		if (packedcolumns_need_as(&r->p, number[i], is_number[number[i]])) {
			packedread_release(r);
			return false;
		}
		r->c[i] = &r->p.c[number[i]];
	}
	return n > 0;
}

void packedread_release(struct packedread *r)
{
	packedcolumns_release(&r->p);
}

int64_t packedread_number(const struct packedread *r, int col, size_t row)
{
	const struct column *c = r->c[col];

	return c->numbers ? c->numbers[row] : 0;
}

const char *packedread_text(const struct packedread *r, int col, size_t row)
{
	const struct column *c = r->c[col];

	return c->text ? c->text + c->at[row] : "";
}
