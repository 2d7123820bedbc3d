/* SPDX-License-Identifier: Apache-2.0 */
/* usage: what a store's folder takes on its disk, and what the disk has left. */
#ifndef SONDE_STORE_FILES_USAGE_H
#define SONDE_STORE_FILES_USAGE_H

#include <stdint.h>

struct usage {
	uint64_t
		bytes; /* of all files below the folder, as `du` counts them: blocks, not lengths */
	uint64_t images_bytes; /* of those, images/ */
	uint64_t wal_bytes;    /* logs of segments */
	uint64_t free_bytes;   /* what an ordinary user may still write on that file system */
	uint64_t disk_bytes;   /* its size */
	uint32_t segments;
};

/* -errno: the folder cannot be read. */
int usage_measure(const char *dir, struct usage *out);
/* The same, but images_bytes is taken to be what `u` says it was: images/, with its many files, is
 * not looked through. */
int usage_measure_again(const char *dir, struct usage *u);
/* Free and disk bytes alone: one system call. */
int usage_disk(const char *dir, struct usage *out);
/* Remove the least recently used of images/ until it takes at most max_bytes. What is removed is
 * made again when needed. */
uint64_t usage_trim_images(const char *dir, uint64_t max_bytes);

#endif
