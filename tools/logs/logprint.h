/* SPDX-License-Identifier: Apache-2.0 */
/* logprint: sources and patterns of logs, as tables and as JSON. Tables are the caller's. */
#ifndef SONDE_TOOLS_LOGPRINT_H
#define SONDE_TOOLS_LOGPRINT_H

#include <jansson.h>

#include "tools/logs/logread.h"
#include "tools/print/table.h"

struct table *logprint_sources(const struct logread *l, size_t n);
json_t *logprint_source_json(const struct logread_source *s);
/* `fresh`: it is asked which are new, so `before` is known. */
struct table *logprint_patterns(const struct logread *l, const size_t *which, size_t n);
json_t *logprint_pattern_json(const struct logread_pattern *p, bool fresh);

#endif
