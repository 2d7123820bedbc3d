/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linejobs: indexes made once more, with lines, where the first one left them out because the
 * file's debug information is large. One child at a time, at the lowest priority, and only while
 * nothing else is to be indexed; an image is tried once, and once more if it was killed. Where
 * reading the debug information fails (it is damaged, or too slow), an index is made that says so,
 * so that nobody tries again with the same file.
 */
#ifndef SONDE_MAPS_LINEJOBS_H
#define SONDE_MAPS_LINEJOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "schema/base/clock.h"

struct cpushare;
struct linejobs;
struct mimage;
struct opening;

/* of waiting; its CPU time is limited by itself */
#define LINEJOBS_DEADLINE_NS (600 * NSEC_PER_SEC)
#define LINEJOBS_PAUSE_NS    (5 * NSEC_PER_SEC) /* after one was killed */
#define LINEJOBS_NICE        19

/* `made`: the image's new index (fd is the callee's), its key, and whose file it is of (NULL: not
 * known). */
struct linejobs *linejobs_new(int epoll_fd, const char *program, struct opening *opening,
			      void (*made)(void *ctx, struct mimage *img, const char *key, int fd,
					   const struct stat *st),
			      void *ctx);
void linejobs_free(struct linejobs *l); /* ends a running child */
/* Its index (ready) left lines out. A second call for an image does nothing. */
void linejobs_add(struct linejobs *l, struct mimage *img);
void linejobs_drop(struct linejobs *l, struct mimage *img); /* it is going to be freed */
/* Nothing else is to be done: begin with the next one, if none runs. */
void linejobs_next(struct linejobs *l);
bool linejobs_ready(struct linejobs *l, void *ptr);
uint64_t linejobs_cpu_ns(const struct linejobs *l); /* of the child that runs */
/* The child that runs has the share, or stands still. */
void linejobs_pace(struct linejobs *l, struct cpushare *share);
bool linejobs_busy(const struct linejobs *l);
void linejobs_tick(struct linejobs *l, uint64_t now_ns);

#endif
