/* SPDX-License-Identifier: Apache-2.0 */
/* unstored: why there is no answer about a range of which the store has nothing at all. */
#ifndef SONDE_TOOLS_UNSTORED_H
#define SONDE_TOOLS_UNSTORED_H

#include <errno.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

/* Code of an error that tells already why the range is empty: sonded had stopped the family, or it
 * had failed. */
#define UNSTORED_TOLD (-ECANCELED)

/* A question about the range of `a` found nothing, and `e` says why. Where no recording of any
 * family touches the range, `e` says that instead, and what the store holds; else it is left as it
 * is: also without a range, of a recording, and with UNSTORED_TOLD, unless the range is in the
 * future. */
void unstored_say(const struct select_args *a, const char *store, struct err *e);

#endif
