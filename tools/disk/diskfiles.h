/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diskfiles: files that disks read and wrote in a selection, by who did that (view disk_files).
 *
 *   1. What a thread of the kernel wrote of a file counts for who made its pages dirty in that
 *      range and did not write them himself, in proportion to that amount and never more than it
 *      (`later_bytes`). The rest keeps a row by itself: it was made dirty before, or by the kernel.
 *   2. A file whose disk lies on another one (a loop device that does not copy, dm) is seen on
 *      both: what it is on the lower one is left out, so no byte counts twice. The file behind a
 *      loop device is another file.
 *   3. Processes of one command and container are one row of a file.
 */
#ifndef SONDE_TOOLS_DISKFILES_H
#define SONDE_TOOLS_DISKFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

struct diskfile {
	char *file; /* a path, "/dev/NAME", as in diskother.h, or "": pages of no file */
	char *disk; /* that answered; "": none, it was made dirty only */
	char *comm, *container;    /* "": not known; none */
	char *seen;                /* the path as the container sees it; "": the same */
	int64_t pid;               /* 0: several, or not known */
	bool many, kernel, wanted; /* wanted: the selection has it */
	uint64_t reads, read_bytes, writes, write_bytes; /* that it asked for itself */
	uint64_t later_bytes;                            /* rule 1 */
	uint64_t dirty_bytes;
	int64_t grown_bytes; /* by how much more it takes on the disk; negative: less */
};

struct diskfiles {
	struct diskfile *rows; /* by what was read and written; those past the limit last */
	size_t n;
	bool known; /* family disk was recorded in the range */
};

/* An empty one is no error. Release in any case. */
int diskfiles_read(const struct selection *sel, struct diskfiles *out, struct err *e);
void diskfiles_release(struct diskfiles *f);

#endif
