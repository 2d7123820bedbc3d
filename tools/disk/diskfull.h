/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diskfull: which file systems fill, when they will be full, and which files grew on them (views
 * filesystem_stats of family host, disk_files of family disk, fill_stats of family host); and
 * deleted files that programs have open (held_files).
 *
 *   1. By how much less is left: between the first and the last reading of the range. At that rate
 *      it is full in left / rate; nothing is said of one that did not get fuller, or of two
 *      readings less than DISKFULL_LEAST_S apart.
 *   2. A file counts for the file system with the longest mount point that its path begins with.
 *      Its growth is what family disk saw of it; where that was not recorded, files and folders
 * that family host found to be written to lately are listed (`written`), without their writers.
 *   3. Deleted files are those of the last look in the range.
 */
#ifndef SONDE_TOOLS_DISKFULL_H
#define SONDE_TOOLS_DISKFULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

#define DISKFULL_LEAST_S 10
#define DISKFULL_BY      5 /* growers of each */

struct diskfull_by {
	char *file;
	char *comm, *container; /* "": not known; none */
	int64_t pid;            /* 0: several, or not known */
	int64_t bytes;          /* grown; `written`: written to lately */
	bool written;
};

struct diskfull_mount {
	char *mount;
	int64_t first_ts, last_ts; /* of the readings, s since 1970 */
	int64_t size, first_left, left, inodes, inodes_left;
	uint64_t deleted; /* bytes that deleted files take which programs have open (rule 3) */
	double full_s;    /* so long until it is full; < 0: not known */
	struct diskfull_by by[DISKFULL_BY];
	size_t n_by;
};

struct diskfull {
	struct diskfull_mount *mounts; /* the soonest full first, then the fullest */
	size_t n, cap;
	bool known; /* family host was recorded in the range */
};

struct diskheld {
	char *file, *mount, *comm, *container;
	int64_t pid, ino;
	int64_t ts; /* of the look */
	uint64_t bytes, holders;
};

struct diskhelds {
	struct diskheld *rows; /* the largest first */
	size_t n, cap;
	uint64_t bytes; /* of all */
	bool known;     /* family disk was recorded in the range */
};

/* An empty one is no error. Release in any case. */
int diskfull_read(const struct selection *sel, struct diskfull *out, struct err *e);
void diskfull_release(struct diskfull *f);
int diskhelds_read(const struct selection *sel, struct diskhelds *out, struct err *e);
void diskhelds_release(struct diskhelds *h);

#endif
