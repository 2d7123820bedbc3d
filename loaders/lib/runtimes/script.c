/* SPDX-License-Identifier: Apache-2.0 */
/* script: see the header. */
#include "loaders/lib/runtimes/script.h"

#include <stdlib.h>

#include "schema/base/mem.h"

static bool counted_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct runtime_budget *b = ctx;
	size_t cost = 1 + len / SCRIPT_READ_BYTES;

	b->left = cost > b->left ? 0 : b->left - (uint32_t)cost;
	return b->left && b->m->read(b->m->ctx, addr, to, len);
}

void runtime_budget_begin(struct runtime_budget *b, const struct runtime_memory *m)
{
	*b = (struct runtime_budget){.m = m, .counted = {.ctx = b, .read = counted_read}, .left = SCRIPT_READS_MAX};
}

void script_place_release(struct script_place *p)
{
	free(p->function);
	free(p->file);
	*p = (struct script_place){0};
}

struct script_frame *script_stack_add(struct script_stack *s, size_t at)
{
	mem_grow(s->frames, s->n, s->cap);
	s->frames[s->n] = (struct script_frame){.at = at};
	return &s->frames[s->n++];
}

void script_stack_release(struct script_stack *s)
{
	for (size_t i = 0; i < s->n; i++)
		script_place_release(&s->frames[i].place);
	free(s->frames);
	*s = (struct script_stack){0};
}
