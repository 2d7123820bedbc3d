/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8tables: the tables that V8's compilers write about their code. Pure over untrusted bytes.
 *
 * Numbers are of 7 bits a byte, the lowest first, 0x80 says that more follow: V. Signed ones in
 * tables of positions are zigzag (0, -1, 1, ...): Z; in translations the lowest bit is the sign: S.
 *
 * 1. Source positions: entries of two Z, differences to the entry before (the first to -1 and 0):
 *    code offset (a negative one, -1 - offset, is no statement), source position. The position's
 *    value is 1 + the offset in the source shifted by one; bit 0: it is not JavaScript. A place has
 *    the last entry at or before it. From 14 on the first number is a V: the difference shifted by
 *    two; bit 0: a statement.
 * 2. Baseline code: a V for the code before the first instruction of bytecode, then one for each
 *    instruction: its number of bytes of code. The n-th belongs to the n-th bytecode instruction,
 *    whose offset follows from the lengths before it: so the bytecode is read in parallel.
 * 3. Safepoints: u32 how many; u32 configuration: bit 0 there is data for deoptimising, then three
 *    times 3 bits: bytes of registers, of a code offset, of an index. Maglev's head is 16 bytes,
 *    others' 8. Entry: code offset; index + 1, offset of a trampoline + 1 (both where bit 0 is
 *    set); registers (Maglev: one byte more before). The entry of a call has its return address.
 *    13.6 has one u32 before (others' head is 12 bytes then). 9.4's head is u32 how many, u32 entry
 *    size; entries are three u32: code offset, information, trampoline.
 * 4. Translations: for one index the frames that one frame of optimised code represents, outermost
 *    first, as opcodes (one byte) with operands. BEGIN says how many frames; an opcode of a frame
 *    says its bytecode offset (S) and which literal is its function. From 11 on an opcode may say:
 *    as in the translation that lies `lookback` bytes before.
 */
#ifndef SONDE_RUNTIMES_V8TABLES_H
#define SONDE_RUNTIMES_V8TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/runtimes/v8_layout.h"

#define V8_NOWHERE     (-1) /* no source position, no index */
#define V8_INLINED_MAX 64u  /* frames of one translation */

/* The offset in the source that `at` (an offset in the code) has; V8_NOWHERE: none. */
int64_t v8_position_find(enum v8_shape shape, const uint8_t *table, size_t len, uint32_t at);

/* The length of the bytecode instruction at `at`; 0: unknown. Wide ones have a separate prefix. */
typedef uint32_t (*v8_bytecode_length)(void *ctx, uint32_t at);
/* How many bytecode instructions precede the one to which the code before `pc` (an offset, of a
 * return address) belongs; V8_NOWHERE: none, or the code before the first. */
int64_t v8_baseline_find(const uint8_t *table, size_t len, uint64_t pc);

/* The index for deoptimising of a return address; V8_NOWHERE: it has none. `bytes` begin with the
 * table's head. */
int64_t v8_safepoint_find(enum v8_shape shape, bool maglev, const uint8_t *bytes, size_t len,
			  uint32_t pc);
/* The number of bytes of that table, from its head (16 bytes); 0: not a table. */
size_t v8_safepoint_size(enum v8_shape shape, bool maglev, const uint8_t head[16]);

struct v8_inlined {
	int32_t bytecode; /* offset; of a builtin that goes on later: its number */
	uint32_t literal; /* which is its SharedFunctionInfo */
	bool builtin;
};
/* The JavaScript frames of the translation at `at`, outermost first. 0: it cannot be read to its
 * end. */
size_t v8_translation_read(enum v8_shape shape, const uint8_t *bytes, size_t len, size_t at,
			   struct v8_inlined out[V8_INLINED_MAX]);

#endif
