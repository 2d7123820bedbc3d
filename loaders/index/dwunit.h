/* SPDX-License-Identifier: Apache-2.0 */
/* dwunit: one unit of DWARF into a lineset: its line table and its tree of inlined functions. */
#ifndef SONDE_INDEX_DWUNIT_H
#define SONDE_INDEX_DWUNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/lineset.h"

/* What stays from one unit to the next: names of functions by the place of their DIE, and line tables already read. */
struct dwunit_memory {
	struct dwunit_name {
		const void *die; /* NULL: free */
		uint32_t name;
	} *names; /* own; open addressing */
	size_t name_count, name_slots;
	uint64_t *tables; /* own; offsets, open addressing: 0 is free, so they are kept plus one */
	size_t table_count, table_slots;
};

struct dwunit {
	struct lineset *set;
	struct dwunit_memory *memory;
	int64_t until_cpu_ns;
	uint32_t steps;
	bool late; /* until_cpu_ns is over: what was read so far is in the set */
	bool have_alt;
	bool missing_alt; /* something refers to a dwz file that is not there */
	/* the unit */
	uint32_t *files; /* own: lineset's number of each file of the unit's table */
	size_t file_count;
};

void dwunit_memory_release(struct dwunit_memory *m);
/* Line table and tree of the unit whose DIE this is. */
void dwunit_read(struct dwunit *u, Dwarf_Die *cu);
void dwunit_release(struct dwunit *u);

/* dwinline.c: the tree alone. */
void dwinline_read(struct dwunit *u, Dwarf_Die *cu);
/* Has the time run out? Asked at each step. */
bool dwunit_is_late(struct dwunit *u);

#endif
