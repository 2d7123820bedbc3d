/* SPDX-License-Identifier: Apache-2.0 */
/*
 * madestore: undoes what sonded creates in the store's folder if it records nothing, so that a
 * failed `sonde up` leaves nothing behind. madestore_note looks at the folder before anything is
 * created. madestore_remove removes the folder if it did not exist, with those of its parents that
 * were missing, or its contents if it was empty. It keeps a folder that was not empty or that has a
 * recording by now.
 */
#ifndef SONDE_SUPERVISOR_MADESTORE_H
#define SONDE_SUPERVISOR_MADESTORE_H

#include <limits.h>
#include <stdbool.h>

struct madestore {
	char store[PATH_MAX];
	char first[PATH_MAX]; /* the outermost folder that was missing; "": the store's existed */
	bool empty;           /* it existed and was empty */
};

void madestore_note(struct madestore *l, const char *store);
void madestore_remove(const struct madestore *l);

#endif
