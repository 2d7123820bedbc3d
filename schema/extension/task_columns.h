/* SPDX-License-Identifier: Apache-2.0 */
/* whose: who a task is, and where a stack ends, in the words of view cpu_samples; looked up when a row is asked for them. */
#ifndef SONDE_EXTENSION_WHOSE_H
#define SONDE_EXTENSION_WHOSE_H

#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_context;

#define WHOSE_TASK_COLUMNS "container TEXT, comm TEXT, pid INTEGER, thread TEXT, tid INTEGER, self INTEGER"
#define WHOSE_COLUMNS WHOSE_TASK_COLUMNS ", function TEXT, module TEXT, file TEXT, line INTEGER"
#define WHOSE_TASK   6 /* the first so many are of a task, */
#define WHOSE_STACK 4 /* the others of a stack */

struct whose { /* zeroed at first */
	struct sqlite3_stmt *who, *place; /* standing at the row of these */
	uint32_t task, stack;
};

/* The result of column i of those; SQLite's code. NULL where there is no such task. */
int whose_task(struct whose *n, struct sqlite3 *db, uint32_t task, int i, struct sqlite3_context *out);
int whose_stack(struct whose *n, struct sqlite3 *db, uint32_t stack, int i, struct sqlite3_context *out);
void whose_release(struct whose *n);

#endif
