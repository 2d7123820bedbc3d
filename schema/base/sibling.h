/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sibling: where one of sonde's programs finds the others: in its own folder (build/bin), in
 * ../libexec/sonde (installed), or in ../lib/sonde (where a distribution has no libexec); they find
 * `sonde` itself in ../../bin.
 */
#ifndef SONDE_BASE_SIBLING_H
#define SONDE_BASE_SIBLING_H

#include <limits.h>

#include "schema/base/err.h"

/* Path of a program such as "sonde-cpu". -ENOENT with EXIT_PREREQUISITE and the places that were
 * tried; `path` is then undefined. */
int sibling_find(const char *program, char path[PATH_MAX], struct err *e);

#endif
