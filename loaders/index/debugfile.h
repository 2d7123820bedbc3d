/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugfile: the separate debug file of an ELF file: by build-id, which must be the same, then by
 * .gnu_debuglink, whose CRC must match; and the file that dwz shares among several of them
 * (.gnu_debugaltlink), by the build-id in that section. The finder opens them; this file checks
 * that they are the right ones.
 */
#ifndef SONDE_INDEX_DEBUGFILE_H
#define SONDE_INDEX_DEBUGFILE_H

#include <stdbool.h>

#include "loaders/index/elf/elffile.h"
#include "loaders/index/indexer.h"

struct debugfile {
	bool looked; /* it was looked for */
	bool found;
	int fd; /* own; of elf, where found */
	struct elf_file elf;
};

#define DEBUGFILE_INIT   \
	{                \
		.fd = -1 \
	}

/* Looks for it the first time it is asked; `d->found` says whether it is there. -errno: only of
 * reading `f` itself. */
int debugfile_find(struct debugfile *d, struct elf_file *f, const struct index_finder *finder);
/* The shared file that `f` (a file with debug sections) names. The same. */
int debugfile_find_alt(struct debugfile *d, struct elf_file *f, const struct index_finder *finder);
void debugfile_release(struct debugfile *d);

#endif
