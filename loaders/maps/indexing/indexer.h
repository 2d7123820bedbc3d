/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexer: gets the index of an image: opens its file, looks in the cache, else runs sonde-index
 * (indexproto.h), at most INDEXER_CHILDREN at once, each for INDEXER_DEADLINE_NS at most, and keeps
 * the result. Finds the debug files that the child asks for. Opens files of young processes early,
 * before they are gone. If sonde-index fails for a reason that is not in the file (it was killed),
 * the indexer tries again after a pause, INDEXER_TRIES times in all.
 *
 * Work is done in this order; all but 1 counts against the share of the CPU (cpushare.h):
 * 1. the rows of files that have samples (a client wants their index), at once; also the symbols
 *    that a client is waiting for now (MP_WANT_NOW: a capture ends, sonde pstack);
 * 2. their symbols, and lines where those are quick; in both what serves most samples for its size
 *    comes first;
 * 3. the rows of all other files, of small ones the symbols too; those that most processes map
 *    first;
 * 4. lines and inlined functions of files that have samples, if they take longer (linejobs.h); the
 *    clients then get the image's index again. Not with `lines` false;
 * 5. the symbols of all other files, so that they have names even if their container is gone by the
 *    time of their first sample; only when there is nothing else to do and the whole share is saved
 *    up.
 * A child that has made the rows waits, or is ended, if its symbols are not due yet; the rows stay
 * in memory until the complete index exists. A child beyond the share is stopped (SIGSTOP); the
 * time that it is stopped does not count against its deadline.
 */
#ifndef SONDE_MAPS_INDEXER_H
#define SONDE_MAPS_INDEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/clock.h"
#include "schema/image/image.h"

struct cache;
struct exec_race;
struct file_id;
struct hub;
struct mimage;
struct indexer;
struct proc;
struct world;

#define INDEXER_CHILDREN 4
#define INDEXER_QUICK    2 /* more, for small files that are wanted at once */
#define INDEXER_PACED    2 /* at most this many of them within the share */
/* not counting the time it waits for a CPU, INDEXER_STARVED_NS at most */
#define INDEXER_DEADLINE_NS (10 * NSEC_PER_SEC)
#define INDEXER_STARVED_NS  (120 * NSEC_PER_SEC)
#define INDEXER_TRIES       3
#define INDEXER_FDS_MAX     512
#define INDEXER_KEEP_NS     (10 * NSEC_PER_SEC) /* for a file that was opened early */

/* program: path of sonde-index. early: borrowed, may be NULL. Descriptors of children are put into
 * epoll_fd with data.ptr for indexer_ready. */
struct indexer *indexer_new(struct world *w, struct hub *h, struct cache *c,
			    struct exec_race *early, int epoll_fd, const char *program, bool lines);
void indexer_free(struct indexer *ix); /* ends running children */
/* `p` has mapped a new image at [start, end): open its file now. */
void indexer_see(struct indexer *ix, struct mimage *img, struct proc *p, uint64_t start,
		 uint64_t end);
/* See opening_born. */
uint64_t indexer_born(struct indexer *ix, const struct proc *p, const char *path,
		      const struct file_id *f, uint64_t time_ns);
void indexer_want(struct indexer *ix, struct mimage *img, bool damaged);
/* No client wants it yet: make it when there is nothing else to do, in the order of these calls. */
void indexer_ahead(struct indexer *ix, struct mimage *img);
/* The index of a ready image, read-only (the caller closes it), after a check of its checksum.
 * -errno: it is missing in the cache, or it was damaged and has been removed: the image is pending
 * again, or refused if this is the second damaged index. */
int indexer_open(struct indexer *ix, struct mimage *img);
/* The same for the rows alone (image_open_rows_fd); the caller closes *out. 0 or -errno. */
int indexer_open_rows(struct indexer *ix, struct mimage *img, struct image **out);
void indexer_drop(struct indexer *ix, struct mimage *img); /* the world is about to free it */
/* Send the state of the image's index (to a client that has just connected). */
void indexer_tell(struct indexer *ix, struct mimage *img);
bool indexer_ready(struct indexer *ix, void *ptr);
/* Check deadlines, and close descriptors that were kept too long. */
void indexer_tick(struct indexer *ix, uint64_t now_ns);
bool indexer_busy(const struct indexer *ix);
/* CPU time of the running children so far. */
uint64_t indexer_cpu_ns(const struct indexer *ix);

#endif
