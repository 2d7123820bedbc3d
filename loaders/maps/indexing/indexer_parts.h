/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_parts: indexer as its own files see it: indexer.c has what is asked for and told,
 * indexer_files.c the files and what the cache knows, indexer_jobs.c the runs of sonde-index. */
#ifndef SONDE_MAPS_INDEXER_PARTS_H
#define SONDE_MAPS_INDEXER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/budget/cpushare.h"
#include "loaders/lib/host/maps/indexchild.h"
#include "loaders/maps/indexing/indexer.h"
#include "loaders/maps/indexing/linejobs.h"
#include "loaders/maps/indexing/opening.h"

struct stat;

struct job {
	struct indexchild child;
	struct mimage *image; /* NULL: it was dropped meanwhile */
	uint64_t deadline_ns;
	uint64_t starved_ns; /* the part of it that the child waited for a CPU */
	bool paced; /* within the share; else it makes the rows of a file that has samples */
};

struct indexer {
	struct world *world;
	struct hub *hub;
	struct cache *cache;
	int epoll_fd;
	char *program;
	struct job jobs[INDEXER_CHILDREN];
	struct mimage *queue, **queue_tail;
	struct mimage *ahead, **ahead_tail; /* nobody asked for these yet */
	struct mimage *again, **again_tail; /* each at its time */
	struct mimage *rest,
		**rest_tail; /* these have rows, and nobody asked for their symbols yet */
	struct cpushare share;
	size_t kept_fds;
	uint64_t memory_bytes;
	struct opening opening;
	struct linejobs *lines; /* NULL: lines are not wanted */
	uint64_t looked_ns;     /* for descriptors kept too long */
};

/* ---- indexer_files.c ---- */

/* What was opened early. */
void indexer_drop_fds(struct indexer *ix, struct mimage *img);
void indexer_drop_memory(struct indexer *ix, struct mimage *img);
void indexer_set_refused(struct mimage *img, const char *reason);
/* What the cache says of an open file. True: the image's state is settled. */
bool indexer_settle(struct indexer *ix, struct mimage *img, const struct stat *st, int root_fd);
/* Keeps rows without symbols in memory (`fd` is taken) and takes them for the image's. false: there
 * is no room. */
bool indexer_adopt_rows(struct indexer *ix, struct mimage *img, const char *key, int fd);
/* Keeps an index (`fd` is taken) and takes it for the image's. -ENOSPC: there is no room for it. */
int indexer_adopt(struct indexer *ix, struct mimage *img, const char *key, int fd,
		  const struct stat *st);

/* ---- indexer.c ---- */

/* It will have no index, and why; told. */
void indexer_refuse(struct indexer *ix, struct mimage *img, const char *reason);
void indexer_enqueue(struct mimage ***tail, struct mimage *img);
void indexer_dequeue(struct mimage **head, struct mimage ***tail, const struct mimage *img);

/* ---- indexer_jobs.c ---- */

/* As many as there is room for. */
void indexer_start_next(struct indexer *ix);
/* Symbols of a file that nobody asked for; only where nothing else is to be done. */
void indexer_start_rest(struct indexer *ix);
/* The share is theirs, or they stand still. */
void indexer_jobs_pace(struct indexer *ix);
/* The child has made the rows: they are taken, and it goes on or ends. */
void indexer_job_rows(struct indexer *ix, struct job *j);
/* What somebody waits for is not left to the idle time of a busy host; a small file is a matter of
 * milliseconds. */
void indexer_hurry(struct indexer *ix, const struct mimage *img);
void indexer_job_clear(struct job *j);
/* Its time is over. What it waited for a CPU is added to the deadline: on a busy host that is most
 * of it. */
bool indexer_job_late(struct job *j, uint64_t now_ns);
void indexer_job_end(struct indexer *ix, struct job *j, bool late);
/* For linejobs: the same file's index, now with lines, takes the place of the one that was told. */
void indexer_lines_made(void *ctx, struct mimage *img, const char *key, int fd,
			const struct stat *st);

#endif
