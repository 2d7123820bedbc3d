/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/lines/lineset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/image/format.h"

void lineset_init(struct lineset *s, const struct elf_range *code, size_t code_count)
{
	*s = (struct lineset){.code = code,
			      .code_count = code_count,
			      .base = code_count ? code[0].start : 0,
			      .node_count = 1};
}

void lineset_release(struct lineset *s)
{
	strtab_release(&s->files);
	strtab_release(&s->names);
	free(s->rows);
	free(s->sequences);
	free(s->nodes);
	free(s->ranges);
	*s = (struct lineset){0};
}

int lineset_status(const struct lineset *s)
{
	return s->status;
}

bool lineset_empty(const struct lineset *s)
{
	return !s->sequence_count && !s->range_count;
}

static void fail(struct lineset *s, int rc)
{
	if (!s->status)
		s->status = rc;
}

/* Room for one more element of `size` bytes. */
static bool room(struct lineset *s, void *array, size_t count, size_t *cap, size_t size, size_t max)
{
	size_t want = *cap ? *cap * 2 : 1024;
	void *p;

	if (s->status)
		return false;
	if (count < *cap)
		return true;
	if (count >= max) {
		fail(s, -ENOSPC);
		return false;
	}
	memcpy(&p, array, sizeof(p));
	p = realloc(p, want * size);
	if (!p) {
		fail(s, -ENOMEM);
		return false;
	}
	memcpy(array, &p, sizeof(p));
	*cap = want;
	return true;
}

/* The code range that holds `addr`; NULL: none, or it is too far from the first one. */
static const struct elf_range *code_at(const struct lineset *s, uint64_t addr)
{
	size_t lo = 0, hi = s->code_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->code[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr >= s->code[lo - 1].end || s->code[lo - 1].end - s->base > UINT32_MAX)
		return NULL;
	return &s->code[lo - 1];
}

bool lineset_wants(const struct lineset *s, uint64_t addr)
{
	return code_at(s, addr) != NULL;
}

/* ---- names ---- */

static uint32_t intern(struct lineset *s, struct strtab *t, const char *str, size_t len)
{
	uint32_t offset = 0;
	int rc = s->status ? s->status : strtab_add(t, str, len, &offset);

	if (rc)
		fail(s, rc);
	return rc ? 0 : offset;
}

uint32_t lineset_file(struct lineset *s, const char *name)
{
	return intern(s, &s->files, name, strnlen(name, IMAGE_NAME_MAX));
}

uint32_t lineset_name(struct lineset *s, const char *name, bool mangled)
{
	char marked[IMAGE_NAME_MAX + 2];
	size_t len = strnlen(name, IMAGE_NAME_MAX);

	marked[0] = mangled ? 'm' : 'p';
	memcpy(marked + 1, name, len);
	return intern(s, &s->names, marked, len + 1);
}

/* ---- rows ---- */

void lineset_row(struct lineset *s, uint64_t addr, uint32_t file, uint32_t line, uint32_t column)
{
	const bool first = s->row_count == s->open_first;
	struct lineset_row_record *r;

	/* what begins outside of the code is of a function that the linker dropped: nothing of it
	 * counts */
	s->dead |= first && !code_at(s, addr);
	if (s->dead || addr < s->base || addr - s->base > UINT32_MAX ||
	    (!first && addr - s->base < s->rows[s->row_count - 1].addr))
		return;
	if (!room(s, &s->rows, s->row_count, &s->row_cap, sizeof(*s->rows), LINESET_ROWS_MAX))
		return;
	r = &s->rows[s->row_count];
	if (!first && r[-1].addr == addr - s->base)
		r--;
	else
		s->row_count++;
	*r = (struct lineset_row_record){.addr = (uint32_t)(addr - s->base),
					 .file = file,
					 .line = line,
					 .column = column <= UINT16_MAX ? (uint16_t)column : 0};
}

void lineset_end(struct lineset *s, uint64_t end)
{
	const size_t count = s->row_count - s->open_first;
	const struct elf_range *code;
	uint64_t lo;

	s->dead = false;
	if (!count)
		return;
	lo = s->rows[s->open_first].addr;
	code = code_at(s, s->base + lo);
	if (code && end > code->end)
		end = code->end;
	if (!code || end < s->base || end - s->base <= lo ||
	    !room(s, &s->sequences, s->sequence_count, &s->sequence_cap, sizeof(*s->sequences),
		  LINESET_ROWS_MAX)) {
		s->row_count = s->open_first;
		return;
	}
	s->sequences[s->sequence_count++] =
		(struct lineset_sequence){.lo = (uint32_t)lo,
					  .hi = (uint32_t)(end - s->base),
					  .first = (uint32_t)s->open_first,
					  .count = (uint32_t)count};
	s->open_first = s->row_count;
}

void lineset_abandon(struct lineset *s)
{
	s->row_count = s->open_first;
	s->dead = false;
}

/* ---- inlined functions ---- */

uint32_t lineset_inline(struct lineset *s, const struct lineset_call *call)
{
	const uint32_t parent = call->parent < s->node_count ? call->parent : 0;
	const unsigned depth = parent ? s->nodes[parent].depth + 1u : 1;

	if (depth > IMAGE_INLINE_DEPTH_MAX)
		return parent;
	if (!room(s, &s->nodes, s->node_count, &s->node_cap, sizeof(*s->nodes), LINESET_NODES_MAX))
		return 0;
	s->nodes[s->node_count] = (struct lineset_node){
		.parent = parent,
		.name = call->name,
		.file = call->file,
		.line = call->line,
		.depth = (uint16_t)depth,
		.column = call->column <= UINT16_MAX ? (uint16_t)call->column : 0};
	return (uint32_t)s->node_count++;
}

void lineset_range(struct lineset *s, uint32_t node, uint64_t lo, uint64_t hi)
{
	const struct elf_range *code = lo < hi ? code_at(s, lo) : NULL;

	if (!code || node >= s->node_count ||
	    !room(s, &s->ranges, s->range_count, &s->range_cap, sizeof(*s->ranges),
		  LINESET_RANGES_MAX))
		return;
	if (hi > code->end)
		hi = code->end;
	s->ranges[s->range_count] =
		(struct lineset_range_record){.lo = (uint32_t)(lo - s->base),
					      .hi = (uint32_t)(hi - s->base),
					      .node = node,
					      .order = (uint32_t)s->range_count};
	s->range_count++;
}
