/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linejobs: makes an index again, with lines, if the first run left them out because the file's
 * debug information is large. One child at a time, at the lowest priority, and only while there is
 * nothing else to index; it tries an image once, and a second time if the child was killed. If the
 * debug information cannot be read (damaged, or too slow), it makes an index that records this, so
 * that later captures do not try the same file again.
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
/* There is nothing else to do: start the next child, if none is running. */
void linejobs_next(struct linejobs *l);
bool linejobs_ready(struct linejobs *l, void *ptr);
uint64_t linejobs_cpu_ns(const struct linejobs *l); /* of the child that runs */
/* Stop or continue the running child by the share. */
void linejobs_pace(struct linejobs *l, struct cpushare *share);
bool linejobs_busy(const struct linejobs *l);
void linejobs_tick(struct linejobs *l, uint64_t now_ns);

#endif
