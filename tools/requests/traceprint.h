/* SPDX-License-Identifier: Apache-2.0 */
/* traceprint: a tree of requests as text and JSON. */
#ifndef SONDE_TOOLS_TRACEPRINT_H
#define SONDE_TOOLS_TRACEPRINT_H

#include <jansson.h>

#include "tools/print/table.h"
#include "tools/requests/traces.h"

/* A row for each request, in the order in which the tree is read. */
struct table *traceprint_tree(const struct traces *t, uint32_t root);
/* Which it is, in one line, before the tree. */
void traceprint_head(const struct traces *t, uint32_t root, FILE *out);
/* What the tree may lack, and why: a line each, or nothing. */
void traceprint_notes(const struct traces *t, uint32_t root, FILE *out);
/* Its rows are added to an array, until that has `most`. */
void traceprint_json(const struct traces *t, uint32_t root, size_t most, json_t *rows);

#endif
