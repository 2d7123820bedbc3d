/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/stall.h"

#include <errno.h>

#include "loaders/lib/host/names/naming.h"
#include "schema/store/write/writer.h"

#define TRIES 3

static int put(struct family_host *h, const struct stack_event *ev, struct naming_result *named)
{
	uint64_t n = MEM_STALL_N(ev->tag), ns = MEM_STALL_NS(ev->tag);
	const struct store_amount a = {.n = n, .value = ns, .max = n == 1 ? ns : 0};
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid = ev->tid, series;

	naming_stack(h->naming, ev, (const uint64_t *)(ev + 1), named);
	naming_thread(named, ev->thread, thread, &tid);
	if (h->bucket_s >= FAMILY_ALWAYS_S && tid != ev->tgid)
		tid = 0;
	series = store_series(h->store, h->run, named->process, thread, tid, named->stack,
			      STORE_KIND_MEMWAIT);
	return store_amount(h->store, series, family_utc(h, (int64_t)ev->time_ns), &a);
}

void stall_store(struct family_host *h, const struct stack_event *ev, struct naming_result *named)
{
	int err = -ESTALE;

	for (int i = 0; i < TRIES && err == -ESTALE; i++)
		err = put(h, ev, named);
	if (err)
		h->refused++;
	else
		h->added++;
}
