/* SPDX-License-Identifier: Apache-2.0 */
/* location: which folder is the store, and the error if there is no store or it cannot be read. */
#ifndef SONDE_STORE_FILES_LOCATION_H
#define SONDE_STORE_FILES_LOCATION_H

#include "schema/base/err.h"

/* $SONDE_STORE, else /var/lib/sonde for root, else $XDG_STATE_HOME/sonde, else
 * ~/.local/state/sonde. Static buffer. */
const char *store_default_dir(void);
/* Where to look for what was recorded: that, but for who is not root /var/lib/sonde where his own
 * holds nothing. Static buffer. */
const char *store_read_dir(void);
/* /var/lib/sonde, where `dir` is the user's own and older than that; else NULL. */
const char *store_newer(const char *dir);
/* Fills `e`: there is no store, or it may not be read (EACCES), and what to do about it. Returns
 * -error. */
int store_none(const char *dir, int error, struct err *e);
/* The fix of "permission denied" on the store, or a file of it: sudo, and the group if it may read.
 */
void store_rights_fix(const char *path, struct err *e);

#endif
