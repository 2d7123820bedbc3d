/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a sample's stack together, root first, and counts which frames got a name, and why the
 * others did not. Ids are valid for one epoch of the store: when the epoch changes, every cache is
 * emptied before the next sample.
 */
#include "loaders/lib/host/names/naming.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/private.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define MAX_PENDING   65536
#define MAX_CACHED    98304
#define DRAIN_STEP_MS 20

int naming_open(struct hostmaps *hm, struct store_writer *w, const struct naming_opts *o,
		struct naming **out, struct err *e)
{
	struct naming *n = mem_alloc(sizeof(*n));

	(void)e;
	if (o)
		n->o = *o;
	if (!n->o.max_pending || n->o.max_pending >= SLOT_NONE)
		n->o.max_pending = MAX_PENDING;
	if (!n->o.max_cached)
		n->o.max_cached = MAX_CACHED;
	n->hm = hm;
	n->w = w;
	n->epoch = store_epoch(w);
	n->boot_offset_ns = clock_boot_offset_ns();
	snprintf(n->docker_root, sizeof(n->docker_root), "%s",
		 n->o.docker_root ? n->o.docker_root : containernames_docker_root());
	naming_process_init(n);
	hostmaps_on_args(hm, naming_process_learnt, n);
	naming_user_init(n);
	*out = n;
	return 0;
}

void naming_run(struct naming *n, uint32_t run)
{
	n->run = run;
}

void naming_close(struct naming *n)
{
	if (!n)
		return;
	hostmaps_on_args(n->hm, NULL, NULL);
	naming_kernel_release(n);
	naming_user_release(n);
	naming_script_release(n);
	naming_process_release(n);
	free(n->buf);
	free(n);
}

void naming_epoch(struct naming *n)
{
	uint32_t epoch = store_epoch(n->w);

	if (epoch == n->epoch)
		return;
	n->epoch = epoch;
	n->boot_offset_ns = clock_boot_offset_ns();
	naming_kernel_forget(n);
	naming_user_forget(n);
	naming_script_forget(n);
	naming_process_forget(n);
}

static void book(struct naming *n, struct frame_name a, bool leaf)
{
	struct naming_stat *s = &n->stat;
	uint64_t *counters[WHY_N] = {[WHY_NAMED] = &s->named,
				     [WHY_PENDING] = &s->unnamed_pending,
				     [WHY_REFUSED] = &s->unnamed_refused,
				     [WHY_SYMBOL] = &s->unnamed_symbol,
				     [WHY_ANON] = &s->unnamed_anon,
				     [WHY_UNMAPPED] = &s->unnamed_unmapped,
				     [WHY_KERNEL] = &s->unnamed_kernel};

	s->frames++;
	s->leaves += leaf;
	s->leaves_named += leaf && a.why == WHY_NAMED;
	++*counters[a.why];
	if (a.why == WHY_PENDING && a.slot != SLOT_NONE) {
		n->pending[a.slot].uses++;
		n->pending[a.slot].leaf_uses += leaf;
	}
}

struct stack_buf {
	uint32_t *frames; /* filled from the end: frames arrive leaf first, the store wants them
			     root first */
	size_t at;
};

static void put(struct naming *n, struct stack_buf *b, struct frame_name a, bool leaf)
{
	book(n, a, leaf);
	b->frames[--b->at] = a.frame;
}

static void put_kernel(struct naming *n, struct stack_buf *b, const uint64_t *addrs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put(n, b, naming_kernel(n, addrs[i], i ? LOOK_BACK : LOOK_LEAF), !i);
}

/* Rules 1 to 3 of naming.h. */
static enum look look_of(bool leaf, bool exact)
{
	return leaf ? exact ? LOOK_LEAF : LOOK_LEAF_BACK : exact ? LOOK_EXACT : LOOK_BACK;
}

static void put_user(struct naming *n, struct stack_buf *b, struct hostmaps_process *p,
		     const struct stack_event *ev, const uint64_t *frames,
		     struct naming_result *out)
{
	uint64_t tables_ns = ev->flags & STACK_F_TABLES ? ev->tables_ns : 0;
	bool astray = false;          /* the previous frame has no executable mapping */
	struct frame_name held = {0}; /* such a frame, to be shown if a known frame follows */
	bool holds = false, stands = p && tables_ns && !(ev->flags & STACK_F_LOGICAL) &&
				     hostmaps_frames_stand(n->hm, p, tables_ns, ev->time_ns);

