/* SPDX-License-Identifier: Apache-2.0 */
/* unread: runtimes whose functions sonde does not show, or not in every build: why, and what would
 * help. */
#ifndef SONDE_TOOLS_UNREAD_H
#define SONDE_TOOLS_UNREAD_H

#include <stdbool.h>

struct fold;

struct unread {
	const char *name;      /* as sonde-maps --explain says it */
	const char *why, *fix; /* fix NULL: nothing is needed */
	bool native;           /* it compiles programs ahead of time: they have no scripts */
	bool maps;             /* with `fix` it names its code itself */
	bool told;             /* no build of it is read: an answer that has much of it says so */
};
/* NULL: none is known. */
const struct unread *unread_of(const char *name);

typedef void unread_take(void *ctx, const char *sentence);
/* A sentence for each that is `told` and that much of this is of. */
void unread_each(const struct fold *f, unread_take *take, void *ctx);

#endif
