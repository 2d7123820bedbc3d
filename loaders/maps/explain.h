/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain: how the stacks of one living process can be unwound: which files it has mapped
 * executable, which of them have rows and how many places no row can express, and what code it has
 * without a file. For `sonde doctor --pid`.
 */
#ifndef SONDE_MAPS_EXPLAIN_H
#define SONDE_MAPS_EXPLAIN_H

#include <stdint.h>

#include "schema/base/err.h"

/* Starts a private sonde-maps and queries it like a loader; it makes the missing indexes. One JSON
 * object to stdout: {pid, comm, exe, files: [{path, bytes, state, rows, unsupported, go, reason,
 * runtime?: {name, walked, version, without}}], anonymous: {regions, bytes, perf_map: {state,
 * names}}}. Exit code, or -errno with `e`: no such process. */
int explain(uint32_t pid, const char *store_dir, struct err *e);

#endif
