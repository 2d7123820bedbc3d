/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goroutine_offsets: how a probe finds the goroutine that a thread runs (probes/lib/tables.h,
 * TABLES_PROCESS_GO): where the thread keeps its g, and the offsets of fields in runtime.g and
 * runtime.m. They come from the program's file, stripped or not:
 *
 *   TLS, curg  sonde-index reads them in the code of runtime.morestack and systemstack
 *              (loaders/index/go/goframe.h) and stores them in a row's extension
 *   goid       after stack, stackguard0, stackguard1, _panic, _defer, m (56 bytes), sched (a
 *              gobuf, which ends with bp, whose place is known in the same way), syscallsp,
 *              syscallpc, from Go 1.23 on syscallbp, stktopsp, param, atomicstatus and stackLock
 *
 * Source: src/runtime/runtime2.go of Go 1.19, 1.24 and 1.26. Pure.
 */
#ifndef SONDE_MAPS_GOROUTINE_OFFSETS_H
#define SONDE_MAPS_GOROUTINE_OFFSETS_H

#include <stdint.h>

#include "loaders/lib/host/unwind/unwind.h"

/* tables_process.flags for who maps a Go file with these rows (NULL: none), of this version
 * ("go1.26.8"): TABLES_PROCESS_GO alone where it is not known. */
uint32_t goroutine_offsets_flags(const struct unwind_section *rows, const char *version);
/* Of a process that maps what has `a` and what has `b`. Two runtimes: which one a thread is of is
 * not known. */
uint32_t goroutine_offsets_join(uint32_t a, uint32_t b);

#endif