	if (ev->end == STACK_END_ROOT)
		frames = naming_script_settle(n, frames, ev->n_user);
	for (size_t i = 0; i < ev->n_user && out->end != STACK_END_STALE; i++) {
		enum look look = ev->flags & STACK_F_LOGICAL ?
					 LOOK_LOGICAL :
					 look_of(!i && !ev->n_kernel, frames[i] & FRAME_EXACT);
		struct hostmaps_frame at = {0};
		struct frame_name a;

		if (FRAME_IS_SCRIPT(frames[i])) {
			put(n, b, naming_script(n, p, frames[i]), false);
			astray = holds = false; /* it is of the thread, whatever led to it */
			continue;
		}
		if (stands && frames[i] >> 62 == 1 &&
		    naming_standing(n, frames[i], look_is_leaf(look), &a)) {
			if (holds)
				put(n, b, held, false);
			put(n, b, a, look_is_leaf(look));
			out->image = a.image;
			astray = holds = false;
			continue;
		}
		if (p)
			hostmaps_frame_owner(n->hm, p, frames[i], tables_ns, ev->time_ns, &at);
		a = naming_user(n, p, &at, look);
		if (stands && frames[i] >> 62 == 1)
			naming_standing_add(n, frames[i], look_is_leaf(look), &at, a);
		/* if a chain leaves mapped code and comes back, it shows one unknown frame there,
		 * not a hundred different ones; if it does not come back it shows none: an unmapped
		 * address says nothing */
		if (i && a.why == WHY_UNMAPPED) {
			holds |= !astray;
			held = a;
		} else {
			if (holds)
				put(n, b, held, false);
			put(n, b, a, look_is_leaf(look));
			out->image = a.image;
			holds = false;
		}
		astray = a.why == WHY_UNMAPPED;
		if (at.stale)
			out->end = STACK_END_STALE;
	}
	if (astray && p && out->end != STACK_END_STALE)
		out->end = STACK_END_NO_MAPPING;
	if (!ev->n_user && (ev->flags & STACK_F_USER_FAULT))
		put(n, b, naming_unknown(n), !ev->n_kernel);
}

/* Only in the kernel can the first word of a stack be missing, when exec or exit has freed the
 * memory. */
static enum stack_end end_of(const struct stack_event *ev)
{
	bool gone = ev->end == STACK_END_STACK_READ && ev->n_kernel && ev->n_user <= 1;

	return gone ? STACK_END_GONE : (enum stack_end)ev->end;
}

void naming_stack(struct naming *n, const struct stack_event *ev, const uint64_t *frames,
		  struct naming_result *out)
{
	naming_stack_with(n, ev, frames, 0, out);
}

void naming_stack_with(struct naming *n, const struct stack_event *ev, const uint64_t *frames,
		       uint32_t leaf, struct naming_result *out)
{
	struct hostmaps_process *p = hostmaps_process(n->hm, ev->tgid, ev->start_ns, ev->exec_id);
	size_t cap = (size_t)ev->n_kernel + ev->n_user + 2;
	struct stack_buf b;

	naming_epoch(n);
	if (cap > n->cap_buf) {
		n->buf = mem_realloc(n->buf, cap * sizeof(*n->buf));
		n->cap_buf = cap;
	}
	b = (struct stack_buf){.frames = n->buf, .at = cap};
	n->stat.stacks++;
	/* the idle task belongs to no process */
	if (p || ev->tgid ? naming_excludes(n, p) : n->o.include != NULL) {
		naming_excluded_stack(n, out);
		return;
	}
	*out = (struct naming_result){
		.exe = p ? p->exe : "", .process = naming_process(n, p, ev), .end = end_of(ev)};
	if (leaf)
		b.frames[--b.at] = leaf;
	put_kernel(n, &b, frames, ev->n_kernel);
	put_user(n, &b, p, ev, frames + ev->n_kernel, out);
	out->stack = store_stack(n->w, b.frames + b.at, cap - b.at);
}

void naming_tick(struct naming *n)
{
	struct hostmaps_image *img;

	naming_epoch(n);
	while ((img = hostmaps_next_ready(n->hm)))
		naming_user_ready(n, img);
	naming_user_tick(n);
	naming_runtime_tick(n);
	naming_script_tick(n);
	naming_containers_tick(n);
}

bool naming_waits(const struct naming *n)
{
	return n->used_pending;
}

int naming_drain(struct naming *n, int deadline_ms)
{
	int64_t until = clock_boot_ns() + (int64_t)deadline_ms * 1000000;

	for (;;) {
		struct pollfd pfd = {.fd = hostmaps_fd(n->hm), .events = POLLIN};

		naming_tick(n);
		if (!n->used_pending)
			return 0;
		if (clock_boot_ns() >= until)
			return -ETIMEDOUT;
		poll(&pfd, 1, DRAIN_STEP_MS);
		hostmaps_read(n->hm);
	}
}

void naming_stat(const struct naming *n, struct naming_stat *s)
{
	*s = n->stat;
}
