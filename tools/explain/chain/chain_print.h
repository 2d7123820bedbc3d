/* SPDX-License-Identifier: Apache-2.0 */
/* chain_print: a chain (chain.h) as text and as JSON. */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_PRINT_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "tools/explain/chain/chain.h"

/* Its sentences with their commands; where nothing was felt one line that says so. */
void chain_print(const struct chain *c, FILE *out);
/* {"felt", "requests_known", "requests", "links": [...], "others", "not_recorded"} */
json_t *chain_json(const struct chain *c);

#endif
