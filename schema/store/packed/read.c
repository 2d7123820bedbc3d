/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packed/read.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "schema/store/packed/fetch.h"

#define COLUMN_NAME_MAX 64

struct names {
	char name[PACKEDCOLUMNS_MAX][COLUMN_NAME_MAX];
	int number[PACKEDCOLUMNS_MAX], n; /* place in the table, -1: it is not there */
};

/* packed/table.h's */
static int fetch(void *ctx, int i, size_t block, uint8_t **data, size_t *len)
{
	struct packedread *r = ctx;
	struct packed_source s = {.db = r->db, .schema = "main"};

	return packed_fetch(&s, &r->t, i, block, data, len);
}

/* The word that `columns` begins with, and the text after its comma; false: no word, or too long.
 */
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

static void take_name(void *ctx, int i, const char *column)
{
	struct names *x = ctx;

	for (int k = 0; k < x->n; k++)
		if (!strcmp(x->name[k], column))
			x->number[k] = i;
}

/* false: these are no names. */
static bool split_names(struct names *x, const char *columns)
{
	while (x->n < PACKEDCOLUMNS_MAX && next_name(&columns, x->name[x->n]))
		x->number[x->n++] = -1;
	return x->n && !*columns;
}

bool packedread_open(struct packedread *r, sqlite3 *db, const char *table, const char *columns)
{
	struct packed_source s = {.db = db, .schema = "main"};
	struct names x = {.n = 0};
	bool got;

	*r = (struct packedread){.db = db, .t = {.fetch = fetch, .ctx = r}};
	got = split_names(&x, columns) && packed_open(&s, table, &r->t, take_name, &x) == SQLITE_OK;
	for (int i = 0; got && i < x.n; i++)
		got = x.number[i] >= 0;
	if (!got) {
		packedread_release(r);
		return false;
	}
	r->n = x.n;
	memcpy(r->number, x.number, sizeof(r->number));
	return true;
}

int packedread_block(struct packedread *r, size_t block)
{
	int rc = 0;

	for (int i = 0; !rc && i < r->n; i++)
		rc = packedtable_column(&r->t, r->number[i], block, &r->c[i]);
	return rc;
}

bool packedread_open_whole(struct packedread *r, sqlite3 *db, const char *table,
			   const char *columns)
{
	if (!packedread_open(r, db, table, columns))
		return false;
	if (r->t.n_blocks == 1 && !packedread_block(r, 0))
		return true;
	packedread_release(r);
	return false;
}

int packedread_stacks(struct packedread *r, int col, const struct stackcolumns_walk *w)
{
	return packedtable_stacks(&r->t, r->number[col], w);
}

int packedread_lists(struct packedread *r, int col, struct column_cursor *out)
{
	return packedtable_lists(&r->t, r->number[col], out);
}

void packedread_release(struct packedread *r)
{
	packedtable_close(&r->t);
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
