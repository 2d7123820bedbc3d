/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftout: files of the store that this process reads no more, since something in them turned out to be damaged, or they cannot be read: a
 * question that met one is asked again of the others (tools/verbs/retry.h). Of one thread; others may only ask.
 */
#ifndef SONDE_STORE_READ_UNREADABLE_H
#define SONDE_STORE_READ_UNREADABLE_H

#include <stdbool.h>
#include <stddef.h>

bool leftout_has(const char *path);
void leftout_add(const char *path);
/* The i-th of them; NULL: there are no more. */
const char *leftout_path(size_t i);
/* One of the folder's files that `said`, an error's text, names, or that is not sound; false: none that is not left out yet. */
bool leftout_find(const char *dir, const char *said, char path[]);

#endif
