/* SPDX-License-Identifier: Apache-2.0 */
/* task_columns: who a task is and where a stack ends, in the columns of view cpu_samples; looked up
 * when a query reads them. */
#ifndef SONDE_EXTENSION_TASK_COLUMNS_H
#define SONDE_EXTENSION_TASK_COLUMNS_H

#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_context;

#define TASK_COLUMNS_OF_TASK \
	"container TEXT, comm TEXT, pid INTEGER, thread TEXT, tid INTEGER, self INTEGER"
#define TASK_COLUMNS_ALL \
	TASK_COLUMNS_OF_TASK ", function TEXT, module TEXT, file TEXT, line INTEGER"
#define TASK_COLUMNS_TASK  6 /* the first columns describe a task, */
#define TASK_COLUMNS_STACK 4 /* the others of a stack */

struct task_columns {                     /* zeroed at first */
	struct sqlite3_stmt *who, *place; /* the rows where the statements are */
	uint32_t task, stack;
};

/* Sets the result to column i of TASK_COLUMNS; NULL if there is no such task. SQLite's code. */
int task_columns_task(struct task_columns *n, struct sqlite3 *db, uint32_t task, int i,
		      struct sqlite3_context *out);
int task_columns_stack(struct task_columns *n, struct sqlite3 *db, uint32_t stack, int i,
		       struct sqlite3_context *out);
void task_columns_release(struct task_columns *n);

#endif
