/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi: the call-frame information of one section, .eh_frame or .debug_frame, into unwind rows. Pure
 * over (bytes, len). Sources: DWARF 5, 6.4 and 7.24; LSB 5.0 core, 10.6 (.eh_frame, augmentations,
 * pointer encodings).
 *
 * 1. A section is a list of entries: length (u32; 0xffffffff: u64 follows), id or distance to the
 *    CIE, then the rest. In .eh_frame a CIE has id 0, an FDE the distance back from that field to
 *    its CIE (both u32 always); in .debug_frame all ones, or an offset from the section's start (of
 *    the length's width). A length of 0 is skipped (some linkers leave one in the middle), or
 *    is the end where the section's own length is not known.
 * 2. CIEs of version 1, 3, 4; augmentation "" or "eh" or z with L, P, R, S, B. A CIE that is of
 *    another kind has no FDEs. So has one whose first instructions are damaged.
 * 3. An FDE counts if its range is not empty, does not begin at 0 and lies inside one range of
 *    code.
 * 4. Instructions that are damaged, or unknown: from that address to the FDE's end
 *    ROW_UNSUPPORTED_BROKEN. remember_state as deep as CFI_REMEMBER_MAX. GNU_args_size is skipped.
 * 5. 'S', a signal frame: where its CFA is the context's RSP, ROW_SIGNAL from one byte before its
 *    start on (it is looked up at its first byte - 1, as a return address); else
 *    ROW_UNSUPPORTED_RA.
 * 6. Work is bounded: CFI_STEPS_PER_BYTE instructions a byte of the section; then nothing more is
 *    read.
 */
#ifndef SONDE_INDEX_CFI_H
#define SONDE_INDEX_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"

#define CFI_REMEMBER_MAX   16u
#define CFI_STEPS_PER_BYTE 4u

struct cfi_section {
	const uint8_t *data; /* borrowed */
	size_t len;
	uint64_t vaddr; /* of the first byte */
	bool debug_frame;
	bool open_end; /* `len` is only the most it can be: the end is a length of 0, or what is no
			  entry */
	uint64_t text; /* what DW_EH_PE_textrel and datarel count from; 0: not known */
	uint64_t got;
	const struct elf_range *code; /* borrowed; sorted */
	size_t code_count;
};

struct cfi_tally {
	size_t fdes;    /* that gave rows */
	size_t dropped; /* outside of code, empty, of a CIE that cannot be used */
	size_t broken;  /* damaged instructions */
};

/* A pointer in one of the encodings of DW_EH_PE. `at`: address of its first byte. false: not
 * readable here. */
struct cursor;
bool cfi_pointer(struct cursor *c, uint8_t encoding, uint64_t at, uint64_t text, uint64_t got,
		 uint64_t *out);
/* All FDEs as spans of `source`. */
void cfi_read(const struct cfi_section *s, enum rows_source source, struct rows *r,
	      struct cfi_tally *t);

#endif
