/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/stall.h"

#include <string.h>

#include "loaders/mem/amount.h"

void stall_note(struct stall_notes *notes, const struct mem_serves *s)
{
	notes->v[notes->n++ % STALL_NOTES] =
		(struct stall_note){.time_ns = s->ev.time_ns, .tag = s->tag, .tid = s->ev.tid};
}

uint64_t stall_tag_of(const struct stall_notes *notes, const struct stack_event *ev)
{
	for (size_t i = 0; i < STALL_NOTES; i++)
		if (notes->v[i].time_ns == ev->time_ns && notes->v[i].tid == ev->tid)
			return notes->v[i].tag;
	return 0;
}

void stall_store(const struct stall_notes *notes, struct family_host *h,
		 const struct stack_event *ev, struct naming_result *named)
{
	uint64_t n = MEM_STALL_N(ev->tag), ns = MEM_STALL_NS(ev->tag);
	const struct store_amount a = {.n = n, .value = ns, .max = n == 1 ? ns : 0};

	const uint64_t *frames = (const uint64_t *)(ev + 1);
	const uint16_t leading = amount_leading(h, ev, frames);
	struct stack_event trimmed = *ev;

	trimmed.n_kernel = (uint16_t)(ev->n_kernel - leading);
	amount_store(h, &trimmed, frames + leading, NULL, STORE_KIND_MEMWAIT, &a,
		     stall_tag_of(notes, ev), n, named);
}
