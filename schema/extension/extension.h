/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension: the samples of a store's file as tables of SQLite, exact to the bucket also in a sealed day, whose table
 * `sample` has hours only (docs/SCHEMA.md, Sealed days).
 *
 *   sonde_samples            a row for each bucket and series; comparisons with ts decode the blocks in range only
 *   sonde_totals(from, to)   what each series has in from <= ts < to, added up natively, with its names
 *   sonde_steps(step_s, from, to)   what each thread has in each step of so many seconds, with its names
 *   sonde_frames(stack_id)   the frames of one stack
 *
 * They answer of the connection's main database, a sealed day or not. Where it is a sealed day, the temporary views
 * `cpu_samples` and `sample` stand before those of the file, with the rows that the day was made of; functions_top and
 * lines_top are of the whole file, and hours are exact enough; of a packed day (schema/store/packing.h), whose own have the
 * larger functions only, they are exact too.
 */
#ifndef SONDE_EXTENSION_H
#define SONDE_EXTENSION_H

struct sqlite3;

/* SQLite's code; its words are the connection's. */
int extension_tables(struct sqlite3 *db);
/* Those views; nothing where the main database is no sealed day, or a temporary table of that name is there. After
 * extension_tables, in a connection that may make temporary views. */
int extension_views(struct sqlite3 *db);

#endif
