/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/script.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

static bool spend(struct runtime_budget *b, size_t shares)
{
	b->left = shares > b->left ? 0 : b->left - (uint32_t)shares;
	return b->left;
}

/* Within one line. Where it cannot be had whole (the end of what is mapped), these bytes alone. */
static bool line_read(struct runtime_budget *b, uint64_t addr, void *to, size_t len)
{
	uint64_t line = addr & ~(uint64_t)(SCRIPT_READ_BYTES - 1),
		 slot = line / SCRIPT_READ_BYTES % SCRIPT_KEPT;

	if (b->line[slot] != (line | 1)) {
		if (!spend(b, SCRIPT_READ_SHARE))
			return false;
		b->line[slot] = 0;
		if (!b->m->read(b->m->ctx, line, b->bytes[slot], SCRIPT_READ_BYTES))
			return b->m->read(b->m->ctx, addr, to, len);
		b->line[slot] = line | 1;
	}
	b->used[slot] = true;
	memcpy(to, b->bytes[slot] + (addr - line), len);
	return spend(b, 1);
}

static bool counted_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct runtime_budget *b = ctx;
	size_t first = SCRIPT_READ_BYTES - (size_t)(addr % SCRIPT_READ_BYTES);

	if (len > SCRIPT_READ_BYTES)
		return spend(b, SCRIPT_READ_SHARE * (1 + len / SCRIPT_READ_BYTES)) &&
		       b->m->read(b->m->ctx, addr, to, len);
	if (len <= first)
		return line_read(b, addr, to, len);
	return line_read(b, addr, to, first) &&
	       line_read(b, addr + first, (char *)to + first, len - first);
}

void runtime_budget_begin(struct runtime_budget *b, const struct runtime_memory *m)
{
	b->m = m;
	b->counted = (struct runtime_memory){.ctx = b, .read = counted_read};
	b->left = SCRIPT_READS_MAX * SCRIPT_READ_SHARE;
	runtime_budget_fresh(b);
}

void runtime_budget_fresh(struct runtime_budget *b)
{
	memset(b->line, 0, sizeof(b->line));
}

void runtime_budget_again(struct runtime_budget *b)
{
	uint64_t addr[SCRIPT_KEPT];
	void *to[SCRIPT_KEPT];
	size_t slots[SCRIPT_KEPT], n = 0;

	for (size_t i = 0; i < SCRIPT_KEPT; i++) {
		bool again =
			b->m->read_many && b->line[i] && b->used[i] && spend(b, SCRIPT_READ_SHARE);

		if (again) {
			addr[n] = b->line[i] & ~1ull;
			to[n] = b->bytes[i];
			slots[n++] = i;
		}
		b->line[i] = 0;
		b->used[i] = false;
	}
	if (n)
		b->m->read_many(b->m->ctx, addr, to, n, SCRIPT_READ_BYTES);
	for (size_t i = 0; i < n; i++)
		b->line[slots[i]] = addr[i] ? addr[i] | 1 : 0;
}

bool runtime_layout_take(void *layout, size_t layout_size, uint32_t format, const void *section,
			 size_t size)
{
	if (size != layout_size || memcmp(section, &format, sizeof(format)) != 0)
		return false;
	memcpy(layout, section, size);
	return true;
}

size_t script_text(const struct runtime_memory *m, uint64_t addr, uint64_t length,
		   char out[SCRIPT_TEXT_MAX + 4])
{
	size_t n = length < SCRIPT_TEXT_MAX ? (size_t)length : SCRIPT_TEXT_MAX;

	if (!m->read(m->ctx, addr, out, n)) {
		n = SCRIPT_TEXT_FIRST;
		if (n >= length || !m->read(m->ctx, addr, out, n))
			return 0;
	}
	memcpy(out + n, n < length ? "..." : "", n < length ? 4 : 1);
	return n;
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
