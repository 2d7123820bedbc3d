/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diskrows: what else family disk recorded of a selection: single slow requests (view slow_blocks),
 * calls that wait for a disk by file (fsyncs), opens that failed by path (failed_opens). Processes
 * of one command and container are one row.
 */
#ifndef SONDE_TOOLS_DISKROWS_H
#define SONDE_TOOLS_DISKROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/disk/disktimes.h"
#include "tools/select/select.h"

struct diskrow {
	char *container, *comm; /* "": none, or not known */
	int64_t pid;            /* 0: several, or not known */
	bool many;
	char *text, *word;   /* slow: disk, op; fsyncs: file, call; opens: path, error */
	char *thread;        /* slow: who asked */
	char *stack;         /* slow: kernel functions in which that waited, innermost first, with
				blanks; "": not known */
	uint64_t n;          /* calls, opens; slow: bytes */
	uint64_t us;         /* fsyncs: summed; slow: queue and device together */
	uint64_t lasting_us; /* fsyncs: the longest of those that had not returned, 0: none */
	uint64_t device_us, errors;
	int64_t sector, at_us;  /* slow */
	struct disktimes times; /* fsyncs */
};

struct diskrows {
	struct diskrow *rows;
	size_t n;
	bool known; /* family disk was recorded in the range */
};

enum diskrows_what {
	DISKROWS_SLOW,  /* the slowest first */
	DISKROWS_SYNCS, /* by their time */
	DISKROWS_OPENS  /* by how many */
};
/* An empty one is no error. Release in any case. */
int diskrows_read(const struct selection *sel, enum diskrows_what what, struct diskrows *out,
		  struct err *e);
void diskrows_release(struct diskrows *r);

#endif
