/* SPDX-License-Identifier: Apache-2.0 */
/* fold_pair: two windows of one archive, at once. */
#ifndef SONDE_TOOLS_FOLD_PAIR_H
#define SONDE_TOOLS_FOLD_PAIR_H

#include "tools/fold/fold.h"

/*
 * As fold_make makes each, but their frames and nodes are the same (fold_same_tree): what is in one
 * of them only has nothing in the other. out[0] has the frames: out[1] lives no longer. The options
 * have a kind and differ in nothing else. false: nothing is made, because they are not windows of
 * one archive, one of them has nothing in it, or something went wrong.
 */
bool fold_pair_make(const struct selection *const sel[2], const struct fold_opts *const o[2],
		    struct fold *out[2]);

#endif
