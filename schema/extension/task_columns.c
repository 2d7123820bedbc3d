/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/extension/task_columns.h"

#include <sqlite3ext.h>
#include <stddef.h>

SQLITE_EXTENSION_INIT3

static const char WHO[] =
	"SELECT coalesce(c.name, ''), p.comm, p.pid, t.thread, t.tid, p.self FROM main.task t"
	" JOIN main.process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container WHERE t.id = ?1";
static const char PLACE[] =
	"SELECT f.function, f.module, f.file, coalesce(f.line, 0) FROM main.stack k JOIN frames f ON f.id = k.leaf"
	" WHERE k.id = ?1";

/* Moves the statement to the row of this id; `at` is the id of its current row. */
static int stand_at(sqlite3 *db, sqlite3_stmt **st, const char *sql, uint32_t *at, uint32_t id)
{
	int rc = *st ? SQLITE_OK : sqlite3_prepare_v2(db, sql, -1, st, NULL);

	if (rc != SQLITE_OK || (*at == id && sqlite3_data_count(*st)))
		return rc;
	sqlite3_reset(*st);
	sqlite3_bind_int64(*st, 1, id);
	*at = id;
	rc = sqlite3_step(*st); /* none: a file may have lost it */
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int task_columns_task(struct task_columns *n, sqlite3 *db, uint32_t task, int i,
		      sqlite3_context *out)
{
	int rc = stand_at(db, &n->who, WHO, &n->task, task);

	if (rc == SQLITE_OK && sqlite3_data_count(n->who))
		sqlite3_result_value(out, sqlite3_column_value(n->who, i));
	return rc;
}

int task_columns_stack(struct task_columns *n, sqlite3 *db, uint32_t stack, int i,
		       sqlite3_context *out)
{
	int rc = stand_at(db, &n->place, PLACE, &n->stack, stack);

	if (rc == SQLITE_OK && sqlite3_data_count(n->place))
		sqlite3_result_value(out, sqlite3_column_value(n->place, i));
	else if (rc == SQLITE_OK && i < TASK_COLUMNS_STACK - 1)
		sqlite3_result_text(out, i ? "" : "[no stack]", -1, SQLITE_STATIC);
	else if (rc == SQLITE_OK)
		sqlite3_result_int(out, 0);
	return rc;
}

void task_columns_release(struct task_columns *n)
{
	sqlite3_finalize(n->who);
	sqlite3_finalize(n->place);
	*n = (struct task_columns){0};
}
