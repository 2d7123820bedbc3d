/* SPDX-License-Identifier: Apache-2.0 */
/* gate: so many questions at a time; others wait for a while. */
#ifndef SONDE_SERVE_GATE_H
#define SONDE_SERVE_GATE_H

#include <pthread.h>
#include <stdbool.h>

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t left;
	unsigned room; /* how many more may enter */
	bool closed;
};

void gate_init(struct gate *g, unsigned room);
void gate_release(struct gate *g);
/* False: after so many seconds there still was no room, or it was closed. */
bool gate_enter(struct gate *g, unsigned seconds);
void gate_leave(struct gate *g);
void gate_close(struct gate *g);

#endif
