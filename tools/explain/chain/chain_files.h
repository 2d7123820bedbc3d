/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_files: which file one waited for until it was on its disk, and who wrote or read most more
 * meanwhile, in two windows (views fsyncs and disk_files of family disk). What that family did not
 * record is not there.
 *
 * 1. What is written later counts for who changed the pages. Who only has them brought to the disk
 *    (sync, the kernel's threads) counts only where no one was seen to change them.
 * 2. A wait is behind what is moved on the same disk. Which one that is, the requests of the file
 *    say that was waited for, else those of all files of who waited.
 * 3. Files of requests have the host's path, a file that a container waited for has the
 * container's. Which is which, rows of places say (place_row); the same path is the same file only
 * where they do not say otherwise, and the container had the host's file of that path moved, too.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_FILES_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "schema/base/idmap.h"
#include "schema/base/strbuf.h"
#include "tools/select/select.h"

struct chain_file { /* of one process or container */
	char *who, *comm;
	bool container;
	char *file;
	size_t place; /* of that path of the host; of a wait in a container: not of its file */
	struct strbuf disks; /* of what was waited for, as in struct chain_place */
	double n[2];         /* calls that waited; of what was read and written: unused */
	double v[2];         /* us that they took; bytes */
	double read[2], dirty[2], written[2]; /* bytes */
};

struct chain_place {         /* a file, for all who use it */
	struct strbuf disks; /* of its requests: "\nsda\nsdb\n"; empty: not known */
	double dirty[2];     /* bytes */
	double moved[2];     /* bytes of requests of any process */
};

struct chain_files { /* {0}: nothing is known */
	struct chain_file *syncs, *moved;
	size_t n_syncs, cap_syncs, n_moved, cap_moved;
	struct chain_place *places;
	size_t n_places, cap_places;
	struct idmap sync_at, moved_at, place_at;
	double seconds[2]; /* of the windows, that family disk recorded; 0: it did not */
};

struct chain_behind {
	const struct chain_file *x; /* NULL: none. Borrowed */
	bool same_disk;             /* as what was waited for */
	double of_disk, of_others;  /* its part of what was moved there in the window; of_others:
				       without the files that only who waited used */
};

/* Release in any case. */
int chain_files_read(struct selection *const wide[2], struct chain_files *out, struct err *e);
void chain_files_release(struct chain_files *f);
/* The file for which one waited most longer, each second; where the time before was not recorded,
 * longest. NULL: none. Borrowed. */
const struct chain_file *chain_files_sync(const struct chain_files *f, const char *who,
					  bool container);
/* Of all others, the file of which most more was read and written each second, if there is one on
 * the disk of `sync`, there; `sync` may be NULL. None where the time before was not recorded. */
struct chain_behind chain_files_other(const struct chain_files *f, const char *who, bool container,
				      const struct chain_file *sync);

#endif
