/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/chunks.h"

static bool in_loop(const struct chunks_loop *loop, uint64_t pc)
{
	uint64_t at = pc - loop->bias;

	for (unsigned i = 0; i < loop->ranges && loop->end[i]; i++)
		if (at >= loop->start[i] && at < loop->end[i])
			return true;
	return false;
}

bool chunks_in_loop(const struct chunks_loop *loop, const struct runtime_native *n)
{
	for (size_t k = 0; k < n->n; k++)
		if (in_loop(loop, n->pc[k]))
			return true;
	return false;
}

bool chunks_add(struct chunks *c)
{
	c->full = c->n == SCRIPT_STACK_MAX;
	if (!c->full)
		c->of[c->n++] = c->count;
	return !c->full;
}

void chunks_close(struct chunks *c)
{
	c->count++;
	c->closed = c->n;
}

void chunks_end(struct chunks *c, bool whole)
{
	if (!c->full && !whole)
		c->n = c->closed;
}

void chunks_place(const struct chunks *c, const struct chunks_loop *loop,
		  const struct runtime_native *n, size_t at[SCRIPT_STACK_MAX])
{
	size_t loops[SCRIPT_STACK_MAX + 1], count = 0;

	for (size_t k = 0; k < n->n && count <= SCRIPT_STACK_MAX; k++)
		if (in_loop(loop, n->pc[k]))
			loops[count++] = k;
	for (size_t i = 0; i < c->n; i++) {
		if (n->complete && !c->full && count && count != c->count)
			at[i] = loops[count - 1];
		else
			at[i] = c->of[i] < count ? loops[c->of[i]] : n->n;
	}
}
