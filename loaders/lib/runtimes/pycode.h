/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pycode: function, file and line of a place in a CPython code object. The memory is untrusted:
 * each object on the way must have the expected type (python_layout), each length is bounded, and
 * what cannot be determined is left out, never guessed.
 *
 * Texts of 3.x are compact (PEP 393): after the head, one, two or four bytes a character. They
 * become UTF-8; invalid bytes of a file name (PEP 383: U+DC80 to U+DCFF) stay as they are. Texts of
 * 2.7 are bytes.
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
/* If a text or a line table is not complete (a copy has its beginning: probes/runtimes/runtime.h),
 * this many bytes are enough. */
#define PYCODE_TEXT_FIRST  400u
#define PYCODE_TABLE_FIRST 8000u

/* The code object at `code`; `at` as python_walk has it; `bias` is added to the layout's addresses.
 * false: not a code object. */
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

/* false: not a code object; *out is unchanged. */
bool pycode_object_read(const struct runtime_memory *m, const struct python_layout *l,
			uint64_t bias, uint64_t code, struct pycode_object *out);
/* The line of the instruction with this many bytes of code before it; negative: no instruction was
 * executed yet. 0: unknown. */
uint32_t pycode_object_line(const struct pycode_object *o, int64_t bytes);
void pycode_object_release(struct pycode_object *o);

#endif
