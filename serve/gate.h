/* SPDX-License-Identifier: Apache-2.0 */
/* gate: limits the number of requests at a time; others wait for a while. */
#ifndef SONDE_SERVE_GATE_H
#define SONDE_SERVE_GATE_H

#include <pthread.h>
#include <stdbool.h>

#define GATE_WAIT_S 20 /* a request waits for room this long */

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t left;
	unsigned room; /* how many more may enter */
	bool closed;
};

void gate_init(struct gate *g, unsigned room);
void gate_release(struct gate *g);
/* False: there was no room within this many seconds, or the gate was closed. */
bool gate_enter(struct gate *g, unsigned seconds);
void gate_leave(struct gate *g);
void gate_close(struct gate *g);

#endif
