/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: work that a second thread does while the first goes on. Only the worker may touch its
 * data until worker_join. Signals go to the first thread. If no thread can be created, the work is
 * done at once.
 */
#ifndef SONDE_BASE_WORKER_H
#define SONDE_BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>

struct worker {
	void (*work)(void *ctx);
	void *ctx;
	pthread_t thread;
	bool running;
};

void worker_start(struct worker *b, void (*work)(void *ctx), void *ctx);
void worker_join(struct worker *b); /* the work is done */

#endif
