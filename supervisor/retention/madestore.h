/* SPDX-License-Identifier: Apache-2.0 */
/*
 * madestore: what sonded makes of the store's folder before it records. A `sonde up` that fails
 * leaves nothing behind. What is where the store is to be is looked at before anything is made; if
 * no recording began, what was made since is removed: the store's folder where there was none, with
 * those of its parents that were missing, or what is in it where it was empty. A folder with
 * anything in it, and one that holds a recording, is left as it is.
 */
#ifndef SONDE_SUPERVISOR_MADESTORE_H
#define SONDE_SUPERVISOR_MADESTORE_H

#include <limits.h>
#include <stdbool.h>

struct madestore {
	char store[PATH_MAX];
	char first[PATH_MAX]; /* the outermost folder that was missing; "": the store's was there */
	bool empty;           /* it was there, and empty */
};

void madestore_note(struct madestore *l, const char *store);
void madestore_remove(const struct madestore *l);

#endif
