/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/worker.h"

#include <signal.h>

static void *run(void *ctx)
{
	struct worker *b = ctx;

	b->work(b->ctx);
	return NULL;
}

void worker_start(struct worker *b, void (*work)(void *ctx), void *ctx)
{
	sigset_t all, was;

	*b = (struct worker){.work = work, .ctx = ctx};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	b->running = !pthread_create(&b->thread, NULL, run, b);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (!b->running)
		work(ctx);
}

void worker_join(struct worker *b)
{
	if (b->running)
		pthread_join(b->thread, NULL);
	b->running = false;
}
