/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ownfolder: a folder that this user keeps for itself, such as /run/sonde/java: made where it is
 * not there, and refused where another user owns it or may write to it.
 */
#ifndef SONDE_HOST_OWNFOLDER_H
#define SONDE_HOST_OWNFOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes it, and the one that it is in, if need be; *out: its descriptor, which the caller closes.
 * -EPERM: it is not this user's alone. -errno. */
int ownfolder_open(const char *path, int *out);
/* Is the open file of this type (S_IFREG, S_IFDIR), still there, this user's, and written by no
 * other? */
bool ownfolder_is_ours(int fd, mode_t type);

#endif
