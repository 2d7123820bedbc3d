/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_legacy: recognizes profiles in pprof's old forms (before profile.proto), which `go tool
 * pprof -proto` can turn into the new one. Pure over bytes.
 *
 *  1. Text begins with "heap profile:", "NAME profile: total N", or "--- NAME" and a line's end
 * (--- contention:, --- mutex:,
 *     --- symbol, --- heapz 1 ---): what debug=1 of Go and gperftools write. MAPPED_LIBRARIES is
 * not the first line.
 *  2. Binary is gperftools' CPU profile: words of 4 or 8 bytes in either order: 0, 3 or more, 0
 * (1: of Java), the period in us, 0.
 *  3. A text dump of goroutines (debug=2) begins with "goroutine N [state]:"; no program reads it
 * back.
 */
#ifndef SONDE_TOOLS_PPROF_LEGACY_H
#define SONDE_TOOLS_PPROF_LEGACY_H

#include <stddef.h>

#include "schema/base/err.h"

/* -ENOTSUP with what it is and how it is made new (EXIT_USAGE); 0: it is in none of these forms. */
int pprof_legacy_refuse(const void *data, size_t len, const char *path, struct err *e);

#endif
