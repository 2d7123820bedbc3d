/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension: the samples of a store's file as tables of SQLite, read natively (docs/SCHEMA.md,
 * Archives).
 *
 *   sonde_samples            a row for each bucket and series; comparisons with ts decode the
 *                            blocks in range only
 *   sonde_totals(from, to)   what each series has in from <= ts < to, added up natively, with its
 *                            names
 *   sonde_steps(step_s, from, to)   what each thread has in each step of that many seconds, with
 * its names sonde_frames(stack_id)   the frames of one stack
 *
 * They read the connection's main database. If that is an archive, its views become temporary
 * ones, and `cpu_samples` reads its rows through these tables.
 */
#ifndef SONDE_EXTENSION_H
#define SONDE_EXTENSION_H

struct sqlite3;

/* Defines the tables. SQLite's code; the message is the connection's. */
int extension_tables(struct sqlite3 *db);
/* Makes those views; does nothing if the main database is not an archive, or a temporary table of
 * that name exists. After extension_tables, in a connection that may create temporary views. */
int extension_views(struct sqlite3 *db);

#endif
