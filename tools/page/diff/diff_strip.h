/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_strip: both sides of a difference over time, as HTML that needs no script (except to choose
 * a range of a side): two drawings side by side on one scale, a column per slice of time (those of
 * the statistics), and the same as a table. Times that were not recorded are crossed out.
 */
#ifndef SONDE_TOOLS_DIFF_STRIP_H
#define SONDE_TOOLS_DIFF_STRIP_H

#include "schema/base/strbuf.h"
#include "tools/diff/diff_print.h"

/* Adds nothing if a side has no slices (a file), or if amounts are not per second. */
void diff_strip_add(const struct diff_view *v, struct strbuf *s);

#endif
