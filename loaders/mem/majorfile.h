/* SPDX-License-Identifier: Apache-2.0 */
/*
 * majorfile: the name of what a page fault read (major.h), by the kernel's two accounts of it.
 * Pure.
 */
#ifndef SONDE_MEM_MAJORFILE_H
#define SONDE_MEM_MAJORFILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/mem.h"

#define MAJOR_PATH_LEN 200 /* of a longer one the end is kept */
#define MAJOR_SWAP     "[swap]"

/* What is mapped at this address, by the bytes of /proc/PID/maps: [*start, *end), and its name as
 * above. False: nothing is, or the bytes are no such file. */
bool major_named(const char *maps, size_t len, uint64_t address, uint64_t *start, uint64_t *end,
		 char name[MAJOR_PATH_LEN + 1]);
/* The path that the kernel said, which begins with ".../" where it was cut off. */
void major_path(const struct mem_file *f, char name[MAJOR_PATH_LEN + 1]);
/* Is this path's file the one that the kernel said? */
bool major_is(const struct mem_file *f, const char *path);

#endif
