/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span: the first and the last bucket that a file has something in: samples, amounts, waits,
 * requests or facts, in seconds since its t0. An archive has them noted (meta 'first_ts',
 * 'last_ts'), since to find them its tables would be decoded. Not for other rooms.
 */
#ifndef SONDE_STORE_FILES_SPAN_H
#define SONDE_STORE_FILES_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;

/* SQLite's code; *first is INT64_MIN where it holds none. */
int span_read(struct sqlite3 *db, int64_t *first, int64_t *last);
/* false: it has none noted. */
bool span_noted(struct sqlite3 *db, int64_t *first, int64_t *last);
/* Notes what span_read says. SQLite's code. */
int span_note(struct sqlite3 *db);

#endif
