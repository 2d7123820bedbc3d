/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize: running sonde-symbolize, for `sonde symbolize` and at the end of `sonde record
 * --debuginfod`. */
#ifndef SONDE_TOOLS_SYMBOLIZE_H
#define SONDE_TOOLS_SYMBOLIZE_H

#include "schema/base/err.h"

/* Can debug servers be asked? EXIT_USAGE if none is named, EXIT_PREREQUISITE if the program is
 * missing. */
int symbolize_check(struct err *e);
/* Ask them for what the store lacks; what was gained is not printed. That nothing was is no error.
 */
int symbolize_quietly(const char *store, struct err *e);

#endif
