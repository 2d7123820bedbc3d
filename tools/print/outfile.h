/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile: a file that is written whole or not at all. It is written under another name in the same
 * folder and renamed at the end, so that a full disk, a kill or an error leaves the old file. What
 * is not a regular file (a pipe, /dev/stdout, a link) is written directly.
 */
#ifndef SONDE_TOOLS_OUTFILE_H
#define SONDE_TOOLS_OUTFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"

struct outfile {
	FILE *f;
	char *path; /* where it will be; NULL: stdout */
	char *temp; /* where it is until then; NULL: written directly */
};

#define OUTFILE_INIT \
	{            \
		0    \
	}
#define cleanup_outfile __attribute__((cleanup(outfile_release)))

/* `path` NULL or "-": stdout. */
int outfile_open(struct outfile *o, const char *path, struct err *e);
/* Everything is written: put it into its place. `bytes` may be NULL. */
int outfile_commit(struct outfile *o, uint64_t *bytes, struct err *e);
/* What was not committed is removed. */
void outfile_release(struct outfile *o);

/* "x.db" -> ".x.db.PID.tmp" in the same folder; the caller's. */
char *outfile_temp_name(const char *path);
/* Does a file's name end so, in any case of letters, and have more before it? */
bool outfile_ends_with(const char *path, const char *end);

#endif
