/* SPDX-License-Identifier: Apache-2.0 */
/* late: a stack waits for the rows it needs, at most for its patience, and is never lost. This file
 * has a fake hostmaps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/late/late.h"
#include "loaders/lib/host/unwind/unwind.h"
#include "probes/lib/tables.h"
#include "tests/unit/test.h"

/* ---- one file of 4 KiB at 0x1000: a leaf at 0, a function with two words of locals at 0x100, a
 * root at 0x200 ---- */

static const uint64_t elements[] = {
	/* pages of 512 bytes: the rule they begin with, how many rows, and the first */
	ROW_PAGE(0, 1, 0),
	ROW_PAGE(2, 0, 1),
	/* rules */
	ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAME, 0, 1),
	ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAME, 0, 3),
	ROW_MAKE_SPECIAL(ROW_ROOT, 0),
	/* rows */
	ROW_MAKE(0x100, 1),
};

static enum unwind_rows_state rows_state;
static bool seeded, known;
static uint64_t watermark;
static bool awaited;
static unsigned wheres;
static struct hostmaps_process process = {.tgid = 5, .start_ns = 50, .exec_id = 1};

bool hostmaps_seeded(const struct hostmaps *hm)
{
	(void)hm;
	return seeded;
}

uint64_t hostmaps_watermark(const struct hostmaps *hm)
{
	(void)hm;
	return watermark;
}

bool hostmaps_awaits(const struct hostmaps *hm, uint64_t pending)
{
	(void)hm;
	assert_int_equal(pending, 77);
	return awaited;
}

struct hostmaps_process *hostmaps_process(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns,
					  uint32_t exec_id)
{
	(void)hm;
	return known && tgid == 5 && start_ns == 50 && exec_id == 1 ? &process : NULL;
}

bool hostmaps_where(struct hostmaps *hm, struct hostmaps_process *p, uint64_t addr,
		    uint64_t time_ns, struct unwind_where *out, uint64_t *pending)
{
	(void)hm;
	(void)p;
	wheres++;
	assert_true(time_ns >= 100);
	if (addr < 0x1000 || addr >= 0x2000)
		return false;
	*out = (struct unwind_where){.start = 0x1000,
				     .end = 0x2000,
				     .to_file = -0x1000ull,
				     .to_vaddr = -0x1000ull,
				     .state = rows_state};
	if (rows_state == UNWIND_ROWS_PENDING)
		*pending = 77;
	if (rows_state == UNWIND_ROWS_READY)
		out->rows = (struct unwind_section){
			.elements = elements, .page_count = 2, .rule_count = 3, .row_count = 1};
	return true;
}

/* ---- what came out ---- */

static struct late queue;
static struct late_event got[8];
static size_t n_got;

static void take(void *ctx, const struct stack_event *ev, size_t size)
{
	(void)ctx;
	assert_int_equal(size, sizeof(*ev) + (ev->n_kernel + ev->n_user) * sizeof(uint64_t));
	memcpy(&got[n_got++], ev, size);
}

static int set_up(void **state)
{
	(void)state;
	late_init(&queue, 1 << 20);
	rows_state = UNWIND_ROWS_PENDING;
	seeded = known = true;
	watermark = 1000;
	awaited = true;
	wheres = 0;
	n_got = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	late_release(&queue);
	return 0;
}

/* Interrupted in the leaf, below one kernel frame; the function called the leaf, the root called
 * the function. */
static struct stack_late *late_record(uint64_t time_ns)
{
	static struct stack_late l;
	const uint64_t stack[] = {0x1150, 1, 2, 0x1210, 3};

	l = (struct stack_late){.ev = {.time_ns = time_ns,
				       .tgid = 5,
				       .start_ns = 50,
				       .exec_id = 1,
				       .n_kernel = 1,
				       .flags = STACK_F_LATE,
				       .end = STACK_END_NO_PROCESS},
				.kernel = {0xffffffff81000000},
				.regs = {[7] = 0x7000},
				.pc = 0x1020,
				.exact = 1,
				.size = sizeof(stack)};
	memcpy(l.stack, stack, sizeof(stack));
	return &l;
}

