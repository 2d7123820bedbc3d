/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealdict: taking the dictionary of one segment into that of a day. Ids mean something in one file only: of each row the
 * same content is looked for in the day, put there if it is new, and its id there remembered. Not for other rooms.
 *
 * Rows are compared by content, not by how they came to be: a process by what the kernel tells it apart by (what becomes
 * known of it later is added); a run by its token; a stack by its frames. Other names that come later make a new row.
 */
#ifndef SONDE_STORE_SEALDICT_H
#define SONDE_STORE_SEALDICT_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/base/strbuf.h"
#include "schema/store/stacktree.h"

struct sqlite3;
struct sqlite3_stmt;

/* What a column holds. As a letter in a list of columns: */
#define SEAL_VALUE   '.'
#define SEAL_ASIDE   '-' /* a value by which rows are not compared */
#define SEAL_TIME    'T' /* seconds since the segment's t0 */
#define SEAL_TEXT    't'
#define SEAL_TEXT_ASIDE 'a'      /* ids by which rows are not compared */
#define SEAL_CONTAINER_ASIDE 'C'
#define SEAL_CONTAINER 'c'
#define SEAL_IMAGE   'i'
#define SEAL_SOURCE  's'
#define SEAL_FUNCTION 'f'
#define SEAL_FRAME   'r'
#define SEAL_PROCESS 'p'
#define SEAL_RUN     'R'
#define SEAL_TASK    'k'
#define SEAL_STACK   'S'
#define SEAL_SERIES  'e'

struct seal_contents;  /* the rows of one table of the day, by content */

struct seal_tree {     /* the day's stacks, as stacktree.h has them, each node once */
	struct stacktree t;
	struct idmap by_child; /* parent << 32 | frame -> node */
	uint32_t *depth, *row, *own; /* by node; row: the stack that brought it in; own: the one that ends there; 0: none */
	size_t cap;
	uint32_t n_rows;   /* greatest stack.id */
};

struct seal_map {
	uint32_t *to;      /* by id in the segment: the id in the day, 0: none */
	size_t n;
};

struct sealdict {
	struct sqlite3 *day;
	struct seal_contents *contents[128]; /* by letter; NULL: not loaded yet */
	struct seal_tree tree;
	struct seal_map map[128];            /* of the segment that is being taken in, by letter */
	struct sqlite3_stmt *learn;          /* of processes; NULL: not needed yet */
	struct strbuf key;
};

/* What is taken over of a table of the dictionary, "a,b,c"; NULL: it is none. */
const char *sealdict_columns(const char *table);
void sealdict_init(struct sealdict *d, struct sqlite3 *day);
void sealdict_release(struct sealdict *d);
/* All but series; before it: SQLite code. The maps of the segment before are gone. */
int sealdict_take(struct sealdict *d, struct sqlite3 *segment);
/* Series, those with more samples first, so that they get the smaller ids: weight by id, n of them. */
int sealdict_take_series(struct sealdict *d, struct sqlite3 *segment, const uint64_t *weight, size_t n);
/* What id of the segment is in the day; 0: none. */
static inline uint32_t sealdict_id(const struct sealdict *d, char letter, int64_t id)
{
	const struct seal_map *m = &d->map[(unsigned char)letter];

	return id > 0 && (uint64_t)id < m->n ? m->to[id] : 0;
}

#endif
