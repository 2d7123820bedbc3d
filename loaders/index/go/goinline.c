/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/goinline.h"

#include "schema/base/cursor.h"

#define STRIDE_2  20
#define STRIDE_20 16

size_t goinline_stride(const struct pclntab *t)
{
	return t->generation >= 20 ? STRIDE_20 : STRIDE_2;
}

uint64_t goinline_tree(const struct goinline *g, const struct pclntab *t,
		       const struct pclntab_record *r)
{
	uint64_t at;

	if (!pclntab_pcdata(t, r, g->pcdata) || !pclntab_funcdata(t, r, g->funcdata, &at))
		return 0;
	return g->base + at;
}

uint32_t goinline_count(const struct goinline *g, const struct pclntab *t,
			const struct pclntab_record *r, uint64_t size)
{
	struct gopc p = gopc_open(t, pclntab_pcdata(t, r, g->pcdata), size);
	int32_t most = -1;

	while (gopc_next(&p))
		if (p.value > most && p.value < GOINLINE_CALLS_MAX)
			most = p.value;
	return (uint32_t)(most + 1);
}

/* Names begin behind the NUL of the one before. */
static const char *name_of(const struct pclntab *t, uint32_t key)
{
	const char *name = pclntab_name(t, key);

	return name && t->names + key && !t->data[t->names + key - 1] ? name : NULL;
}

bool goinline_call(const struct goinline *g, const struct pclntab *t, uint64_t tree, uint64_t size,
		   int32_t i, struct goinline_call *out)
{
	struct cursor c = cursor_init(g->bytes, g->len);
	struct goinline_call call = {.by_pc = t->generation >= 20, .parent = -1};

	if (i < 0 || i >= GOINLINE_CALLS_MAX || tree < g->vaddr || tree - g->vaddr > g->len)
		return false;
	cursor_seek(&c, (size_t)(tree - g->vaddr));
	cursor_bytes(&c, (size_t)i * goinline_stride(t));
	if (call.by_pc) {
		cursor_u32(&c);
	} else {
		call.parent = (int16_t)cursor_u16(&c);
		cursor_u16(&c);
		call.file = (int32_t)cursor_u32(&c);
		call.line = (int32_t)cursor_u32(&c);
	}
	call.name_key = cursor_u32(&c);
	call.parent_pc = cursor_u32(&c);
	if (call.by_pc)
		cursor_u32(&c);
	call.name = c.bad || call.parent_pc >= size ? NULL : name_of(t, call.name_key);
	if (!call.name)
		return false;
	*out = call;
	return true;
}
