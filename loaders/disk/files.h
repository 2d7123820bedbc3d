/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: which files disks read and wrote, who made their pages dirty, and by how much they grew:
 * rows of file_row, from the sums of an epoch that is over.
 *
 * 1. A file's path is that of the host: what the program in the kernel read up to the root of its
 *    file system, at the place where that is mounted. Of a file system that the host has not
 *    mounted (a container's tmpfs, a disk that only another mount namespace has) it is the device
 *    and the path below its root, "dm-4:/data/x" or "0:57:/x": no other file has the same.
 * 2. Of what was made dirty the file is looked at (statx): how many blocks it takes now, against
 *    the last look, or what the kernel's inode said before the first change. Preallocated and
 *    sparse files count what they take. What was grown without
 *    a dirty page (O_DIRECT, fallocate) is seen by calls (files_growth). A file that is gone has
 *    no size, nor one that a server or a process keeps (NFS, FUSE): it may not answer.
 * 3. Much is written under one name and then gets another one (rsync, package managers, databases).
 *    A file that grew and has its name no more is looked for in its folder, by its number.
 */
#ifndef SONDE_DISK_FILES_H
#define SONDE_DISK_FILES_H

#include <stdint.h>

#include "loaders/disk/devices.h"
#include "loaders/disk/filename.h"
#include "loaders/disk/hooks.h"
#include "loaders/disk/layers.h"
#include "loaders/disk/mounts.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/who.h"
#include "schema/base/idmap.h"

#define FILES_MOST  64   /* rows of an epoch with their file's name (drain_most) */
#define FILES_KNOWN 4096 /* files whose path and size are kept */
#define FILES_OTHER "~other"

/* Rule 3: folders of an epoch that are read, and entries of each. */
#define FILES_RENAMED 8
#define FILES_ENTRIES 4096

/* Of an epoch's files past its limit: how many are asked for their folder, and how many folders
 * have rows (both by drain_most). */
#define FILES_LOOKED  1024
#define FILES_FOLDERS 32

struct files_known;

struct files_id {
	uint64_t ino;
	uint32_t dev, pad;
};

struct files {                   /* {0}, and devices */
	struct devices *devices; /* borrowed */
	struct files_known *known;
	struct mounts mounts;
	struct layers layers;
	uint32_t round;
	uint32_t mounts_round; /* in which mounts were read last */
	uint32_t folders;      /* looked at in this one */
};

/* `epoch` and earlier ones; `utc_ns`: into which bucket their rows go. */
void files_drain(struct files *f, const struct hooks_files *maps, struct devices *d,
		 struct family_host *h, uint32_t epoch, int64_t utc_ns);
/* A request whose end the kernel did not report: a row of no file. */
void files_unseen(struct files *f, struct devices *d, struct family_host *h,
		  const struct disk_asked *a, int64_t utc_ns);
/* A process that sees the files of a container as `who` does, which may have ended; 0: it is in no
 * container, or none runs there. */
uint32_t files_viewer(struct family_host *h, const struct who *who);
/* The path of a file that process `pid` (0: of the host) used, as in rule 1, in an overlay that of
 * its layer. false: it is not known. */
bool files_path(struct files *f, uint64_t ino, uint32_t dev, uint32_t pid, int names_fd,
		char out[FILENAME_PATH]);
/* The same where no other file has that path. false: only the end of it is known. */
bool files_is_one(struct files *f, const struct files_id *id, uint32_t pid, int names_fd,
		  char out[FILENAME_PATH]);
struct files_folders { /* {0}; of one epoch. Release it. */
	struct idmap rows;
	size_t looked;
};

/* What a file past the limit counts as: "FOLDER/~other"; where that is not known, or there are too
 * many, "~other". `pid` as in files_path. */
void files_other(struct files *f, struct files_folders *o, const struct family_host *h,
		 const struct files_id *id, uint32_t pid, int names_fd, char out[FILENAME_PATH]);
/* By how many bytes a file that files_path named grew since the last look, or since it had
 * `blocks`; 0: not, or it cannot be seen. */
int64_t files_growth(struct files *f, const struct files_id *id, uint64_t blocks);
/* A row of file_row: process `who` made it grow without a dirty page. */
void files_grew(struct family_host *h, const struct who *who, const char *path, int64_t bytes,
		int64_t utc_ns);
/* Where the container of `who` sees that file, whose path files_path gave. false: nowhere, it is
 * not known, or `who` is in no container. */
bool files_seen(struct files *f, struct family_host *h, const struct files_id *id,
		const struct who *who, const char *path, char out[FILENAME_PATH]);
/* A row that says where the container of `who` sees that file, whose path files_path gave; none for
 * a process that is in no container. */
void files_place(struct files *f, struct family_host *h, const struct files_id *id,
		 const struct who *who, const char *path, int64_t utc_ns);
/* The next epoch's sums will be stored. */
void files_epoch(struct files *f);
/* The mounts, with that file system among them if it is mounted: they are read again where it was
 * not, once an epoch at most. Borrowed until the next call. */
const struct mounts *files_mounts(struct files *f, uint32_t dev);
/* About once a minute: mounts are read again, and files that are not used any more forgotten. */
void files_minute(struct files *f);
void files_release(struct files *f);

#endif
