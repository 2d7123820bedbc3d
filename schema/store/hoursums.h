/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hoursums: what each function and line had in each hour, by program and container, for plain sqlite3 in a packed day
 * (schema/sql/0018-packed.sql). Those with 1 in 200 of the program's hour and 1 in 2000 of the hour; what the others had by
 * themselves is [other]'s, so that sums over an hour are whole. Not for other rooms.
 */
#ifndef SONDE_STORE_HOURSUMS_H
#define SONDE_STORE_HOURSUMS_H

struct sqlite3;

/* From the rows of a day that is not packed. SQLite's code. */
int hoursums_fill(struct sqlite3 *db);

#endif
