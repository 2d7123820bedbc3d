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

void chunks_place(const struct chunks_loop *loop, const struct runtime_native *n,
		  const uint32_t *chunk, size_t frames, uint32_t chunks, bool cut, size_t *at)
{
	size_t loops[SCRIPT_STACK_MAX + 1], count = 0;

	for (size_t k = 0; k < n->n && count <= SCRIPT_STACK_MAX; k++)
		if (in_loop(loop, n->pc[k]))
			loops[count++] = k;
	for (size_t i = 0; i < frames; i++) {
		if (n->complete && !cut && count && count != chunks)
			at[i] = loops[count - 1];
		else
			at[i] = chunk[i] < count ? loops[chunk[i]] : n->n;
	}
}
