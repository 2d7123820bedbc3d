/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwline: one line table of .debug_line (DWARF 2 to 5, 6.2) into a lineset. Pure over bytes,
 * bounded by them: each byte makes at most one row, each table is read once.
 *
 * Not libdw's: it sorts the rows of all sequences of a unit together, and if linkers leave
 * sequences of no length, or several for one merged function (COMDAT), it is no longer known which
 * row ends where (libjvm.so, built with LTO: 14 000 rows left of 2 million). See
 * docs/decisions/0081.
 */
#ifndef SONDE_INDEX_DWLINE_H
#define SONDE_INDEX_DWLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/lines/lineset.h"
#include "schema/base/cursor.h"

struct dwline_bytes {
	const void *data; /* borrowed */
	size_t size;
};

struct dwline_sections {
	struct dwline_bytes line, line_str, str;
};

struct dwline {
	/* the header */
	uint16_t version;
	uint8_t offset_size;
	uint8_t min_length, max_ops, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[256];  /* of standard opcodes */
	struct cursor program; /* behind the header */
	/* lineset's number of each file, by the number that the unit uses; 0: none */
	uint32_t *files; /* own */
	size_t file_count, file_cap;
};

/* The header of the table at `offset`, its files into `set`. `dir`: the unit's directory
 * (DW_AT_comp_dir), NULL: unknown. false: it does not fit; then release nothing. */
bool dwline_open(struct dwline *t, const struct dwline_sections *s, uint64_t offset,
		 const char *dir, struct lineset *set);
void dwline_release(struct dwline *t);
/* Its rows. What comes after a damaged instruction is left out. */
void dwline_rows(const struct dwline *t, struct lineset *set);
/* The unit's file as lineset's number; 0: none. */
uint32_t dwline_file(const struct dwline *t, uint64_t number);

#endif
