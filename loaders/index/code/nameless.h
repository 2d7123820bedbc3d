/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nameless: functions of TLS libraries in a file without symbols, by what identifies them without
 * doubt. What is found is noted as if a symbol had named it.
 *
 * A function is known by a text that only its source has, by the instruction (lea) that loads the
 * text's address, or that of a record of it, and by .eh_frame, which says where the function with
 * this instruction begins and ends.
 *
 * 1. ring 0.17 (where it has src/aead/algorithm.rs): four functions panic there with "entered
 *    unreachable code", each at another line, which a record says (pointer and length of the file's
 *    name, line, column). In order of the lines: seal, open, seal, open. If there are not exactly
 *    four, none is taken.
 * 2. AWS-LC and BoringSSL: errors of aead.c have the file's name and a number; which numbers a
 *    function has tells which one it is. BoringSSL from the end of 2025 on has other functions for
 *    vectors of buffers, and seal, seal_scatter and open are only a way to them: seal makes a
 *    vector of one buffer, seal_scatter of two. open_gather is not used by TLS there.
 * 3. OpenSSL 3: errors have the function's own name: SSL_read, SSL_write, and what they call,
 *    ssl_read_internal and ssl_write_internal. Whatever else calls these, but for early data, is
 *    SSL_read_ex, and SSL_write_ex or (from 3.3 on) SSL_write_ex2: it gives its own first three
 *    arguments to the inner one, and which of its others is the place for the result tells which
 *    one it is. A linker leaves out what the program does not call (--gc-sections, as cargo does):
 *    then there is no text SSL_read or SSL_write, and the other one is all. If there are several,
 *    or another function calls the inner one, nothing is taken.
 *
 * Also, for sonde doctor, whether the file holds such a library at all.
 */
#ifndef SONDE_INDEX_NAMELESS_H
#define SONDE_INDEX_NAMELESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"

enum nameless_kind {
	NAMELESS_RING_SEAL,
	NAMELESS_RING_OPEN,
	NAMELESS_SEAL_SCATTER,
	NAMELESS_SEAL,
	NAMELESS_OPEN,
	NAMELESS_OPEN_GATHER,
	NAMELESS_READ, /* SSL_read, and so on */
	NAMELESS_READ_EX,
	NAMELESS_WRITE,
	NAMELESS_WRITE_EX,
	NAMELESS_WRITE_EX2
};

#define NAMELESS_FUNCTIONS 16u

struct nameless {
	struct {
		enum nameless_kind kind;
		struct elf_range at;
	} found[NAMELESS_FUNCTIONS];
	size_t count;
	bool rustls, openssl, boringssl; /* their texts are in the file */
	bool aead;                       /* 2 are found */
};

/* -ENOENT: no such text; else as source_read. `rows` NULL: nothing is found but texts. */
int nameless_find(struct elf_file *f, const struct rows *rows, struct nameless *out);

/* ---- pure parts ---- */

/* Instructions of code[0, len) at `vaddr` that load an address out of `targets` (sorted, n of them)
 * relative to the next instruction: each(ctx, the instruction's place in code, number of the
 * target).
 */
void nameless_loads(const uint8_t *code, size_t len, uint64_t vaddr, const uint64_t *targets,
		    size_t n, void (*each)(void *ctx, size_t at, size_t target), void *ctx);
/* Numbers of a function's errors, as a set of enum nameless_error; -1: none of these functions.
 * `vectors`: as of BoringSSL with vectors. */
enum nameless_error {
	NAMELESS_BAD_DECRYPT = 1,
	NAMELESS_TOO_SMALL = 2,
	NAMELESS_NOT_IMPLEMENTED = 4,
	NAMELESS_INVALID = 8,
	NAMELESS_ALIASES = 16,
	NAMELESS_TOO_LARGE = 32,
	/* no errors: the number of buffers */
	NAMELESS_ONE = 64,
	NAMELESS_TWO = 128
};
int nameless_by_errors(unsigned errors, bool vectors);

#endif
