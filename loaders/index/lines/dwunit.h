/* SPDX-License-Identifier: Apache-2.0 */
/* dwunit: one unit of DWARF into a lineset: its line table and its tree of inlined functions. */
#ifndef SONDE_INDEX_DWUNIT_H
#define SONDE_INDEX_DWUNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/lines/dwline.h"
#include "loaders/index/lines/lineset.h"

/* Numbers, each once. */
struct dwunit_set {
	uint64_t *slots; /* own; open addressing: 0 is free, so each is kept plus one */
	size_t count, slot_count;
};

/* What stays from one unit to the next: names of functions by the place of their DIE, line tables
 * and functions already read. Where linkers merge a function that several units have, each of them
 * claims its address: the first one counts. */
struct dwunit_memory {
	struct dwunit_name {
		const void *die; /* NULL: free */
		uint32_t name;
	} * names; /* own; open addressing */
	size_t name_count, name_slots;
	struct dwunit_set tables;    /* by offset */
	struct dwunit_set functions; /* by address */
};

struct dwunit {
	struct lineset *set;
	struct dwunit_memory *memory;
	const struct dwline_sections *sections;
	int64_t until_cpu_ns;
	uint32_t steps;
	bool late;           /* until_cpu_ns is over: what was read so far is in the set */
	bool nameless;       /* some inlined function's name was not found */
	struct dwline table; /* own; of the unit */
};

void dwunit_memory_release(struct dwunit_memory *m);
/* Line table and tree of the unit whose DIE this is. */
void dwunit_read(struct dwunit *u, Dwarf_Die *cu);
void dwunit_release(struct dwunit *u);

/* dwinline.c: the tree alone. */
void dwinline_read(struct dwunit *u, Dwarf_Die *cu);
/* true: `value` was not in the set yet, and is now. false too where memory is out. */
bool dwunit_set_add(struct dwunit_set *set, uint64_t value);
/* Has the time run out? Asked at each step. */
bool dwunit_is_late(struct dwunit *u);

#endif