static size_t drain(uint64_t now, bool all)
{
	n_got = 0;
	late_drain(&queue, NULL, now, 2000, all, take, NULL);
	return n_got;
}

static void assert_whole(const struct late_event *e)
{
	assert_int_equal(e->ev.end, STACK_END_ROOT);
	assert_int_equal(e->ev.flags & STACK_F_LATE, 0);
	assert_int_equal(e->ev.n_kernel, 1);
	assert_int_equal(e->ev.n_user, 3);
	assert_int_equal(e->frames[0], 0xffffffff81000000);
	assert_int_equal(e->frames[1], 0x1020 | FRAME_EXACT);
	assert_int_equal(e->frames[2], 0x1150);
	assert_int_equal(e->frames[3], 0x1210);
}

TEST_WITH(a_stack_waits_for_its_rows_and_reaches_its_root, set_up, tear_down)
{
	assert_int_equal(late_push(&queue, late_record(100), sizeof(struct stack_late)), 0);
	assert_int_equal(late_oldest(&queue), 100);
	assert_int_equal(drain(500, false), 0);
	rows_state = UNWIND_ROWS_READY;
	awaited = false;
	assert_int_equal(drain(600, false), 1);
	assert_whole(&got[0]);
	assert_int_equal(queue.n, 0);
	assert_int_equal(queue.bytes, 0);
	assert_true(late_oldest(&queue) == UINT64_MAX);
}

TEST_WITH(while_its_file_is_awaited_nothing_is_tried_again, set_up, tear_down)
{
	unsigned before;

	late_push(&queue, late_record(100), sizeof(struct stack_late));
	drain(500, false);
	before = wheres;
	drain(600, false);
	assert_int_equal(wheres, before);
}

TEST_WITH(before_its_time_has_been_told_it_is_not_tried, set_up, tear_down)
{
	rows_state = UNWIND_ROWS_READY;
	watermark = 99;
	late_push(&queue, late_record(100), sizeof(struct stack_late));
	assert_int_equal(drain(500, false), 0);
	watermark = 100;
	seeded = false;
	assert_int_equal(drain(500, false), 0);
	seeded = true;
	assert_int_equal(drain(500, false), 1);
	assert_whole(&got[0]);
}

TEST_WITH(out_of_patience_it_is_unwound_as_far_as_rows_are_there, set_up, tear_down)
{
	late_push(&queue, late_record(100), sizeof(struct stack_late));
	assert_int_equal(drain(2099, false), 0);
	assert_int_equal(drain(2100, false), 1);
	assert_int_equal(got[0].ev.end, STACK_END_PENDING);
	assert_int_equal(got[0].ev.n_user, 1);
	known = false;
	late_push(&queue, late_record(100), sizeof(struct stack_late));
	assert_int_equal(drain(300, true), 1);
	assert_int_equal(got[0].ev.end, STACK_END_NO_PROCESS);
	assert_int_equal(got[0].ev.n_user, 1);
}

TEST_WITH(one_that_waits_does_not_hold_up_those_behind_it, set_up, tear_down)
{
	struct stack_late *l;

	rows_state = UNWIND_ROWS_READY;
	late_push(&queue, late_record(1500), sizeof(struct stack_late)); /* not told yet */
	late_push(&queue, late_record(100), sizeof(struct stack_late));
	l = late_record(200);
	l->pc = 0x9000; /* no mapping: complete in its way */
	late_push(&queue, l, sizeof(*l));
	assert_int_equal(late_oldest(&queue), 100);
	assert_int_equal(drain(600, false), 2);
	assert_whole(&got[0]);
	assert_int_equal(got[1].ev.end, STACK_END_NO_MAPPING);
	assert_int_equal(queue.n, 1);
	late_push(&queue, late_record(300),
		  sizeof(struct stack_late)); /* the tail is still right */
	assert_int_equal(drain(600, false), 1);
	assert_int_equal(drain(600, true), 1);
	assert_int_equal(queue.bytes, 0);
}

