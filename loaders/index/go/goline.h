/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goline: lines and inlined functions of a Go file from its pclntab, without DWARF. All of Go's
 * text is one sequence of the lineset, so that it has precedence over DWARF's lines of the same
 * addresses; Go's line tables have no columns.
 */
#ifndef SONDE_INDEX_GOLINE_H
#define SONDE_INDEX_GOLINE_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/go/goinline.h"
#include "loaders/index/go/gotable.h"
#include "loaders/index/lines/lineset.h"
#include "schema/base/idmap.h"

/* A call's place is looked up from its function's beginning: a file of which that takes more has
 * the later calls without a caller's line. About half a second. */
#define GOLINE_STEPS_MAX 200000000u

/* What stays from one function to the next. */
struct goline {
	const struct pclntab *tab;
	const struct goinline *trees; /* NULL: none are known */
	struct lineset *set;
	struct idmap files, names; /* keys of pclntab and goinline -> numbers of lineset */
	uint32_t *nodes; /* own: lineset's node of each call of the function at work; 0: not made
			    yet */
	size_t node_cap;
	int failed;
	uint64_t steps;                /* of pc tables, for places of calls; see GOLINE_STEPS_MAX */
	uint64_t told;                 /* end of the function before */
	uint32_t last_file, last_line; /* of the row before */
	bool open;
};

/* Function i, in ascending order (one that begins before the last one's end is left out). Pure over
 * the bytes of the table and the trees. */
void goline_function(struct goline *g, uint64_t text, uint32_t i);
void goline_release(struct goline *g);

/* The whole file. Errors are those of source_read; a file without readable trees has lines all the
 * same. */
int goline_add(struct elf_file *f, const struct go_table *t, struct lineset *set);

#endif
