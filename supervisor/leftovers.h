/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftovers: a `sonde up` that fails leaves nothing behind. What stood where the store is to be is looked at before anything is
 * made; if no recording began, what was made since is removed: the store's folder where there was none, with those of its parents
 * that were missing, or what is in it where it was empty. A folder with anything in it, and one that holds a recording, is left as
 * it is.
 */
#ifndef SONDE_SUPERVISOR_LEFTOVERS_H
#define SONDE_SUPERVISOR_LEFTOVERS_H

#include <limits.h>
#include <stdbool.h>

struct leftovers {
	char store[PATH_MAX];
	char first[PATH_MAX]; /* the outermost folder that was missing; "": the store's was there */
	bool empty;           /* it was there, and empty */
};

void leftovers_note(struct leftovers *l, const char *store);
void leftovers_remove(const struct leftovers *l);

#endif
