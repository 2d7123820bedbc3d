/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/unwind/unwind.h"

#include <errno.h>
#include <string.h>

#include "probes/lib/unwind.h"

_Static_assert((int)UNWIND_ROWS_NO_FILE == TABLES_IMAGE_FREE &&
		       (int)UNWIND_ROWS_PENDING == TABLES_IMAGE_PENDING &&
		       (int)UNWIND_ROWS_READY == TABLES_IMAGE_READY &&
		       (int)UNWIND_ROWS_REFUSED == TABLES_IMAGE_REFUSED,
	       "same numbers");

struct walk {
	const struct unwind_from *from;
	struct unwind_where here;
	uint64_t *frames;
};

static int unwind_place(struct unwind *u, __u64 at)
{
	struct walk *w = u->ctx;
	const struct unwind_section *rows = &w->here.rows;

	if (!w->from->where(w->from->ctx, at, &w->here)) {
		u->map_start = u->map_end = 0;
		return 0;
	}
	u->map_start = w->here.start;
	u->map_end = w->here.end;
	u->map_file = w->here.to_file;
	u->map_row = w->here.to_vaddr - rows->text_base;
	u->map_state = rows->elements || w->here.state != UNWIND_ROWS_READY ? (__u32)w->here.state :
									      TABLES_IMAGE_REFUSED;
	u->map_image = w->here.image;
	u->page_first = 0;
	u->page_count = rows->page_count;
	u->rule_first = u->page_count;
	u->ext_first = u->rule_first + rows->rule_count;
	u->ext_count = rows->ext_count;
	u->row_first = u->ext_first + 2 * u->ext_count;
	u->row_count = rows->row_count;
	return 1;
}

static __u64 unwind_element(struct unwind *u, __u32 i)
{
	struct walk *w = u->ctx;

	return i < u->row_first + (u->row_count + 1) / 2 ? w->here.rows.elements[i] : 0;
}

static __u32 unwind_number(struct unwind *u, __u32 pc)
{
	__u64 page = unwind_element(u, u->page_first + (pc >> TABLES_PAGE_SHIFT));

#define ELEMENT(i) unwind_element(u, u->row_first + (i))
	return UNWIND_SEARCH(ELEMENT, ROW_PAGE_FIRST(page), ROW_PAGE_COUNT(page),
			     pc & ((1u << TABLES_PAGE_SHIFT) - 1), ROW_PAGE_NUMBER(page));
}

static __u64 unwind_rule_at(struct unwind *u, __u64 pc)
{
	return unwind_search(u, pc);
}

static int unwind_read(struct unwind *u, __u64 addr, __u64 *value)
{
	struct walk *w = u->ctx;
	uint64_t word;

	if (!w->from->read(w->from->ctx, addr, &word))
		return -1;
	*value = word;
	return 0;
}

static void unwind_emit(struct unwind *u, __u64 frame)
{
	struct walk *w = u->ctx;

	if (w->from->sp)
		w->from->sp[u->n] = u->sp;
	w->frames[u->n++] = frame;
}

int unwind_section_open(struct unwind_section *s, const void *data, size_t size)
{
	struct unwind_head head;
	uint64_t elements;

	if (size < sizeof(head) || ((uintptr_t)data & 7))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	elements = (uint64_t)head.page_count + head.rule_count + 2 * (uint64_t)head.ext_count +
		   ((uint64_t)head.row_count + 1) / 2;
	if (head.version != TABLES_VERSION || elements > (size - sizeof(head)) / 8 ||
	    elements > UINT32_MAX)
		return -EBADMSG;
	*s = (struct unwind_section){.elements = (const uint64_t *)data + sizeof(head) / 8,
				     .text_base = head.text_base,
				     .page_count = head.page_count,
				     .rule_count = head.rule_count,
				     .ext_count = head.ext_count,
				     .row_count = head.row_count};
	return 0;
}

