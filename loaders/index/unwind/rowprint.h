/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowprint: unwind rows for people, one a line: address, CFA, the caller's RBP, return address, and
 * RBX unless it is unchanged.
 *
 *   0000000000001040 rsp+16 c-16 c-8           RBP is at CFA - 16
 *   0000000000001044 rsp+24 c-16 c-8 rbx=c-24  RBX is at CFA - 24; rbx=lost: it is unknown
 *   0000000000001060 *(rbp-8)+0 [rbp+0] c-8    CFA read from memory; RBP is at RBP + 0
 *   0000000000001080 rsp+0 same rdi            RBP is unchanged; the return address is in RDI
 *   00000000000010a0 plt:11                    or none, root, signal, fp, unsupported:REASON,
 *                                              go-stack, go-sched
 */
#ifndef SONDE_INDEX_ROWPRINT_H
#define SONDE_INDEX_ROWPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <linux/types.h>

#include "probes/lib/tables.h"

/* `data` is borrowed and 8-aligned. false: the table is not sound. */
bool rowprint_table(FILE *to, const void *data, size_t size);
/* One rule; `exts` has `count`. */
void rowprint_rule(FILE *to, __u64 rule, const struct row_ext *exts, size_t count);

#endif
