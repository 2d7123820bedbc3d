/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkstate: the changes sent to the --notify program, once for each change of state. A JSON file,
 * {"CHECK\nSUBJECT": since when, ns}, has the subjects that fail as far as that program knows; it
 * is locked during the run and rewritten as a whole.
 *
 *   1. A subject that fails and is not in the file is sent as bad; one that is in the file and no
 *      longer fails is sent as recovered.
 *   2. Nothing is sent for a check that is not measured now: its state is unknown.
 *   3. If the program fails (exit code other than 0, or it runs longer than a minute), the change
 *      is sent again next time.
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

/* `path` NULL: a per-user file, named after the store's path. *told, *failed: how many changes. */
int checkstate_notify(const char *path, const char *store, const char *command,
		      const struct check_results *r, const struct checkfiles *checks, size_t *told,
		      size_t *failed, struct err *e);

#endif
