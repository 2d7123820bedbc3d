/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beamcode: what a place in code of BEAM's JIT is, by the runtime's own tables, of which only the
 * address of two is known (probes/runtimes/beam_layout.h). Sources: OTP's beam_ranges.c,
 * beam_code.h, code_ix.h, atom.h, index.h, of 24 to 29.
 *
 * 1. Atoms. The table of atoms has segments of 1024 each, each atom its number; atoms 0 and 1 are
 *    "false" and "true". Where the segments are in the table, the number and the text in an atom is
 *    found by these numbers and texts.
 * 2. Ranges. Three tables lie one after the other, 32 bytes each: an array of (start, end) of
 *    modules' code, in order; how many; how many it has room for; the one that was found last.
 *    the_active_code_index says which counts. They are the only three such in .bss.
 * 3. A module's code begins with its header: how many functions; from word MODULE_FIRST on, at a
 *    place that differs by version, their addresses in order, and the end of the last one, all of
 *    them in the module's range, the first one next to the table's end.
 * 4. A function begins with its record: at 16, module, name (atoms) and arity. The atom of the
 *    module is the same in all.
 * 5. Word 9 of the header is the table of lines: files, size of a place, places, and for each
 *    function where its instructions' addresses begin. A place is file << 24 | line.
 *
 * Nothing of it is assumed of a version. What is not as it says is not named.
 */
#ifndef SONDE_RUNTIMES_BEAMCODE_H
#define SONDE_RUNTIMES_BEAMCODE_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/beam_layout.h"

struct beamcode {
	const struct runtime_memory *m; /* borrowed */
	struct beam_layout l;
	uint64_t bias;
	uint64_t ranges;    /* the first of the three tables */
	uint64_t segments;  /* of atoms */
	uint32_t atom_slot; /* of an atom: its number, u32 */
	uint32_t atom_size; /* its text's bytes, u16 */
	uint32_t atom_text; /* address of its text, or a binary */
	bool atom_binary;
};

/* A module's code. */
struct beam_module {
	uint64_t start, end;
};

/* false: the tables are not there (yet). `c->m`, `c->l`, `c->bias` are set. */
bool beamcode_find(struct beamcode *c);
/* The module whose code is at pc, as of now. */
bool beamcode_module(const struct beamcode *c, uint64_t pc, struct beam_module *out);
/* Is pc at most `span` bytes before the first module's code, or among modules? */
bool beamcode_is_near(const struct beamcode *c, uint64_t pc, uint64_t span);
/* The function at pc, whose line is that of the instruction before `pc` if `returns`. false: none
 * (code that modules share, for example). */
bool beamcode_place(const struct beamcode *c, const struct beam_module *m, uint64_t pc,
		    bool returns, struct script_place *out);

#endif
