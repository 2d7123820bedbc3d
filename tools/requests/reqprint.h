/* SPDX-License-Identifier: Apache-2.0 */
/* reqprint: requests as text and JSON. */
#ifndef SONDE_TOOLS_REQPRINT_H
#define SONDE_TOOLS_REQPRINT_H

#include <jansson.h>

#include "tools/print/table.h"
#include "tools/requests/reqrows.h"

struct table *reqprint_rows(const struct reqrows *r, size_t n);
json_t *reqprint_row_json(const struct reqrows *all, const struct reqrows_row *r);
/* seen = parsed + skipped + blind; NULL: it was not recorded. */
json_t *reqprint_bytes_json(const struct reqrows *r);
void reqprint_bytes(const struct reqrows *r, FILE *out);

struct table *reqprint_singles(const struct reqsingles *r, size_t n);
json_t *reqprint_single_json(const struct reqsingle *r);

#endif
