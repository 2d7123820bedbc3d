/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/checks/checksql.h"

#include <sqlite3.h>
#include <stdint.h>

#include "tools/requests/reqstream.h"

/* Borrowed: reqstream_is only reads. */
static char *text_of(sqlite3_value *v)
{
	const char *text = (const char *)sqlite3_value_text(v);

	return (char *)(uintptr_t)(text ? text : "");
}

static int64_t time_of(sqlite3_value *v)
{
	return sqlite3_value_type(v) == SQLITE_NULL ? -1 : sqlite3_value_int64(v);
}

static void is_stream(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct reqsingle r = {.protocol = text_of(v[0]),
				    .service = text_of(v[1]),
				    .operation = text_of(v[2]),
				    .status = text_of(v[3]),
				    .result = text_of(v[4]),
				    .first_us = time_of(v[5]),
				    .total_us = time_of(v[6])};

	(void)n;
	sqlite3_result_int(c, reqstream_is(&r));
}

/* Means and sums of squares so far (B. P. Welford, 1962): sums of large numbers would cancel. */
struct line {
	double n, x, y, xx, xy;
};

static void slope_step(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct line *l = sqlite3_aggregate_context(c, sizeof(*l));
	double dx;

	(void)n;
	if (!l || sqlite3_value_type(v[0]) == SQLITE_NULL ||
	    sqlite3_value_type(v[1]) == SQLITE_NULL)
		return;
	dx = sqlite3_value_double(v[0]) - l->x;
	l->n++;
	l->x += dx / l->n;
	l->y += (sqlite3_value_double(v[1]) - l->y) / l->n;
	l->xx += dx * (sqlite3_value_double(v[0]) - l->x);
	l->xy += dx * (sqlite3_value_double(v[1]) - l->y);
}

static void slope_end(sqlite3_context *c)
{
	const struct line *l = sqlite3_aggregate_context(c, 0);

	if (l && l->xx > 0)
		sqlite3_result_double(c, l->xy / l->xx);
	else
		sqlite3_result_null(c);
}

int checksql_register(struct sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
	int rc = sqlite3_create_function(db, "is_stream", 7, flags, NULL, is_stream, NULL, NULL);

	return rc ? rc :
		    sqlite3_create_function(db, "slope", 2, flags, NULL, NULL, slope_step,
					    slope_end);
}
