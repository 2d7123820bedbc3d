/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stores: what --store says: one store, or several. It may be given again and again, and be a
 * pattern (* ? [ ]) of names where nothing has that very name.
 */
#ifndef SONDE_TOOLS_STORES_H
#define SONDE_TOOLS_STORES_H

#include <stdbool.h>

#include "schema/base/cli/options.h"
#include "schema/base/err.h"
#include "schema/base/strbuf.h"

/* All of them, with STORE_LIST (schema/store/read/reader.h) between them, into `out`; "" where none
 * was given. EXIT_STORE where a pattern matches nothing. */
int stores_join(const struct option_list *given, struct strbuf *out, struct err *e);
/* Are these several? */
bool stores_several(const char *store);

#endif
