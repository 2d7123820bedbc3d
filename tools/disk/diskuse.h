/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diskuse: requests of disks in a selection: by disk, and by who asked (views block_stats,
 * block_devices).
 *
 *   1. A request counts for the disk that it was made to. Where that lies on another one (dm, md,
 *      loop), what it does there are requests of the other, too: of a row each byte counts once,
 *      and so it does in a sum over disks that lie on none.
 *   2. Without filters a disk has all its requests, also those of sonde and of no process; with
 *      filters those of the processes that they select.
 */
#ifndef SONDE_TOOLS_DISKUSE_H
#define SONDE_TOOLS_DISKUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/disk/disktimes.h"
#include "tools/select/select.h"

struct diskuse_sums {
	uint64_t reads, read_bytes, writes, write_bytes;
	uint64_t others; /* flushes, discards, ... */
	uint64_t errors, queue_us, device_us;
	uint64_t sequential; /* of reads and writes: those that began where the last one ended */
	struct disktimes read_times, write_times;
};

struct diskuse_disk {
	char *name;
	char *under; /* the disks that it lies on, with commas; "": none */
	struct diskuse_sums sums;
	uint64_t busy_us;
	int64_t in_flight, at; /* at the last reading, which was then; at 0: none */
};

struct diskuse_who {
	char *host, *container, *comm; /* comm "": no process was seen to ask, or several */
	char *disk;
	int64_t pid; /* 0: several, or none */
	bool many;
	struct diskuse_sums sums;
};

struct diskuse {
	struct diskuse_disk *disks; /* those on no other first, then by bytes */
	size_t n_disks;
	struct diskuse_who *who; /* by time */
	size_t n_who;
	double seconds; /* of the range that family disk was recorded in */
	bool known;     /* it was */
	bool ordered;   /* `sequential` was recorded */
};

enum diskuse_by { DISKUSE_BY_COMMAND, DISKUSE_BY_PROCESS, DISKUSE_BY_CONTAINER };
#define DISKUSE_BY_NAMES "command, process, container"
/* false: there is no such word. */
bool diskuse_by(const char *word, enum diskuse_by *by);

/* An empty one is no error. Release in any case. */
int diskuse_read(const struct selection *sel, enum diskuse_by by, struct diskuse *out,
		 struct err *e);
void diskuse_release(struct diskuse *u);
uint64_t diskuse_requests(const struct diskuse_sums *s);

#endif