/* In code that `from->code` knows. */
static enum unwind_code_step code_step(struct walk *w, struct unwind *u, size_t max)
{
	struct unwind_code c = {.pc = u->pc,
				.sp = u->sp,
				.bp = u->bp,
				.interrupted = u->exact && u->regs_known,
				.frames = w->frames,
				.n = u->n,
				.max = max};
	enum unwind_code_step step;

	for (int i = 0; i < ROW_REG_N; i++)
		c.reg[i] = u->regs[i];
	step = w->from->code ? w->from->code(w->from->ctx, &c) : UNWIND_CODE_UNKNOWN;
	if (step == UNWIND_CODE_UNKNOWN)
		return step;
	u->n = (__u32)c.n;
	u->end = c.end;
	u->bx_how = ROW_BX_LOST;
	if (step == UNWIND_CODE_GOES_ON)
		unwind_move(u, c.pc, c.sp, c.bp);
	return step;
}

size_t unwind_stack(const struct unwind_from *from, const struct unwind_regs *regs,
		    uint64_t *frames, size_t max, enum stack_end *end)
{
	struct walk w = {.from = from, .frames = frames};
	struct unwind u = {.pc = regs->pc,
			   .fs_base = regs->fs_base,
			   .exact = regs->exact,
			   .regs_known = 1,
			   .bx_how = ROW_BX_SAME,
			   .ctx = &w};

	for (int i = 0; i < ROW_REG_N; i++)
		u.regs[i] = regs->reg[i];
	u.sp = regs->reg[ROW_REG_RSP];
	u.bp = regs->reg[ROW_REG_RBP];
	*end = STACK_END_DEPTH;
	while (u.n < max) {
		enum unwind_code_step step = code_step(&w, &u, max);

		if (step == UNWIND_CODE_GOES_ON)
			continue;
		if (step == UNWIND_CODE_ENDS || !unwind_step(&u)) {
			*end = (enum stack_end)u.end;
			break;
		}
	}
	if (from->guessed)
		*from->guessed += u.guessed;
	return u.n;
}

struct late {
	const struct stack_late *l;
	const struct unwind_from *from;
	bool short_copy;
};

static bool late_where(void *ctx, uint64_t addr, struct unwind_where *out)
{
	const struct unwind_from *from = ((struct late *)ctx)->from;

	return from->where(from->ctx, addr, out);
}

static bool late_read(void *ctx, uint64_t addr, uint64_t *value)
{
	struct late *late = ctx;
	uint64_t at = addr - late->l->regs[ROW_REG_RSP];

	if (at >= late->l->size || late->l->size - at < sizeof(*value)) {
		late->short_copy = true;
		return false;
	}
	memcpy(value, late->l->stack + at, sizeof(*value));
	return true;
}

static enum unwind_code_step late_code(void *ctx, struct unwind_code *c)
{
	const struct unwind_from *from = ((struct late *)ctx)->from;

	return from->code ? from->code(from->ctx, c) : UNWIND_CODE_UNKNOWN;
}

int unwind_late(const struct stack_late *l, const struct unwind_from *from, uint64_t *frames,
		size_t max, size_t *n, enum stack_end *end)
{
	struct late late = {.l = l, .from = from};
	struct unwind_from copied = {
		.ctx = &late, .where = late_where, .read = late_read, .code = late_code};
	struct unwind_regs regs = {.pc = l->pc, .fs_base = l->fs_base, .exact = l->exact};

	if (l->size > STACK_LATE_ALL || l->ev.n_kernel > STACK_KERNEL_MAX)
		return -EBADMSG;
	memcpy(regs.reg, l->regs, sizeof(regs.reg));
	*n = unwind_stack(&copied, &regs, frames, max, end);
	if (*end == STACK_END_STACK_READ && late.short_copy && l->size)
		*end = STACK_END_SHORT_COPY;
	return 0;
}
