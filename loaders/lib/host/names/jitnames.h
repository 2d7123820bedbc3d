/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitnames: the names that a process's runtime writes for the code it generates, in whichever file:
 * a jitdump if it has one (jitdump.h), else a perf map (perfmap.h).
 *
 * This opens and judges the files, and parses nothing of them: that is done by a process without
 * rights (jitreader.h). A file is opened in the process's root (its mount namespace, too), without
 * waiting; it must be a regular file (no link) of at most JITNAMES_FILE_MAX bytes, and belong to
 * the process's user or root.
 */
#ifndef SONDE_HOST_JITNAMES_H
#define SONDE_HOST_JITNAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define JITNAMES_FILE_MAX (1ull << 30)

struct hostmaps_process;
struct jitreader;
struct perfmap;

/* A file when it was opened: to see whether it has grown or was replaced. All 0: no file. */
struct jitnames_file {
	dev_t dev;
	ino_t ino;
	uint64_t size;
};
struct jitnames_stamp {
	struct jitnames_file dump, map;
};

struct jitnames_files {
	int dump, map;  /* descriptors; -1: none */
	int why;        /* why there is no map, -errno */
	uint32_t nspid; /* the process in its own pid namespace: a jitdump must say it, too */
	struct jitnames_stamp stamp;
};

/* What became of reading them. */
struct jitnames_told {
	int status;      /* 0, or as jitnames_read says */
	bool dump;       /* it was the jitdump */
	bool cut;        /* only the first PERFMAP_FILE_MAX bytes were read */
	uint64_t names;  /* entries taken */
	uint64_t cpu_ns; /* of the process that read it */
};

/* Of process `pid` (in our pid namespace), `nspid` in its own, running as `uid`. `dump_path`: where
 * its jitdump is (jitdump_path), NULL: it has none. -EALREADY: nothing has changed since `last`.
 * If neither can be read: -ENOENT no file, -EPERM owned by someone else, -ENOTSUP not a regular
 * file, -EFBIG too large, -errno of the system. */
int jitnames_open_of(uint32_t pid, uint32_t nspid, uid_t uid, const char *dump_path,
		     const struct jitnames_stamp *last, struct jitnames_files *out);
int jitnames_open(const struct hostmaps_process *p, const struct jitnames_stamp *last,
		  struct jitnames_files *out);
void jitnames_close(struct jitnames_files *f);

/* Opens, has it read, and waits for that. `told` is filled in any case. Also: -E2BIG more names
 * than one process may have, -EBADMSG not a jitdump, or another process's, -ECHILD the process that
 * read it was ended by its limits or broke, -ETIME it took too long. */
int jitnames_read(struct jitreader *r, const struct hostmaps_process *p, struct perfmap **out,
		  struct jitnames_told *told);

/* For people: why it was not read ("another user's file"), and what helps. */
const char *jitnames_reason(int status);
const char *jitnames_fix(int status);

#endif
