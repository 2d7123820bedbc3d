/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: tells live viewers whether something was written to the store. It knows only the folder's
 * name, not its contents: the kernel reports writes (inotify). Without viewers nothing is watched
 * and nothing wakes up. If the kernel reports nothing (no folder yet, no room for a watch),
 * something may have been written every STORE_WATCH_BLIND_S.
 */
#ifndef SONDE_SERVE_STORE_WATCH_H
#define SONDE_SERVE_STORE_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define STORE_WATCH_BLIND_S 5
#define STORE_WATCH_STEP_MS 1000 /* writes within one of these count as one change */

struct store_watch {
	const char *path; /* the store's folder or file; NULL: nothing to watch */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	int wake_fd; /* a viewer has come or gone */
	unsigned lookers;
	uint64_t changes;
	bool running, closed;
};

/* -errno: the thread could not be started; then no changes are ever reported. */
int store_watch_init(struct store_watch *w, const char *path);
void store_watch_release(struct store_watch *w);
/* Ends all waiting. */
void store_watch_close(struct store_watch *w);

/* A viewer, from store_watch_enter to store_watch_leave. */
void store_watch_enter(struct store_watch *w);
void store_watch_leave(struct store_watch *w);
enum store_watch_said { STORE_WATCH_CHANGED, STORE_WATCH_QUIET, STORE_WATCH_CLOSED };
/* Waits, at most this many seconds, until there are other changes than *seen, and sets it. */
enum store_watch_said store_watch_wait(struct store_watch *w, uint64_t *seen, unsigned seconds);

#endif
