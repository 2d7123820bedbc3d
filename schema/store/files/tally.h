/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally: what a running writer has taken in, in a small file that survives it, so that the next
 * writer can count what it held when it was killed. Exactly once, in one transaction.
 *
 * writers/<pid>-<boot clock ns>.tally, TALLY_BYTES long, mapped, locked with flock while its
 * writer lives:
 *   1. `seen` of a run is raised by the producer for each event before it is held in memory.
 *      `offered` is what the run's programs have seen, as last told: also what waits in their
 *      ring, or before the store. 0: unknown. `besides` is raised with `seen` for losses
 *      of what they did not see, such as events that the kernel held back.
 *   2. run.accounted in the segment is raised within the transaction that stores events, or their
 *      loss.
 *   3. `segment` names the file in which run.accounted was last written; it is set before the
 *      first commit there, and the one before it is kept in `before` until that commit is through:
 *      the larger of the two holds. Retention spares both.
 *   4. A file whose lock can be taken belonged to a dead writer. seen - accounted is booked as
 *      loss of its run (reason "killed", or what `reason` says), accounted = seen, state = killed;
 *      where offered + besides is more than seen, that counts instead of it. Then the file is
 *      removed. A crash between the two finds a difference of 0.
 *   5. A run that was killed before its first commit has no row anywhere: it gets one in the
 *      current segment, whose name is put into `booked` before, so that a crash does not let the
 *      next one book it again elsewhere.
 * The file's blocks are allocated at the start: a full disk cannot make the mapping fail later.
 */
#ifndef SONDE_STORE_FILES_TALLY_H
#define SONDE_STORE_FILES_TALLY_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/base/err.h"
#include "schema/store/files/folder.h"

#define TALLY_BYTES 4096
#define TALLY_RUNS  40

struct tally_run {
	uint64_t token; /* 0: slot not used */
	uint64_t seen;
	int64_t from_ns, to_ns;
	uint64_t period_ns;
	uint32_t scope, bucket_s, cpus, state; /* state: as run.state */
	char family[24];
};

struct tally_data {
	char magic[8];    /* "sondetly" */
	uint32_t version; /* 1 */
	uint32_t pid;
	char segment[SEGMENT_NAME_MAX], before[SEGMENT_NAME_MAX]; /* file names */
	char booked[SEGMENT_NAME_MAX]; /* where runs without a row are booked; see 5 */
	char reason[16];               /* "": killed */
	struct tally_run run[TALLY_RUNS];
	uint64_t offered[TALLY_RUNS]; /* of run[i] */
	uint64_t besides[TALLY_RUNS]; /* of run[i].seen: losses of events that were not offered */
};
_Static_assert(sizeof(struct tally_data) <= TALLY_BYTES, "one page");

struct tally {
	int fd;
	struct tally_data *data; /* mapped */
	char path[PATH_MAX];
};

int tally_open(const char *dir, struct tally *t, struct err *e);
/* Before the first commit in another segment. */
void tally_segment(struct tally *t, const char *segment_path);
/* A commit there is through: the one before is not needed any more. */
void tally_settled(struct tally *t);
/* The store's folder has another path now. */
void tally_moved(struct tally *t, const char *dir);
/* The folder was removed, and the file with it: a new one takes over what the old one counted. What
 * the producer counts in that moment may be missing in it. 0 or -errno. */
int tally_again(const char *dir, struct tally *t, struct err *e);
/* All is accounted: remove the file. */
void tally_remove(struct tally *t);
/* Let go of it without removing: the next writer books the rest. */
void tally_abandon(struct tally *t, const char *reason);

/* Of a writer that has died and is not booked yet: what it had seen, and what of it the store has
 * or has on record as lost. Only reads. -ENOENT: there is no tally of that process. */
int tally_missing(const char *dir, pid_t pid, uint64_t *seen, uint64_t *accounted);

struct segment;
/* Lock held. Book what dead writers held; runs whose segment is gone go into `current`. */
void tally_recover(const char *dir, struct segment *current);

#endif
