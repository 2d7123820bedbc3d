/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside: work that a second thread does while the first goes on. What it touches is its own until beside_end. Signals
 * stay the first thread's. Where no thread can be had, the work is done at once.
 */
#ifndef SONDE_BASE_BESIDE_H
#define SONDE_BASE_BESIDE_H

#include <pthread.h>
#include <stdbool.h>

struct beside {
	void (*work)(void *ctx);
	void *ctx;
	pthread_t thread;
	bool running;
};

void beside_begin(struct beside *b, void (*work)(void *ctx), void *ctx);
void beside_end(struct beside *b); /* the work is done */

#endif
