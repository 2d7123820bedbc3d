/* SPDX-License-Identifier: Apache-2.0 */
/* spark: a number's course as one line of text: blocks of eighths, else `_.:-=+*#@`. */
#ifndef SONDE_TOOLS_SPARK_H
#define SONDE_TOOLS_SPARK_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/strbuf.h"

/* A column each; below 0: not known, blank. `top` has the highest sign. */
void spark_add(struct strbuf *out, const double *x, size_t n, double top, bool unicode);

#endif
