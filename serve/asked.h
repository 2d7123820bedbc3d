/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked: requests in progress. A client that sends the same request as another one at the same
 * moment waits for that answer instead of starting another child: several live viewers cost as much
 * as one. An answer goes to those who asked before it was ready, and to no later ones.
 */
#ifndef SONDE_SERVE_ASKED_H
#define SONDE_SERVE_ASKED_H

#include <pthread.h>
#include <stdbool.h>

#include "schema/base/err.h"
#include "schema/base/limits/child.h"

struct asked_one;

struct asked {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct asked_one *first;
};

void asked_init(struct asked *a);
void asked_release(struct asked *a);

/* *own: the caller runs the request, and reports the result with asked_done; the others get it with
 * asked_wait. Call asked_leave at the end, in any case. */
struct asked_one *asked_enter(struct asked *a, const char *const *argv, bool *own);
/* rc, answer, e: as of child_ask; the caller keeps the descriptor. */
void asked_done(struct asked *a, struct asked_one *x, int rc, const struct child_answer *answer,
		const struct err *e);
/* The caller owns answer->out_fd. */
int asked_wait(struct asked *a, struct asked_one *x, struct child_answer *answer, struct err *e);
void asked_leave(struct asked *a, struct asked_one *x);

#endif
