/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pylayout: the offsets in CPython's structures, by version: 2.7 and 3.6 to 3.12 from tables, 3.13
 * to 3.15 from the file itself (struct _Py_DebugOffsets at the beginning of _PyRuntime: "xdebugpy",
 * then u64: the version that it was built as, whether it runs without a GIL, then offsets, in an
 * order of each version). Sources: the headers of each version;
 * tests/unit/loaders/index/runtimes/pylayout_test.c compiles them.
 *
 * No layout for any other version, a pre-release before its release candidates (structures still
 * change then), a build without a GIL (its objects and references differ), and numbers that no
 * structure has.
 */
#ifndef SONDE_INDEX_PYLAYOUT_H
#define SONDE_INDEX_PYLAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/runtimes/python_layout.h"

#define PYLAYOUT_OFFSETS_SIZE                                              \
	1024u /* this much of _PyRuntime is enough for the second function \
	       */

/* Before 3.13. *interpreters_at: offset of the interpreters' list in _PyRuntime; 0: none (before
 * 3.7). out->gil: offset in _PyRuntime too. */
bool pylayout_of_version(uint32_t version, struct python_layout *out, uint64_t *interpreters_at);
/* 3.13 on, by the first bytes of _PyRuntime. Pure over (bytes, len). */
bool pylayout_of_offsets(const void *runtime, size_t len, struct python_layout *out,
			 uint64_t *interpreters_at);
/* "3.8.18", "3.9.0rc1", "2.7.18+": PY_VERSION as its PY_VERSION_HEX; 0: no version. */
uint32_t pylayout_version(const char *text);

#endif
