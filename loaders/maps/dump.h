/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump: what a running sonde-maps has published, read the way a probe reads it: through descriptors
 * of its maps. For people and tests; it knows nothing of what the writer means.
 */
#ifndef SONDE_MAPS_DUMP_H
#define SONDE_MAPS_DUMP_H

#include <stdint.h>

#include "schema/base/err.h"

/* One JSON object to stdout: the state of the tables, and (tgid not 0) the entry of that process
 * with its mappings. Exit code, or -errno with `e`. */
int dump_tables(const char *socket_path, uint32_t tgid, struct err *e);

#endif
