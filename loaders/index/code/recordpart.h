/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordpart: sites in the functions that cipher one record of TLS (probes/l7/record.bpf.h says
 * what a probe makes of them). For files that hold no function for clear text, or may have inlined
 * all of them: rustls calls its ciphers by pointers, so these stay functions in any build.
 *
 * 1. Functions: of ring, by Rust's names of both kinds; of AWS-LC and BoringSSL, by C's, also with
 *    a prefix before them.
 * 2. Entry: the first emulated instruction at which each argument still is where the ABI puts it;
 *    else the function's first. value[0] says where the arguments in memory begin.
 * 3. Result, of those that open a record: by tlscode for C, whose functions return 1; else each
 *    `ret`, also of functions that the last instruction jumps to. Rust's result is not looked at.
 * 4. If some way out of a function is not known it has no site.
 */
#ifndef SONDE_INDEX_RECORDPART_H
#define SONDE_INDEX_RECORDPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/code/codeflow.h"
#include "schema/image/format.h"

#define RECORDPART_FUNCTIONS 32u

struct record_function {
	uint64_t start, end;
	uint8_t library, operation, shape; /* enum image_tls_* */
};

struct record_symbols {
	struct record_function at[RECORDPART_FUNCTIONS];
	size_t count;
};

/* A symbol that may be one of these. */
void record_symbols_note(struct record_symbols *t, const char *name, uint64_t addr, uint64_t size);

struct recordpart_host {
	void *ctx;
	const struct codeflow_reader *reader;
	/* Where the function ends that begins there; 0: not known. */
	uint64_t (*end_of)(void *ctx, uint64_t start);
	/* In the file; 0: not there. */
	uint64_t (*offset_of)(void *ctx, uint64_t vaddr);
	/* false: no room. */
	bool (*put)(void *ctx, const struct image_tls_site *site);
};

/* false: a way is not known, or there is no room; what was put before stays put. */
bool recordpart_add(const struct recordpart_host *h, const struct record_function *fn);

#endif
