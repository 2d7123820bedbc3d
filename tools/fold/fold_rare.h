/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_rare: what functions had in the stacks that sealing cut off as rare (schema/store/sealrare.h), for answers by function. It is on
 * record by hour, run, executable and container. Of whole hours it is exact; of a part of one, or of some of an executable's processes, it is
 * the share that the samples asked for have of those that were cut.
 */
#ifndef SONDE_TOOLS_FOLD_RARE_H
#define SONDE_TOOLS_FOLD_RARE_H

#include "schema/base/err.h"
#include "tools/fold/fold_parts.h"

struct fold_rares;

/* Of the segment at hand; NULL: nothing was cut off in it. Freed by fold_rare_end. */
int fold_rare_begin(struct folding *f, struct fold_rares **out, struct err *e);
/* Is this stack one that was cut, of that run and process? 1 + whose it is of; 0: no. */
uint32_t fold_rare_whose(const struct folding *f, struct fold_rares *r, const struct store_total *t);
/* The samples of series that are so are known: what functions had goes to the fold. */
void fold_rare_end(struct folding *f, struct fold_rares *r);

#endif
