/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pycode: what a CPython code object says of a place in it: function, file, line. Its memory is a
 * stranger's: each object that is followed must have the type that it should have (python_layout),
 * each length has a bound, and what cannot be told is left out: never a guess.
 *
 * Texts of 3.x are compact (PEP 393): after the head, one, two or four bytes a character. They
 * become UTF-8; the bytes of a file name that are no UTF-8 (PEP 383: U+DC80 to U+DCFF) become
 * themselves. 2.7's are bytes.
 */
#ifndef SONDE_RUNTIMES_PYCODE_H
#define SONDE_RUNTIMES_PYCODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/python_layout.h"

#define PYCODE_TEXT_MAX  SCRIPT_TEXT_MAX /* characters, here */
#define PYCODE_TABLE_MAX (1u << 20)      /* bytes of a line table; a longer one is not read */
/* Where not all of a text or a line table is there (a copy has its beginning:
 * probes/runtimes/runtime.h), so many bytes do. */
#define PYCODE_TEXT_FIRST  400u
#define PYCODE_TABLE_FIRST 8000u

/* The code object at `code`; `at` as python_walk has it; `bias` is added to the layout's addresses.
 * false: it is none. */
bool pycode_read(const struct runtime_memory *m, const struct python_layout *l, uint64_t bias,
		 uint64_t code, uint64_t at, struct script_place *out);

/* All that a code object says, for any place in it. */
struct pycode_object {
	char *function, *file; /* own, as above */
	int32_t first_line;
	uint8_t lines;  /* enum python_lines */
	uint8_t *table; /* own; its line table, or the beginning of it */
	size_t table_len;
};

/* false: it is none; *out is untouched. */
bool pycode_object_read(const struct runtime_memory *m, const struct python_layout *l,
			uint64_t bias, uint64_t code, struct pycode_object *out);
/* The line of the instruction that has so many bytes of code before it; negative: none was
 * executed. 0: not known. */
uint32_t pycode_object_line(const struct pycode_object *o, int64_t bytes);
void pycode_object_release(struct pycode_object *o);

#endif
