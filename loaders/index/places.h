/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places: where probes can be set in an ELF file: the functions of its symbol tables, and its USDT
 * probes (.note.stapsdt). Entering the sandbox first is the caller's.
 *
 * Lines of text, one a place; numbers are hexadecimal, offsets are those in the file:
 *   f OFFSET SIZE BYTES NAME               BYTES: the first 16 of its code, or fewer
 *   u OFFSET SEMAPHORE BYTES PROVIDER NAME ARGS     SEMAPHORE 0: it has none; ARGS: as the note has
 * them i OFFSET SIZE BYTES NAME               an instruction of a function: found by decoding from
 * its begin, so only in functions that a table has, with size Names are printable; one that holds a
 * blank or a control byte is left out.
 *
 * A note of type 3, owner "stapsdt": three addresses (of the probe, of .stapsdt.base when it was
 * linked, of the semaphore), then provider, name and arguments, each ended by NUL. Where
 * .stapsdt.base lies elsewhere now, all three moved with it (prelink).
 */
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
	bool whole;       /* it is the name */
	uint64_t at; /* not 0: instead, the instruction that begins at this offset of the file */
};

/* Adds the lines. -ENOEXEC: no ELF file of a kind that runs here; else as elf_open. More than
 * PLACES_MOST are left out. */
int places_read(struct source *src, const struct places_asked *asked, struct strbuf *out,
		struct err *e);

#endif
