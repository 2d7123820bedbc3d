/* SPDX-License-Identifier: Apache-2.0 */
/*
 * related: who called a function, and what it called: paths of a flame tree that meet the function,
 * with their time.
 *
 * Which functions: those whose name is the text, else those whose name it matches as a POSIX
 * extended regular expression. Where one of them is called by another or by itself, the outermost
 * call counts, so that no time counts twice. Callers are paths from the root to the function, with
 * all its time; callees are paths from the function to where the time was spent, with the time
 * spent right there.
 */
#ifndef SONDE_TOOLS_RELATED_H
#define SONDE_TOOLS_RELATED_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/flame/flame_tree.h"

struct related_path {
	uint32_t *frames; /* of the tree, outermost first */
	size_t n;
	uint64_t ns, samples;
};

struct related {
	uint32_t *functions;
	size_t n_functions; /* a frame of each function that matched, by name */
	struct related_path *paths;
	size_t n_paths;       /* most time first */
	uint64_t ns, samples; /* of all of them together */
};

enum related_side { RELATED_CALLERS, RELATED_CALLEES };

/* EXIT_NOTHING if no function matches, EXIT_USAGE if the text is not a valid regular expression
 * either. */
int related_init(struct related *r, const struct flame_tree *t, const char *text,
		 enum related_side side, struct err *e);
void related_release(struct related *r);

#endif
