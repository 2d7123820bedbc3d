/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sibling: the other programs of sonde, as one of them finds them: beside itself (build/bin), in
 * ../libexec/sonde (installed), or in ../lib/sonde (where a distribution has no libexec); `sonde`
 * itself, as one of these finds it, in ../../bin.
 */
#ifndef SONDE_BASE_SIBLING_H
#define SONDE_BASE_SIBLING_H

#include <limits.h>

#include "schema/base/err.h"

/* Path of "sonde-cpu" and the like. -ENOENT with EXIT_PREREQUISITE and where it was looked for;
 * `path` is then undefined. */
int sibling_find(const char *program, char path[PATH_MAX], struct err *e);

#endif
