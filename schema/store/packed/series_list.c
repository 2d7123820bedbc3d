/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packed/series_list.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/model/sql.h"

/* ids are given one after the other: where there are so few rows, a damaged file has them */
#define IDS_TO_ROWS 16
#define IDS_LEAST   4096

size_t series_list_slots(sqlite3 *db, const char *max_sql, const char *count_sql)
{
	const int64_t most = sql_number(db, max_sql, 0), rows = sql_number(db, count_sql, 0);

	return most >= 0 && most < UINT32_MAX && most <= IDS_LEAST + IDS_TO_ROWS * rows ?
		       (size_t)most + 1 :
		       0;
}

int series_list_read(sqlite3 *db, struct series_list *out)
{
	sqlite3_stmt *st = NULL;
	int rc;

	*out = (struct series_list){.n = series_list_slots(db, "SELECT max(id) FROM series",
							   "SELECT count(*) FROM series"),
				    .n_tasks = series_list_slots(db, "SELECT max(id) FROM task",
								 "SELECT count(*) FROM task")};
	if (!out->n || !out->n_tasks)
		return SQLITE_TOOBIG;
	rc = sqlite3_prepare_v2(db, "SELECT id, task, stack FROM series WHERE id > 0", -1, &st,
				NULL);
	out->of = mem_array(out->n, sizeof(*out->of));
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0), task = sqlite3_column_int64(st, 1),
			      stack = sqlite3_column_int64(st, 2);

		if (id < (int64_t)out->n && task > 0 && task < (int64_t)out->n_tasks)
			out->of[id] = (struct series_list_one){
				(uint32_t)task,
				stack > 0 && stack < UINT32_MAX ? (uint32_t)stack : 0};
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void series_list_release(struct series_list *l)
{
	free(l->of);
	*l = (struct series_list){0};
}
