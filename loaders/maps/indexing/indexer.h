/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexer: gets the index of an image: opens its file, asks the cache, else runs sonde-index
 * (indexproto.h), at most INDEXER_CHILDREN at once, each for INDEXER_DEADLINE_NS at most, and keeps
 * what comes out. Answers the child's questions for debug files. Files of young processes are
 * opened early, before they are gone. What failed for reasons that are not the file's (sonde-index
 * was killed) is tried again after a pause, INDEXER_TRIES times in all.
 *
 * In this order, and within cpushare.h, but for 1:
 * 1. the rows of files that have samples (a client wants their index): at once; so are the symbols
 *    that somebody waits for at this moment (MP_WANT_NOW: a capture ends, sonde pstack);
 * 2. their symbols, and lines where those are quick; the smaller file first;
 * 3. the rows of all other files, those that most processes have first;
 * 4. lines and inlined functions of files that have samples, where they take longer (linejobs.h):
 *    then the image is told once more. `lines` false: none are read;
 * 5. the symbols of all other files, so that they have names although their container may be gone
 *    by the time of their first sample; when nothing else is to be done, and all of the share is
 *    saved.
 * A child that has made the rows waits, or is ended, where symbols are not due yet; the rows are
 * kept in memory until the whole index is there. What is beyond the share stands still (SIGSTOP):
 * that is no time that it takes.
 */
#ifndef SONDE_MAPS_INDEXER_H
#define SONDE_MAPS_INDEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/clock.h"
#include "schema/image/image.h"

struct cache;
struct exec_race;
struct hub;
struct mimage;
struct indexer;
struct proc;
struct world;

#define INDEXER_CHILDREN 4
#define INDEXER_PACED    2 /* of these, at most so many that work within the share */
/* without what it waited for a CPU; that at most INDEXER_STARVED_NS */
#define INDEXER_DEADLINE_NS (10 * NSEC_PER_SEC)
#define INDEXER_STARVED_NS  (120 * NSEC_PER_SEC)
#define INDEXER_TRIES       3
#define INDEXER_FDS_MAX     512
#define INDEXER_KEEP_NS     (10 * NSEC_PER_SEC) /* an early opened file */

/* program: path of sonde-index. early: borrowed, may be NULL. Descriptors of children are put into
 * epoll_fd with data.ptr for indexer_ready. */
struct indexer *indexer_new(struct world *w, struct hub *h, struct cache *c,
			    struct exec_race *early, int epoll_fd, const char *program, bool lines);
void indexer_free(struct indexer *ix); /* ends running children */
/* A new image was mapped by `p` at [start, end): open it now. */
void indexer_see(struct indexer *ix, struct mimage *img, struct proc *p, uint64_t start,
		 uint64_t end);
/* opening_born. */
uint64_t indexer_born(struct indexer *ix, const struct proc *p, const char *path, uint64_t ino,
		      uint64_t time_ns);
void indexer_want(struct indexer *ix, struct mimage *img, bool damaged);
/* Nobody asks for it yet: make it when there is nothing else to do. In the order of the calls. */
void indexer_ahead(struct indexer *ix, struct mimage *img);
/* Its index, read-only (the caller's) and its checksum found right, where its state is ready.
 * -errno: it went from the cache, or it was damaged, and is removed: the state is pending again, or
 * refused if it was damaged the second time. */
int indexer_open(struct indexer *ix, struct mimage *img);
/* The same of its rows alone (image_open_rows_fd); *out is the caller's. 0 or -errno. */
int indexer_open_rows(struct indexer *ix, struct mimage *img, struct image **out);
void indexer_drop(struct indexer *ix, struct mimage *img); /* it is going to be freed */
/* Tell what is known of the image's index (for a client that has just come). */
void indexer_tell(struct indexer *ix, struct mimage *img);
bool indexer_ready(struct indexer *ix, void *ptr);
/* Deadlines, and descriptors kept too long. */
void indexer_tick(struct indexer *ix, uint64_t now_ns);
bool indexer_busy(const struct indexer *ix);
/* What the children that run have used of the CPU so far. */
uint64_t indexer_cpu_ns(const struct indexer *ix);

#endif
