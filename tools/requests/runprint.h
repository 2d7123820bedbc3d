/* SPDX-License-Identifier: Apache-2.0 */
/* runprint: running requests as text and JSON. */
#ifndef SONDE_TOOLS_RUNPRINT_H
#define SONDE_TOOLS_RUNPRINT_H

#include <jansson.h>

#include "schema/base/strbuf.h"
#include "tools/print/table.h"
#include "tools/requests/reqrunning.h"

struct table *runprint_rows(const struct reqrunning *r, size_t n);
json_t *runprint_row_json(const struct reqrun *r);
/* The first n rows. */
json_t *runprint_rows_json(const struct reqrunning *r, size_t n);
/* Envelope of `requests --running`, of the first n rows. */
json_t *runprint_json(const struct reqrunning *r, size_t n);
/* "3 requests run, the longest for 2 min 20 s: SELECT ..., of 10.0.0.1:5432 (postgres)", in the
 * past where the recording has ended; "" without any. */
void runprint_say(const struct reqrunning *r, struct strbuf *out);

#endif
