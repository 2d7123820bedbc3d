/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotfunctions: of each stack of a fold the function that one would name: "mostly in parse_order".
 *
 *  1. Of a stack with frames of scripts, or of code that a JIT made: the innermost of those that
 *     are not the runtime's (tools/fold/ranking/memsite.h), also where it ends in the C library or
 *     in the kernel. The interpreter's leaf is the same for all that a script does.
 *  2. Of any other: its innermost frame.
 *  3. Frames of one name and module are one function, whatever their lines are.
 */
#ifndef SONDE_TOOLS_HOTFUNCTIONS_H
#define SONDE_TOOLS_HOTFUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/fold/fold.h"

struct hotfunctions {
	uint32_t *of;    /* by node: its function; of the root: 0, and it means nothing */
	uint32_t *frame; /* by function: its first frame */
	size_t n;
};

void hotfunctions_init(struct hotfunctions *h, const struct fold *f);
void hotfunctions_release(struct hotfunctions *h);

#endif
