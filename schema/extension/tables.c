/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/extension/tables.h"

#include <sqlite3ext.h>
#include <stddef.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

#define TIME_MOST (1ll << 42) /* beyond every ts + t0 */

struct table {
	sqlite3_vtab base;
	struct tables *t;
};

int tables_connect(sqlite3 *db, struct tables *t, const char *columns, sqlite3_vtab **out)
{
	struct table *table;
	int rc = sqlite3_declare_vtab(db, columns);

	if (rc != SQLITE_OK)
		return rc;
	table = sqlite3_malloc64(sizeof(*table));
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct table){.t = t};
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	*out = &table->base;
	return SQLITE_OK;
}

int tables_cursor(size_t size, sqlite3_vtab_cursor **out)
{
	*out = sqlite3_malloc64(size);
	if (!*out)
		return SQLITE_NOMEM;
	memset(*out, 0, size);
	return SQLITE_OK;
}

int tables_disconnect(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

struct tables *tables_of(sqlite3_vtab *base)
{
	return ((struct table *)base)->t;
}

int tables_error(sqlite3_vtab *base, int rc, const char *why)
{
	sqlite3_free(base->zErrMsg);
	base->zErrMsg = sqlite3_mprintf("%s", why ? why : sqlite3_errmsg(tables_of(base)->db));
	return rc;
}

int tables_map(sqlite3_vtab *base, struct series_map **out)
{
	struct tables *t = tables_of(base);
	const char *why = NULL;
	int rc = series_read(&t->map, t->db, &why);

	if (rc != SQLITE_OK)
		return tables_error(base, rc, why);
	series_drop(*out);
	*out = series_keep(t->map);
	return rc;
}

bool tables_time(sqlite3_value *v, bool up, int64_t *out)
{
	int type = sqlite3_value_type(v);
	int64_t t;

	if (type == SQLITE_INTEGER) {
		t = sqlite3_value_int64(v);
	} else if (type == SQLITE_FLOAT) {
		double d = sqlite3_value_double(v);

		t = d >= (double)TIME_MOST  ? TIME_MOST :
		    d <= (double)-TIME_MOST ? -TIME_MOST :
					      (int64_t)d;
		t += up && (double)t < d;
		t -= !up && (double)t > d;
	} else {
		return false;
	}
	*out = t > TIME_MOST ? TIME_MOST : t < -TIME_MOST ? -TIME_MOST : t;
	return true;
}

int tables_args_plan(sqlite3_index_info *info, int first, int n)
{
	int found[TABLES_ARGS] = {-1, -1, -1}, arguments = 0;

	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *c = &info->aConstraint[i];

		if (c->iColumn < first || c->iColumn >= first + n ||
		    c->op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		if (!c->usable)
			return SQLITE_CONSTRAINT;
		found[c->iColumn - first] = i;
	}
	for (int k = 0; k < n; k++) {
		if (found[k] < 0)
			continue;
		info->aConstraintUsage[found[k]].argvIndex = ++arguments;
		info->aConstraintUsage[found[k]].omit = 1;
		info->idxNum |= 1 << k;
	}
	return SQLITE_OK;
}

int tables_args_take(struct tables_args *a, int given, sqlite3_value **argv)
{
	tables_args_release(a);
	for (int k = 0; k < TABLES_ARGS; k++) {
		if (!(given & 1 << k))
			continue;
		a->v[k] = sqlite3_value_dup(*argv++);
		if (!a->v[k])
			return SQLITE_NOMEM;
	}
	return SQLITE_OK;
}

void tables_args_release(struct tables_args *a)
{
	for (int k = 0; k < TABLES_ARGS; k++)
		sqlite3_value_free(a->v[k]);
	*a = (struct tables_args){0};
}

void tables_args_result(const struct tables_args *a, int i, sqlite3_context *out)
{
	if (a->v[i])
		sqlite3_result_value(out, a->v[i]);
	else
		sqlite3_result_null(out);
}

bool tables_args_range(const struct tables_args *a, int i, int64_t *first, int64_t *end)
{
	*first = INT64_MIN / 4;
	*end = INT64_MAX / 4;
	return (!a->v[i] || tables_time(a->v[i], true, first)) &&
	       (!a->v[i + 1] || tables_time(a->v[i + 1], true, end));
}
