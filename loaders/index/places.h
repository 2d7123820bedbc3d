/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * places: where probes can be set in an ELF file: the functions of its symbol tables and of Go's,
 * and its USDT probes (.note.stapsdt). Entering the sandbox first is the caller's.
 *
 * Lines of text, one a place; numbers are hexadecimal, offsets are those in the file:
 *   f OFFSET SIZE BYTES NAME                      BYTES: the first 16 of its code, or fewer
 *   g OFFSET SIZE BYTES NAME                      the same, of Go's table
 *   u OFFSET SEMAPHORE BYTES PROVIDER NAME ARGS   SEMAPHORE 0: it has none; ARGS: as the note has them
 *   i OFFSET SIZE BYTES NAME                      an instruction of a function: found by decoding from its
 *                                                 begin, so only in functions that a table has, with size,
 *                                                 or .eh_frame, whose NAME is -
 *   c OFFSET 0 BYTES NAME SITE                    behind a function, where its calls are asked for: its begin
 *                                                 or a way out (callsites.h); SITE, decimal: begins others
 *                                                 base frame when condition, and twice: kind reg bytes at
 *   x 0 UNSEEN - NAME                             behind them: how many ways out have no site; UNSEEN
 *                                                 ffffffff: its code cannot be followed
 * Names are printable; one that holds a blank or a control byte is left out.
 *
 * A note of type 3, owner "stapsdt": three addresses (of the probe, of .stapsdt.base when it was
 * linked, of the semaphore), then provider, name and arguments, each ended by NUL. Where
 * .stapsdt.base lies elsewhere now, all three moved with it (prelink).
 */
/* clang-format on */
#ifndef SONDE_INDEX_PLACES_H
#define SONDE_INDEX_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "loaders/index/elf/source.h"
#include "schema/base/err.h"
#include "schema/base/strbuf.h"

#define PLACES_MOST 20000

struct places_asked {
	const char *word; /* part of the name; "": any */
	bool whole;       /* it is the name, in which * matches anything */
	uint64_t at; /* not 0: instead, the instruction that begins at this offset of the file */
	bool calls;  /* and its calls' sites; with `at`: of the function that begins there */
};

/* Adds the lines. -ENOEXEC: no ELF file of a kind that runs here; else as elf_open. More than
 * PLACES_MOST are left out. */
int places_read(struct source *src, const struct places_asked *asked, struct strbuf *out,
		struct err *e);

#endif
