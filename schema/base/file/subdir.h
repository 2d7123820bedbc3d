/* SPDX-License-Identifier: Apache-2.0 */
/* subdir: a folder inside another one that may belong to another user. What root creates, renames
 * and removes in it goes through its descriptor: a link of that name would lead elsewhere. */
#ifndef SONDE_BASE_SUBDIR_H
#define SONDE_BASE_SUBDIR_H

/* The descriptor, or -errno. -ELOOP, -ENOTDIR: it is a link, or no folder. -EPERM: it belongs
 * neither to us, nor to root, nor to the owner of `dir`. */
int subdir_open(const char *dir, const char *name);

#endif
