/* SPDX-License-Identifier: Apache-2.0 */
/* filename: the path that a program in the kernel read of a file, part by part. Pure. */
#ifndef SONDE_DISK_FILENAME_H
#define SONDE_DISK_FILENAME_H

#include <stdbool.h>
#include <stddef.h>

#define FILENAME_PATH 512 /* longer ones are cut in front */

/*
 * `names`: n parts of `size` bytes each: the file's own name, its folder's and so on; one that
 * begins with "/", or is empty, ends them. A part that fills its place was cut, and says so:
 * "/var/lib/a-name-that-is-too-lo.../x". Does the path begin at the root of the file system, and is
 * all of it there? Else it begins with "...", or has one in it.
 */
bool filename_join(const char *names, size_t n, size_t size, char out[FILENAME_PATH]);
/* `path` of `len` bytes, with its end where there is no room for all of it. */
void filename_cut(const char *path, size_t len, char out[FILENAME_PATH]);
/* Is that the end of the path? */
bool filename_ends(const char *path, const char *name, size_t size);

#endif
