/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_html: a difference as a page (tools/page): one tree with both sides, each frame with both
 * numbers and coloured by its change, and the functions with their statistics.
 */
#ifndef SONDE_TOOLS_DIFF_HTML_H
#define SONDE_TOOLS_DIFF_HTML_H

#include <stdio.h>

#include "schema/base/err.h"
#include "tools/diff/diff_print.h"

/* The folds of both sides must have leaves. source_url as in flame_html.h. 0, or -errno with `e`;
 * errors of the stream are left on the stream (ferror). */
int diff_html_write(const struct diff_view *v, const char *source_url, FILE *out, struct err *e);

#endif
