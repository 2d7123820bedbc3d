/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fact: what a table of wide rows holds, declared once. One row says what one thing (the host, a
 * disk, a cgroup, a process) did and how it was in one bucket of one run.
 *
 *   1. Each table has ts (start of the bucket, seconds since t0) and run (run.id) before the
 *      columns declared here; with the keys, which come first, they are its primary key.
 *   2. A counter holds the difference over the bucket: rows of a bucket add up, and what was reset
 *      (a thing that was created again, a loader that started later) gives no step. A tally is a
 *      counter that says little by itself (packets next to bytes). A gauge holds how it was at the
 *      last reading of the bucket.
 *   3. NULL: not measured. A number is never negative.
 *   4. A reference (text, process, container, series) is an id of the segment's dictionary; 0:
 *      none.
 *
 * From a declaration come the INSERT of the writer and the row in memory
 * (schema/store/write/facts.h); a migration makes the table, and a test holds the two equal,
 * comments too. A new fact is a declaration, a migration, and nothing else in the store.
 */
#ifndef SONDE_FACTS_FACT_H
#define SONDE_FACTS_FACT_H

#include <stddef.h>
#include <stdint.h>

#define FACT_COLUMNS_MAX 64 /* a row says by one bit each what it has */
#define FACT_TABLES_MAX  64

enum fact_type {
	FACT_NUMBER,
	FACT_TEXT,
	FACT_PROCESS,
	FACT_CONTAINER,
	FACT_SERIES,
	FACT_TAG /* a number that identifies rows */
};
enum fact_role { FACT_KEY, FACT_COUNTER, FACT_TALLY, FACT_GAUGE };

struct fact_column {
	const char *name;
	enum fact_type type;
	enum fact_role role;
	const char *unit; /* "us", "bytes", ...; "": a plain number, or a reference */
	const char *comment;
};

struct fact {
	const char *table, *comment;
	const struct fact_column *columns;
	uint32_t n;
	uint32_t minutes; /* 1: rows that are old may be summed by minute
			     (schema/store/archive/minutes.h) */
	uint32_t beside;  /* 1: its rows say more of what is counted elsewhere, and are no events of
			     their run */
};

/* A reading of one thing: what it has of a fact's columns. Of a reference the number is an id that
 * the store's writer gave. */
struct fact_row {
	uint64_t set; /* bit by column */
	union {
		int64_t number;
		const char *text; /* borrowed */
	} v[FACT_COLUMNS_MAX];
};

static inline void fact_put(struct fact_row *r, int column, uint64_t number)
{
	r->v[column].number = number > INT64_MAX ? INT64_MAX : (int64_t)number;
	r->set |= 1ull << column;
}

static inline void fact_put_text(struct fact_row *r, int column, const char *text)
{
	r->v[column].text = text;
	r->set |= 1ull << column;
}

static inline int fact_has(const struct fact_row *r, int column)
{
	return (int)(r->set >> column & 1);
}

/* All of them, ended by NULL. */
extern const struct fact *const FACTS[];

/* A list of columns is a macro of rows X(ID, name, TYPE, ROLE, unit, comment): these make an enum
 * and an array of it. */
#define FACT_ID(id, name, type, role, unit, comment) id,
#define FACT_COLUMN(id, name, type, role, unit, comment) \
	{name, FACT_##type, FACT_##role, unit, comment},

#endif
