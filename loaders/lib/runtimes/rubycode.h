/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rubycode: label, file, line, method name and class of a frame, from Ruby's objects. The memory is
 * untrusted: the type of each object on the way is checked, lengths are bounded, and what cannot be
 * determined is left out.
 *
 * Sources: Ruby's include/ruby/internal/core (rstring.h, rarray.h), iseq.h, method.h, symbol.c,
 * internal/class.h, 2.7 to 3.3.
 *
 * Lines: the body of an iseq has a row for each place where the line changes, and a succinct index
 * from an instruction to its row (iseq.c): for the first 54 instructions 7 bits each, nine to a
 * word; then blocks of 512 bits: u32 rank, u64 seven ranks of 9 bits, 8 words of bits; the row is
 * the number of bits up to the instruction. With one row there is no index.
 */
#ifndef SONDE_RUNTIMES_RUBYCODE_H
#define SONDE_RUNTIMES_RUBYCODE_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/ruby_layout.h"

struct rubycode {
	const struct runtime_memory *m;
	const struct ruby_layout *l;
	uint64_t bias;
};

/* A frame with instructions, at the address `at` of them. `method`: the method it belongs to; 0:
 * unknown. false: not such a frame. */
bool rubycode_iseq(const struct rubycode *c, uint64_t iseq, uint64_t at, uint64_t method,
		   struct script_place *out);
/* A function of C. false: its method is not known. */
bool rubycode_method(const struct rubycode *c, uint64_t method, struct script_place *out);
/* The lines of an iseq's instructions, as its frames show them, RUBYCODE_LINES + 1 at most; NULL:
 * not known. The caller frees it. */
#define RUBYCODE_LINES 8192u
uint32_t *rubycode_lines(const struct rubycode *c, uint64_t iseq, uint32_t *n);
/* The row of an instruction in a succinct index. 0: none. Pure but for reads. */
uint32_t rubycode_row(const struct runtime_memory *m, uint64_t index, uint32_t instruction);

#endif
