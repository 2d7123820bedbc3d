/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tlspart: the index's section TLS (schema/image/format.h, condition 16): where probes in this file
 * see clear text go into TLS and come out of it.
 *
 * A table (tlspart.c) lists the functions: library, operation, name, the registers of the
 * connection, the buffer and its size, how the function returns the number of bytes. They are found
 * by symbols, Go's by its own table.
 *
 * 1. For each function: entry and result by tlscode. If each path to its end has a site, these are
 *    its sites.
 * 2. Else the result comes from other functions (tlscode_lead): called or jumped to with these
 *    arguments, also through a pointer, which is looked up in the table that OpenSSL's TLS_method()
 *    returns. Their sites are used, with the arguments as they were passed on. A function that
 *    returns a length must pass on theirs unchanged; one that returns success may change it. If
 *    numbers are among the arguments, only calls with the first two of them count, since others use
 *    that function too: for other types of records than 23, application data; or to peek at the
 *    data.
 * 3. If one function of an operation needs that, the inner ones represent the whole operation: all
 *    its functions call them.
 * 4. Else, and only then, instructions that the kernel does not emulate: the function's first, and
 *    each `ret`.
 * 5. If nothing of this works, the operation is BLIND.
 * 6. Functions that end a connection have only an entry (FORGET), on their first instruction if
 *    none is emulated.
 *
 * 7. Functions that cipher one record (recordpart.h): those of BoringSSL only where the table's are
 *    not in the file. rustls, whose functions differ from build to build, is read by these alone;
 *    without them it is BLIND.
 * 8. A program without symbols, or a module of Python, Node or Java (other libraries are many and
 * have none of this): what nameless.h finds. If it can only tell that the library is there, that is
 * BLIND.
 *
 * A function that calls another one of the table has sites in both: the inner result ends the call
 * for both.
 */
#ifndef SONDE_INDEX_TLSPART_H
#define SONDE_INDEX_TLSPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/code/recordpart.h"
#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"
#include "schema/image/format.h"

#define TLSPART_FUNCTIONS 24u
#define TLSPART_ENDS      3u

struct tls_symbols {
	struct elf_range at[TLSPART_FUNCTIONS]; /* by row of the table; start 0: not there */
	struct elf_range ends[TLSPART_ENDS];
	uint64_t methods; /* TLS_method */
	struct record_symbols records;
	bool rustls; /* functions of rustls are in it */
	bool module; /* it has what Python, Node or Java look up in a module */
};

/* A symbol that may be one of these; `go`: of Go's own table. */
void tls_symbols_note(struct tls_symbols *t, const char *name, uint64_t addr, uint64_t size,
		      int go);

struct tls_part {
	struct image_tls_site sites[IMAGE_TLS_SITES];
	size_t count;
};

/* `rows` NULL: no rows; go_registers: Go's functions take their arguments in registers (1.17 on).
 * -ENOENT: none of these functions exists. Else as source_read. */
int tlspart_make(struct elf_file *f, const struct tls_symbols *syms, const struct rows *rows,
		 int go_registers, struct tls_part *out);

#endif
