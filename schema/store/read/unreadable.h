/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unreadable: files of the store that this process reads no more, since something in them turned
 * out to be damaged, or they cannot be read: a question that met one is asked again of the others
 * (tools/verbs/retry.h). Of one thread; others may only ask.
 */
#ifndef SONDE_STORE_READ_UNREADABLE_H
#define SONDE_STORE_READ_UNREADABLE_H

#include <stdbool.h>
#include <stddef.h>

bool unreadable_has(const char *path);
void unreadable_add(const char *path);
/* The i-th of them; NULL: there are no more. */
const char *unreadable_path(size_t i);
/* One of the folder's files, or of those of several stores (STORE_LIST), that `said`, an error's
 * text, names, or that is not sound; false: no such file that is not left out already. A file that
 * is the whole store does not count. */
bool unreadable_find(const char *store, const char *said, char path[]);

#endif
