/* SPDX-License-Identifier: Apache-2.0 */
/* unstored: why there is no answer about a range of which the store has nothing at all. */
#ifndef SONDE_TOOLS_UNSTORED_H
#define SONDE_TOOLS_UNSTORED_H

#include "schema/base/err.h"
#include "tools/select/select.h"

/* A question about the range of `a` found nothing, and `e` says why. Where no recording of any
 * family touches the range, `e` says that instead, and what the store holds; else it is left as it
 * is: also without a range, and of a recording. */
void unstored_say(const struct select_args *a, const char *store, struct err *e);

#endif
