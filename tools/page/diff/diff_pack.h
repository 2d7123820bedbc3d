/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_pack: the part of a difference that the page gets in addition to the rows of both sides, as
 * the object `diff` in the header of tools/page/flame_pack.h: per ("second" or "sample"), unit
 * (diff_unit), alpha, all_sure (the sums of both sides differ by more than noise), tested,
 * significant (how many functions), whole: [before, after]: what an amount of each side is divided
 * by, so that both are in the unit; seconds: [before, after], 0: unknown; names_only (true: one
 * side has no modules, the module of every frame is ""); functions: those that were tested or that
 * have a caller new or gone, as columns of equal length: name, module (indices of strings), flags
 * (1 self tested, 2 self significant, 4 total tested, 8 total significant), self_q, total_q (1 if
 * not tested), self_least, total_least (the change that would be detected 80 % of the time, in the
 * unit), since (UTC seconds, 0), callers: [[name, gone (1) or new (0)]...], the significant ones.
 */
#ifndef SONDE_TOOLS_DIFF_PACK_H
#define SONDE_TOOLS_DIFF_PACK_H

#include <jansson.h>

#include "tools/diff/diff.h"

/* `text` returns the index of a string, which lives as long as the folds. Returns a new
 * reference. */
json_t *diff_pack(const struct diff *d, uint32_t (*text)(void *ctx, const char *str), void *ctx);

#endif
