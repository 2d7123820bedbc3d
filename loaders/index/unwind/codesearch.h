/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codesearch: rows for code without call-frame information, in a C library without a signal frame
 * (musl) and in a static program: known pieces (knowncode.h, 1, 2, 5), then the rest by following
 * it (stackdepth.h).
 *
 * Code is everything between the first executable section of a segment and its last; in a file
 * without sections the whole executable segment except the headers.
 */
#ifndef SONDE_INDEX_CODESEARCH_H
#define SONDE_INDEX_CODESEARCH_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"
#include "loaders/index/elf/symset.h"

/* Adds to `rows` what it finds. 0, -ENOMEM, or an error of source_read that says something of this
 * host. */
int codesearch(struct elf_file *f, const struct symset *set, struct rows *rows);

#endif
