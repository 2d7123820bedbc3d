/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call-frame information into rows, and the rows into a section: any input gives a table whose
 * rows are in order and whose pages point into it. The first byte says which kind of section the
 * rest is.
 *
 * covers: loaders/index/unwind/cfi.c loaders/index/unwind/cfiprog.c
 *         loaders/index/unwind/cfiexpr.c loaders/index/unwind/cfirule.c
 *         loaders/index/unwind/rows.c loaders/index/unwind/rowtable.c
 *         loaders/index/unwind/leb.h
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/unwind/cfi.h"
#include "tests/rows/rowtable_at.h"

#define TEXT     0x1000u
#define TEXT_END 0x800000u
#define VADDR    0x400000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const void *table, size_t size)
{
	struct rowtable t;

	if (rowtable_init(&t, table, size))
		abort();
	for (size_t i = 0; i < t.count; i++) {
		if (rowtable_at(&t, t.rows[i].addr) != t.rows[i].rule)
			abort();
		if (i && t.rows[i].addr <= t.rows[i - 1].addr)
			abort();
		if (ROW_RULE_KIND(t.rows[i].rule) == ROW_EXT &&
		    ROW_RULE_EXT(t.rows[i].rule) >= t.head->ext_count)
			abort();
	}
	rowtable_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* bytes of real files say anything of where their functions are: all that is low is code */
	const struct elf_range code = {TEXT, TEXT_END};
	struct cfi_section s = {.data = data + 1,
				.len = len - 1,
				.vaddr = VADDR,
				.text = TEXT,
				.got = 0x10000,
				.code = &code,
				.code_count = 1};
	struct cfi_tally t = {0};
	struct rows r;
	void *out = NULL;
	size_t size = 0;

	if (!len || rows_init(&r, TEXT, TEXT_END))
		return 0;
	s.debug_frame = data[0] & 1;
	s.open_end = data[0] & 2;
	cfi_read(&s, s.debug_frame ? ROWS_DEBUG_FRAME : ROWS_EH_FRAME, &r, &t);
	if (data[0] & 4) {
		rows_span(&r, TEXT, 0x401000, ROWS_GUESS);
		rows_add(&r, TEXT, ROW_MAKE_SPECIAL(ROW_ROOT, 0));
		rows_reserve(&r, 0x400000, 0x401000);
	}
	if (rows_finish(&r, &out, &size))
		abort();
	if (size)
		check(out, size);
	free(out);
	rows_release(&r);
	return 0;
}
