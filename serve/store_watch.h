/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: whether something was written into the store, for those who look on live. It knows the folder's name and nothing of what is in it: the kernel
 * tells of writes (inotify). While nobody looks, nothing is watched and nothing wakes. Where the kernel tells nothing (no folder yet, no
 * room for a watch), something may have been written every WATCH_BLIND_S.
 */
#ifndef SONDE_SERVE_WATCH_H
#define SONDE_SERVE_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WATCH_BLIND_S 5
#define WATCH_STEP_MS 1000 /* what is written within one of these is one change */

struct watch {
	const char *path;      /* the store's folder or file; NULL: there is nothing to watch */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	int wake_fd;           /* who looks has come or gone */
	unsigned lookers;
	uint64_t changes;
	bool running, closed;
};

/* -errno: there is no thread; then all is as if nothing was ever written. */
int watch_init(struct watch *w, const char *path);
void watch_release(struct watch *w);
/* Ends the waiting of all. */
void watch_close(struct watch *w);

/* Who looks on, from watch_enter to watch_leave. */
void watch_enter(struct watch *w);
void watch_leave(struct watch *w);
enum watch_said { WATCH_CHANGED, WATCH_QUIET, WATCH_CLOSED };
/* Waits, at most so many seconds, until there are other changes than *seen, and sets it. */
enum watch_said watch_wait(struct watch *w, uint64_t *seen, unsigned seconds);

#endif
