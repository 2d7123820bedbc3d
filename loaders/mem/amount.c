/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/amount.h"

#include <errno.h>

#include "loaders/lib/host/maps/inflight.h"
#include "loaders/lib/host/names/naming.h"

#define TRIES 3 /* the store may ask for new ids once or twice */

static int put(struct family_host *h, const struct stack_event *ev, const uint64_t *frames,
	       enum store_kind kind, const struct store_amount *a, struct naming_result *named,
	       uint32_t *series)
{
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid = ev->tid;

	naming_stack(h->naming, ev, frames, named);
	naming_thread(named, ev->thread, thread, &tid);
	if (h->bucket_s >= FAMILY_ALWAYS_S && tid != ev->tgid)
		tid = 0;
	*series = store_series(h->store, h->run, named->process, thread, tid, named->stack, kind);
	return store_amount(h->store, *series, family_utc(h, (int64_t)ev->time_ns), a);
}

void amount_store(struct family_host *h, const struct stack_event *ev, const uint64_t *frames,
		  enum store_kind kind, const struct store_amount *a, uint64_t tag, uint64_t events,
		  struct naming_result *named)
{
	uint32_t series = 0;
	int err = -ESTALE;

	for (int i = 0; i < TRIES && err == -ESTALE; i++)
		err = put(h, ev, frames, kind, a, named, &series);
	*(err ? &h->refused : &h->added) += events;
	if (!err)
		(void)inflight_store(h->store, h->run, family_utc(h, (int64_t)ev->time_ns), tag,
				     series, a->n, a->value);
}
