/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localfs: file systems that always answer: those of this kernel, in memory or on a block device.
 * Opening a file there does not wait for a server (NFS, FUSE), nor for another file system below
 * (overlayfs).
 *
 * It knows those of our mount namespace, from /proc/self/mountinfo, and reads that again when a
 * mount appears or goes. Any other device counts as not local (btrfs gives its files another device
 * number).
 */
#ifndef SONDE_HOST_LOCALFS_H
#define SONDE_HOST_LOCALFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* `device`: st_dev of a file. May be called by any thread. */
bool localfs_has(dev_t device);
/* The device of one line of mountinfo, if its file system is local. */
bool localfs_line(const char *line, dev_t *device);

#endif
