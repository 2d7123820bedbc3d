/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fillers: what fills a file system: the files and folders that were written to lately, and deleted
 * files that programs still have open. Told as events of kind "fills" when
 *   1. less than a fifth of it is left, or
 *   2. a tenth of it, or 4 GiB, were used up since it was looked at last, or
 *   3. a fiftieth of it, or 512 MiB, and that was an hour ago,
 * but of one file system at most each FILLERS_EVERY_NS, and of one at a time.
 *
 * Rows of fill_row have the same with sums of the last hour, 6 hours, day and week, of each the
 * largest. A container's file has the container's path: its layer is found by the mounts of its
 * processes, and so is the disk on which a deleted file of an overlay lies.
 *
 * A child looks, at idle priority for the disk and lowest priority for the CPU: it may hang, and is
 * killed FILLERS_WAIT_NS later. It does system calls and nothing else, since it is forked of a
 * program with threads. It stays on the file system, follows no link, opens no file, and reads the
 * sizes of at most FILLERS_ENTRIES files in at most FILLERS_WALK_NS; the events say if it saw only
 * a part. Sizes are blocks on the disk: a sparse file fills nothing.
 */
#ifndef SONDE_HOST_FAMILY_FILLERS_H
#define SONDE_HOST_FAMILY_FILLERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/lib/bpf/family.h"

#define FILLERS_EVERY_NS (600000000000ll)
#define FILLERS_WAIT_NS  (30000000000ll)
#define FILLERS_WALK_NS  (8000000000ll)
#define FILLERS_ENTRIES  200000u
#define FILLERS_HOUR_NS  (3600000000000ll)
#define FILLERS_LEAST    (4ull << 20) /* bytes of a file to report */
#define FILLERS_FELL     (4ull << 30)
#define FILLERS_FELL_3   (512ull << 20)
#define FILLERS_TOLD     3  /* of each kind */
#define FILLERS_LAYERS   64 /* containers whose layers are known */

/* Files that were written to within an hour, 6 hours, a day, a week. */
enum { FILLERS_1H, FILLERS_6H, FILLERS_1D, FILLERS_7D, FILLERS_SPANS };

struct fillers_one {
	uint64_t bytes;                 /* on the disk */
	uint64_t lately[FILLERS_SPANS]; /* of those */
	uint64_t ino;                   /* of a deleted file */
	uint32_t pid;   /* that has it open; else of a process of the container whose it is, 0: of
			   none */
	bool inside;    /* the path is the container's */
	char path[300]; /* else as on the host, below the mount; cut in front if it is longer */
};
struct fillers_list {
	struct fillers_one one[FILLERS_TOLD]; /* largest first */
	uint32_t n;
};
/* What the child found: by span, and deleted files by size. */
struct fillers_found {
	struct fillers_list files[FILLERS_SPANS], folders[FILLERS_SPANS], deleted;
	uint32_t seen;
	bool whole; /* it saw all */
};

/* Of one file system. */
struct fillers_of {
	int64_t looked_ns;  /* 0: never */
	uint64_t available; /* bytes, at that time, or at the first reading */
	bool known;
};

struct fillers {
	bool off;
	pid_t child, ending; /* 0: none; ending: it was killed, or has told all */
	int fd;
	int64_t until_ns;
	char *point; /* of the file system that is looked at */
};

void fillers_init(struct fillers *f);
void fillers_release(struct fillers *f);
/* A reading of the file system mounted at `point`: begins to look if that is due. */
void fillers_reading(struct fillers *f, struct fillers_of *of, const char *point, uint64_t size,
		     uint64_t available, int64_t now_ns);
/* Pure: rules 1 to 3, and whether that is due now. */
bool fillers_due(const struct fillers_of *of, uint64_t size, uint64_t available, int64_t now_ns);
/* Tells what has been found. True: a child is still looking. */
bool fillers_poll(struct fillers *f, struct family_host *h, int64_t now_ns);
/* What the child does, for tests: the folder at `root`, which is /proc/1/root and a mount, or a
 * mount, and, of its file system, what the processes below `proc` have open. */
void fillers_look(const char *root, const char *proc, int64_t now_s, struct fillers_found *out);

#endif
