/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stores: what --store names: one store or several. The option may be repeated, and its value may
 * be a pattern (* ? [ ]) if nothing has exactly that name.
 */
#ifndef SONDE_TOOLS_STORES_H
#define SONDE_TOOLS_STORES_H

#include <stdbool.h>

#include "schema/base/cli/options.h"
#include "schema/base/err.h"
#include "schema/base/strbuf.h"

/* Joins them with STORE_LIST (schema/store/read/reader.h) into `out`; "" if none was given.
 * EXIT_STORE if a pattern matches nothing. */
int stores_join(const struct option_list *given, struct strbuf *out, struct err *e);
/* Does it name several stores? */
bool stores_several(const char *store);

#endif
