/* SPDX-License-Identifier: Apache-2.0 */
/* suggest: "did you mean": which of some names is close to what was typed. */
#ifndef SONDE_BASE_SUGGEST_H
#define SONDE_BASE_SUGGEST_H

#include <stddef.h>

#include "schema/base/strbuf.h"

/* Edits (insert, delete, replace, swap of neighbours; case for free) from `a` to `b`; `limit` + 1
 * once past it. */
size_t suggest_distance(const char *a, const char *b, size_t limit);

struct suggest {
	const char *typed;
	size_t limit; /* the allowed distance, which grows with the length of the typed word */
	size_t best_distance[3];
	const char *best[3]; /* borrowed, nearest first */
	size_t n;
};

void suggest_init(struct suggest *n, const char *typed);
void suggest_add(struct suggest *n, const char *candidate);
/* Adds "; did you mean 'a', 'b'?" if a name is close enough. */
void suggest_say(const struct suggest *n, struct strbuf *out, const char *prefix);

#endif
