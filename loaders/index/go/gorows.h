/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gorows: unwind rows for all functions of a Go file (amd64), from its pclntab and its code
 * (goframe.h). The range of Go's text is reserved: .eh_frame's rows for it (external linkers keep a
 * few) do not count.
 */
#ifndef SONDE_INDEX_GOROWS_H
#define SONDE_INDEX_GOROWS_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/go/gotable.h"
#include "loaders/index/unwind/rows.h"

/* 0, also for what is not amd64 (no rows); else as source_read. Code that cannot be read costs what
 * it would tell. */
int gorows_add(struct elf_file *f, const struct go_table *t, struct rows *rows);

#endif
