/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diskrows: what else family disk recorded of a selection: single slow requests (view slow_blocks),
 * calls that wait for a disk by file (fsyncs), opens that failed by path (failed_opens), reads and
 * writes of files as programs felt them (file_calls), waits for locks of files (lock_waits).
 * Processes of one command and container are one row.
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
	char *text, *word; /* slow: disk, op; fsyncs, calls: file, call; opens: path, error; locks:
			      file, lock */
	char *thread;      /* slow: who asked; locks: who had it */
	char *stack;       /* slow: kernel functions in which that waited, innermost first, with
			      blanks; "": not known; calls, locks: the file's path as its
			      container sees it, "": the same, or not known */
	uint64_t n;        /* calls, opens, waits; slow: bytes */
	uint64_t us;       /* fsyncs: summed; slow: queue and device together */
	uint64_t lasting_us; /* fsyncs, locks: the longest of those that were not over, 0: none */
	uint64_t longest_us; /* locks */
	uint64_t bytes, disk_bytes; /* calls: moved; of reads: those that disks read meanwhile */
	uint64_t device_us, errors;
	int64_t sector;         /* slow; locks: the holder's pid, 0: several, or not known */
	int64_t at_us;          /* slow */
	struct disktimes times; /* fsyncs, calls */
};

struct diskrows {
	struct diskrow *rows;
	size_t n;
	bool known; /* family disk was recorded in the range */
};

enum diskrows_what {
	DISKROWS_SLOW,  /* the slowest first */
	DISKROWS_SYNCS, /* by their time */
	DISKROWS_OPENS, /* by how many */
	DISKROWS_CALLS, /* by their time */
	DISKROWS_LOCKS  /* by their time */
};
/* An empty one is no error. Release in any case. */
int diskrows_read(const struct selection *sel, enum diskrows_what what, struct diskrows *out,
		  struct err *e);
void diskrows_release(struct diskrows *r);

#endif
