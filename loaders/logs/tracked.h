/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracked: the log files that the reader reads, and who writes them.
 *
 *   1. A file that is there in the first round is read from its present end on, one that comes
 *      later from its begin.
 *   2. A file is read by its descriptor: when it is renamed, removed, or its container is, what was
 *      written into it up to then counts. It is closed when nothing more came for TRACKED_OLD_NS;
 *      one that is found under its new name stays open, so that it is not read twice.
 *   3. If several files were made between two looks, those that were renamed (PATH.1, PATH.2, ...)
 *      and are not known are read, too, the oldest first; also if the path was not there before.
 *      If the file that was read is not there any more, some may be missing: that is a cut, as a
 *      truncation is. Of such a file that was compressed meanwhile (PATH.1.gz) what is in it is
 *      read, if it was written last since the look before (packed/packed.h): what is older was
 * read. The oldest one is the file that was read if that is gone and was as large.
 *   4. TRACKED_FILES at most; what is left out is said.
 *   5. Where an engine of a user other than root keeps logs, only files of that user are read, and
 *      a container that root's engine has is never that user's.
 *   6. A file at which the reader ended twice is not read any more.
 */
#ifndef SONDE_LOGS_TRACKED_H
#define SONDE_LOGS_TRACKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "loaders/logs/places.h"
#include "loaders/logs/pulse.h"
#include "loaders/logs/reader.h"

#define TRACKED_FILES  900
#define TRACKED_OLD_NS 5000000000ll

struct tracked_pattern {
	char *text, *sample;
	/* of the store's bucket that it was last seen in, with a ring, where there are several rows
	 * of it (rows.c) */
	int64_t bucket, first_ns, last_ns;
	uint32_t level;
};

struct tracked_source {
	uint32_t id;
	const char *kind; /* static, as struct place has it */
	char *name;       /* for people */
	char container[72];
	uint32_t uid;  /* as in struct place */
	char *cgroup;  /* of its container; NULL: not met yet */
	bool covered;  /* by the capture's target */
	bool excluded; /* by the rules */
	bool named;
	uint32_t tries;
	int64_t named_ns;
	int64_t used_ns; /* when it had a file, or lines came; 0: not noted yet */
	struct pulse pulse;
	struct tracked_pattern *patterns; /* of the reader that runs */
	uint32_t n_patterns;
	uint64_t cuts; /* rotations too fast to follow, not stored yet */
	UT_hash_handle hh;
};

struct tracked_file {
	uint32_t id, source;
	enum log_form form;
	int fd;
	dev_t dev;
	ino_t ino;
	char *path;  /* where it was found; NULL: it is old */
	bool listed; /* in this round */
	bool follows_links, packed;
	bool from_end;  /* it was to be read from its end on, and no place of it was said yet */
	int64_t old_ns; /* since when; 0: it is not */
	int64_t size, grew_ns;
	uint64_t offset, index; /* up to there it is in a sum */
	uint32_t ended;         /* readers that ended while they read it */
	UT_hash_handle hh;
};

struct tracked {
	struct reader *reader;
	struct tracked_file *files;     /* by id */
	struct tracked_source *sources; /* by id */
	uint32_t last_file, last_source;
	bool begun, told_full;
	int64_t look_ns, before_ns; /* UTC: when this look began, and the one before */
	bool grows;                 /* some file grows fast: look again soon */
};

void tracked_release(struct tracked *t);
/* A round: tracked_begin, tracked_found for each place, tracked_end. `wanted` false: the source is
 * not read (now). */
void tracked_begin(struct tracked *t);
void tracked_found(struct tracked *t, const struct place *x, int64_t now_ns,
		   bool (*wanted)(void *ctx, struct tracked_source *s), void *ctx);
void tracked_end(struct tracked *t, int64_t now_ns);
/* The reader was started (again): it gets all files, from where they are in a sum. */
void tracked_open_all(struct tracked *t);
/* It ended while it read this file; 0: it read none. */
void tracked_ended(struct tracked *t, uint32_t file);
void tracked_place(struct tracked *t, const struct wire_said *x);
struct tracked_source *tracked_source(struct tracked *t, uint32_t id);
/* A source that the reader found in a journal. */
struct tracked_source *tracked_own(struct tracked *t, uint32_t id, const char *name,
				   const char *container);
void tracked_pattern(struct tracked_source *s, uint32_t n, const char *text, const char *sample);

#endif