TEST_WITH(a_copy_that_is_too_short_says_so, set_up, tear_down)
{
	struct stack_late *l = late_record(100);

	rows_state = UNWIND_ROWS_READY;
	l->size = 16;
	late_push(&queue, l, sizeof(*l));
	assert_int_equal(drain(600, false), 1);
	assert_int_equal(got[0].ev.end, STACK_END_SHORT_COPY);
	assert_int_equal(got[0].ev.n_user, 2);
}

static struct late_aside met[STACK_ASIDE_N];
static uint8_t met_bytes[2];

static int aside_step(void *ctx, struct hostmaps *hm, const struct stack_late *l,
		      const struct late_aside aside[STACK_ASIDE_N], struct unwind_code *c)
{
	(void)ctx;
	(void)hm;
	(void)l;
	memcpy(met, aside, sizeof(met));
	for (size_t i = 0; i < STACK_ASIDE_N; i++)
		met_bytes[i] = aside[i].size ? aside[i].bytes[aside[i].size - 1] : 0;
	c->end = STACK_END_ROOT;
	return UNWIND_CODE_ENDS;
}

static void push_aside(uint64_t time_ns, uint32_t which, uint64_t at, uint32_t size, uint8_t last)
{
	static struct stack_more more;

	more = (struct stack_more){
		.ev = late_record(time_ns)->ev, .from = STACK_MORE_ASIDE | which, .size = size + 8};
	more.ev.flags = STACK_F_MORE;
	memcpy(more.stack, &at, sizeof(at));
	more.stack[8 + size - 1] = last;
	assert_int_equal(late_push(&queue, &more, sizeof(more)), 0);
}

TEST_WITH(memory_from_elsewhere_comes_with_its_own_stack, set_up, tear_down)
{
	rows_state = UNWIND_ROWS_READY;
	queue.code.step = aside_step;
	push_aside(100, STACK_ASIDE_STORED, 0x5000, 64, 7);
	push_aside(100, STACK_ASIDE_RBP, 0x6000, 8, 9);
	late_push(&queue, late_record(100), sizeof(struct stack_late));
	late_push(&queue, late_record(101), sizeof(struct stack_late)); /* has none */
	push_aside(102, STACK_ASIDE_RBP, 0x7000, 8, 1);
	assert_int_equal(drain(100, true), 2);
	assert_int_equal(met[STACK_ASIDE_STORED].size, 0);
	assert_int_equal(met[STACK_ASIDE_RBP].size, 0);
	push_aside(103, STACK_ASIDE_STORED, 0x5000, 64, 7);
	push_aside(103, STACK_ASIDE_RBP, 0x6000, 8, 9);
	late_push(&queue, late_record(103), sizeof(struct stack_late));
	assert_int_equal(drain(600, true), 1);
	assert_int_equal(met[STACK_ASIDE_STORED].at, 0x5000);
	assert_int_equal(met[STACK_ASIDE_STORED].size, 64);
	assert_int_equal(met[STACK_ASIDE_RBP].at, 0x6000);
	assert_int_equal(met[STACK_ASIDE_RBP].size, 8);
	assert_int_equal(met_bytes[STACK_ASIDE_STORED], 7);
	assert_int_equal(met_bytes[STACK_ASIDE_RBP], 9);
	assert_int_equal(queue.bytes, 0);
}

TEST_WITH(where_there_is_no_more_room_the_first_makes_some, set_up, tear_down)
{
	size_t n;

	queue.max_bytes = 30000;
	for (n = 0; !late_push(&queue, late_record(100 + n), sizeof(struct stack_late)); n++)
		;
	assert_in_range(n, 4, 8); /* only what is used of the stack is kept */
	late_shed(&queue, NULL, take, NULL);
	assert_int_equal(n_got, 1);
	assert_int_equal(got[0].ev.time_ns, 100);
	assert_int_equal(got[0].ev.end, STACK_END_PENDING);
	assert_int_equal(late_push(&queue, late_record(200), sizeof(struct stack_late)), 0);
	assert_int_equal(queue.n, n);
}

