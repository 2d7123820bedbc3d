/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pylines: from a place in a CPython code object to its line, by the four kinds of tables there
 * have been. Pure over (bytes, len); what is cut off says nothing from there on.
 *
 *   PYTHON_LINES_27   co_lnotab: pairs of u8, bytes of code and lines that are passed; a line holds
 *                     from its address on
 *   PYTHON_LINES_36   the same, lines as s8
 *   PYTHON_LINES_310  co_linetable: pairs of u8 and s8: bytes of code, and how many lines on from
 *                     the last they are; -128: on no line, and the line stays
 *   PYTHON_LINES_311  co_linetable: entries that begin with a byte whose bit 7 is set: bits 3-6 a
 *                     kind, bits 0-2 one less than the entry's instructions, of 2 bytes of code
 *                     each; bytes without bit 7 follow. Kinds: 0-9 the line stays; 10-12 it goes on
 *                     by kind - 10; 13, 14 by a number that follows; 15 no line, and the line
 *                     stays. Numbers have 6 bits a byte, lowest first, bit 6 says that more follow;
 *                     bit 0 of one is its sign.
 *
 * Sources: CPython's Objects/lnotab_notes.txt (2.7 to 3.10) and Objects/locations.md (3.11 on).
 */
#ifndef SONDE_RUNTIMES_PYLINES_H
#define SONDE_RUNTIMES_PYLINES_H

#include <stddef.h>
#include <stdint.h>

/* `at`: bytes of code before the instruction; negative: none has been executed, which is on the
 * first line. `kind`: enum python_lines. 0: no line. */
uint32_t pylines_find(unsigned kind, const uint8_t *table, size_t len, int32_t first_line,
		      int64_t at);

#endif
