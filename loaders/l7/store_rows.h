/* SPDX-License-Identifier: Apache-2.0 */
/* book: what the parser says, as rows of the store: with the process's row, where it is part of the
 * capture and not left out. */
#ifndef SONDE_L7_STORE_ROWS_H
#define SONDE_L7_STORE_ROWS_H

#include "loaders/l7/parser_message.h"
#include "loaders/l7/unresolved.h"
#include "loaders/lib/bpf/family.h"

struct store_rows_who;

struct store_rows {
	struct store_rows_who *all; /* processes of this bucket's rows */
	struct family_host *h;      /* of the call at hand */
	struct unresolved unresolved;
	uint32_t singles; /* number of the last single request, modulo NTH_MOST */
};

void store_rows_release(struct store_rows *b);
/* Processes are looked up anew. */
void store_rows_fresh(struct store_rows *b);
/* Names that were asked for in vain are told, where it is time (boot clock; INT64_MAX: all). */
void store_rows_unresolved(struct store_rows *b, struct family_host *h, int64_t now_ns);
void store_rows_put(struct store_rows *b, struct family_host *h, const struct heard *x);
/* Bytes of nobody that is known: connections that found no room, and those that only calls moved
 * that are not seen. */
void store_rows_unseen(struct store_rows *b, struct family_host *h, uint64_t bytes, int64_t now_ns);

#endif
