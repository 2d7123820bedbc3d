/* SPDX-License-Identifier: Apache-2.0 */
/* usage: what a store's folder takes on its disk, and what the disk has left. */
#ifndef SONDE_STORE_FILES_USAGE_H
#define SONDE_STORE_FILES_USAGE_H

#include <stdint.h>

struct usage {
	uint64_t bytes;        /* of all files below the folder: blocks, as `du` counts them */
	uint64_t images_bytes; /* of those, images/ */
	uint64_t wal_bytes;    /* logs of segments */
	uint64_t free_bytes;   /* what an ordinary user may still write on that file system */
	uint64_t disk_bytes;   /* its size */
	uint32_t segments;
};

/* -errno: the folder cannot be read. */
int usage_measure(const char *dir, struct usage *out);
/* The same, but keeps images_bytes of `u`: does not look through the many files of images/. */
int usage_measure_again(const char *dir, struct usage *u);
/* Free and disk bytes alone: one system call. */
int usage_disk(const char *dir, struct usage *out);
/* Removes the least recently used files of images/ until it takes at most max_bytes. They are made
 * again when needed. */
uint64_t usage_trim_images(const char *dir, uint64_t max_bytes);

#endif
