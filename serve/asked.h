/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked: questions that are under way. Who asks what somebody else is asking at this moment waits
 * for that answer instead of starting a child of its own: several who look on live cost as one. An
 * answer is given to those who came before it was there, and to nobody later.
 */
#ifndef SONDE_SERVE_ASKED_H
#define SONDE_SERVE_ASKED_H

#include <pthread.h>
#include <stdbool.h>

#include "schema/base/err.h"
#include "serve/child.h"

struct asked_one;

struct asked {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct asked_one *first;
};

void asked_init(struct asked *a);
void asked_release(struct asked *a);

/* *own: the caller asks it, and says with asked_done what came of it; else asked_wait has that. In
 * the end asked_leave, in any case. */
struct asked_one *asked_enter(struct asked *a, const char *const *argv, bool *own);
/* rc, answer, e: as of child_ask; the descriptor stays the caller's. */
void asked_done(struct asked *a, struct asked_one *x, int rc, const struct child_answer *answer,
		const struct err *e);
/* answer->out_fd is the caller's. */
int asked_wait(struct asked *a, struct asked_one *x, struct child_answer *answer, struct err *e);
void asked_leave(struct asked *a, struct asked_one *x);

#endif