/* A part of what continues the stack of late_record(time_ns): its words from `from` bytes above RSP
 * on. */
static int push_more(uint64_t time_ns, uint32_t from, const uint64_t *words, size_t n)
{
	static struct stack_more m;

	m = (struct stack_more){.ev = {.time_ns = time_ns, .flags = STACK_F_MORE},
				.from = from,
				.size = (uint32_t)(n * sizeof(*words))};
	memcpy(m.stack, words, n * sizeof(*words));
	return late_push(&queue, &m, offsetof(struct stack_more, stack) + m.size);
}

static const uint64_t stack_all[] = {0x1150, 1, 2, 0x1210, 3};

TEST_WITH(parts_that_came_before_continue_the_stack, set_up, tear_down)
{
	struct stack_late *l;

	rows_state = UNWIND_ROWS_READY;
	assert_int_equal(push_more(90, 8, stack_all + 1, 4),
			 0); /* of another stack on the same CPU, whose record was lost */
	assert_int_equal(push_more(100, 8, stack_all + 1, 2), 0);
	assert_int_equal(push_more(100, 24, stack_all + 3, 1), 0);
	assert_int_equal(push_more(100, 32, stack_all + 4, 1), 0);
	assert_int_equal(queue.n, 0);
	assert_int_equal(queue.more.n, 3);
	l = late_record(100);
	l->size = 8;
	assert_int_equal(late_push(&queue, l, offsetof(struct stack_late, stack) + l->size), 0);
	assert_int_equal(queue.more.n, 0);
	assert_int_equal(drain(600, false), 1);
	assert_whole(&got[0]);
}

TEST_WITH(a_part_that_is_missing_ends_the_copy, set_up, tear_down)
{
	struct stack_late *l = late_record(100);

	rows_state = UNWIND_ROWS_READY;
	l->size = 8;
	push_more(100, 8, stack_all + 1, 2);
	push_more(100, 32, stack_all + 4, 1);
	assert_int_equal(late_push(&queue, l, offsetof(struct stack_late, stack) + l->size), 0);
	assert_int_equal(drain(600, false), 1);
	assert_int_equal(got[0].ev.end, STACK_END_SHORT_COPY);
	assert_int_equal(got[0].ev.n_user, 2);
	assert_int_equal(queue.more.n, 0);
}

TEST_WITH(a_part_whose_size_is_wrong_is_refused, set_up, tear_down)
{
	static struct stack_more m;

	m = (struct stack_more){.ev = {.flags = STACK_F_MORE}, .size = 16};
	assert_int_equal(late_push(&queue, &m, offsetof(struct stack_more, stack) + 8), -EBADMSG);
	m.size = STACK_MORE_BYTES + 1;
	assert_int_equal(late_push(&queue, &m, sizeof(m)), -EBADMSG);
	assert_int_equal(queue.more.n, 0);
}

TEST_WITH(what_is_no_record_is_refused, set_up, tear_down)
{
	struct stack_late *l = late_record(100);

	assert_int_equal(late_push(&queue, l, sizeof(l->ev)), -EBADMSG);
	assert_int_equal(late_push(&queue, l, offsetof(struct stack_late, stack) + 8), -EBADMSG);
	l->ev.n_kernel = STACK_KERNEL_MAX + 1;
	assert_int_equal(late_push(&queue, l, sizeof(*l)), -EBADMSG);
	l = late_record(100);
	l->ev.n_user = 1;
	assert_int_equal(late_push(&queue, l, sizeof(*l)), -EBADMSG);
	assert_int_equal(queue.n, 0);
}
