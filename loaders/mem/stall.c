/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/stall.h"

#include <string.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/mem/amount.h"
#include "schema/base/array.h"

#define LEADING_MAX 12

void stall_note(struct stall_notes *notes, const struct mem_serves *s)
{
	notes->v[notes->n++ % STALL_NOTES] =
		(struct stall_note){.time_ns = s->ev.time_ns, .tag = s->tag, .tid = s->ev.tid};
}

static uint64_t tag_of(const struct stall_notes *notes, const struct stack_event *ev)
{
	for (size_t i = 0; i < STALL_NOTES; i++)
		if (notes->v[i].time_ns == ev->time_ns && notes->v[i].tid == ev->tid)
			return notes->v[i].tag;
	return 0;
}

/* The leading kernel frames that each such stack has: the program that took it, what called that,
 * and the scheduler's own. */
static uint16_t frames_leading(struct family_host *h, const struct stack_event *ev,
			       const uint64_t *frames)
{
	static const char *const own[] = {"bpf_", "__bpf_", "__traceiter_", "__schedule",
					  "schedule"};
	struct kallsyms *k;
	struct kallsyms_symbol sym;
	uint16_t n = 0;

	naming_kernel_begin(h->naming);
	k = naming_kallsyms(h->naming);
	for (; k && n < ev->n_kernel && n < LEADING_MAX; n++) {
		bool mine = false;

		if (kallsyms_find(k, frames[n] - 1, &sym))
			for (size_t i = 0; i < ARRAY_SIZE(own); i++)
				mine |= !strncmp(sym.name, own[i], strlen(own[i]));
		else /* a BPF program's code, or what leads there */
			mine = !kallsyms_is_text(k, frames[n] - 1);
		if (!mine)
			break;
	}
	return n;
}

void stall_store(const struct stall_notes *notes, struct family_host *h,
		 const struct stack_event *ev, struct naming_result *named)
{
	uint64_t n = MEM_STALL_N(ev->tag), ns = MEM_STALL_NS(ev->tag);
	const struct store_amount a = {.n = n, .value = ns, .max = n == 1 ? ns : 0};

	const uint64_t *frames = (const uint64_t *)(ev + 1);
	const uint16_t leading = frames_leading(h, ev, frames);
	struct stack_event trimmed = *ev;

	trimmed.n_kernel = (uint16_t)(ev->n_kernel - leading);
	amount_store(h, &trimmed, frames + leading, STORE_KIND_MEMWAIT, &a, tag_of(notes, ev), n,
		     named);
}
