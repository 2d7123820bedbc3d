/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkstate: what was told to the program of --notify, once for each change of state. A file of
 * JSON, {"CHECK\nSUBJECT": since when, ns}, has what is bad as far as that program knows; it is
 * locked meanwhile and written anew as a whole.
 *
 *   1. A subject that is bad and not in the file is told as bad; one that is in the file and is bad
 * no more as recovered.
 *   2. Nothing is told of a check that is not measured now: nobody knows.
 *   3. What the program did not take (it ended with another code than 0, or ran for a minute) is
 * told again at the next time.
 *
 * The program is run by sh -c, with a line of text on its input, and SONDE_STATE (bad, recovered),
 * SONDE_LEVEL, SONDE_CHECK, SONDE_SUBJECT, SONDE_VALUE, SONDE_UNIT, SONDE_TEXT and SONDE_NEXT in
 * its environment.
 */
#ifndef SONDE_TOOLS_CHECKSTATE_H
#define SONDE_TOOLS_CHECKSTATE_H

#include <stddef.h>

#include "schema/base/err.h"
#include "tools/checks/checks.h"

/* `path` NULL: a file of the user's own, by the store's path. *told, *failed: how many changes. */
int checkstate_notify(const char *path, const char *store, const char *command,
		      const struct check_results *r, const struct checkfiles *checks, size_t *told,
		      size_t *failed, struct err *e);

#endif
