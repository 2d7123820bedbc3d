/* SPDX-License-Identifier: Apache-2.0 */
/* beside: see the header. */
#include "schema/base/worker.h"

#include <signal.h>

static void *run(void *ctx)
{
	struct beside *b = ctx;

	b->work(b->ctx);
	return NULL;
}

void beside_begin(struct beside *b, void (*work)(void *ctx), void *ctx)
{
	sigset_t all, was;

	*b = (struct beside){.work = work, .ctx = ctx};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	b->running = !pthread_create(&b->thread, NULL, run, b);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (!b->running)
		work(ctx);
}

void beside_end(struct beside *b)
{
	if (b->running)
		pthread_join(b->thread, NULL);
	b->running = false;
}
