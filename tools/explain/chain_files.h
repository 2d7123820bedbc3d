/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_files: which file one waited for until it was on its disk, and who wrote or read most more
 * meanwhile, in two windows (views fsyncs and disk_files of family disk). What that family did not
 * record is not there.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_FILES_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

struct chain_file {
	char *who;
	bool container;
	char *file;
	double n[2]; /* calls that waited; of what was read and written: unused */
	double v[2]; /* us that they took; bytes */
};

struct chain_files { /* {0}: nothing is known */
	struct chain_file *syncs, *moved;
	size_t n_syncs, cap_syncs, n_moved, cap_moved;
	double seconds[2]; /* of the windows */
};

/* Release in any case. */
int chain_files_read(struct selection *const wide[2], struct chain_files *out, struct err *e);
void chain_files_release(struct chain_files *f);
/* The file for which one waited most longer, each second; NULL: none. Borrowed. */
const struct chain_file *chain_files_sync(const struct chain_files *f, const char *who,
					  bool container);
/* Of all others, the file of which most more was read and written each second; NULL: none. */
const struct chain_file *chain_files_other(const struct chain_files *f, const char *who,
					   bool container);

#endif
