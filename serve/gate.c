/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/gate.h"

#include <errno.h>
#include <time.h>

void gate_init(struct gate *g, unsigned room)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&g->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->left, &attr);
	pthread_condattr_destroy(&attr);
	g->room = room;
	g->closed = false;
}

void gate_release(struct gate *g)
{
	pthread_cond_destroy(&g->left);
	pthread_mutex_destroy(&g->lock);
}

bool gate_enter(struct gate *g, unsigned seconds)
{
	struct timespec until;
	bool in;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&g->lock);
	while (!g->room && !g->closed)
		if (pthread_cond_timedwait(&g->left, &g->lock, &until) == ETIMEDOUT)
			break;
	in = g->room && !g->closed;
	g->room -= in;
	pthread_mutex_unlock(&g->lock);
	return in;
}

void gate_leave(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->room++;
	pthread_cond_signal(&g->left);
	pthread_mutex_unlock(&g->lock);
}

void gate_close(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->closed = true;
	pthread_cond_broadcast(&g->left);
	pthread_mutex_unlock(&g->lock);
}
