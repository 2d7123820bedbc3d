/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/late/late_jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/unwind/unwind.h"
#include "loaders/lib/runtimes/beam/beam.h"
#include "loaders/lib/runtimes/hotspot.h"
#include "loaders/lib/runtimes/v8/v8.h"
#include "probes/runtimes/runtime.h"
#include "probes/lib/tables.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/image/format.h"
#include "schema/image/image.h"

#define PROCESSES   64
#define AGAIN_NS    (NSEC_PER_SEC / 10) /* look again for a runtime that has not started */
#define STACK_BYTES (16ull << 20)       /* of a thread whose stack's end is unknown */

/* A process that was looked up. */
struct process {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
	uint32_t image;   /* of its runtime; 0: none */
	uint64_t pending; /* its index is still being made */
	bool lacks;       /* the index of one of its files was missing at the last look */
	uint64_t again_ns;
	struct hotspot *hotspot; /* own; NULL: cannot be read (yet) */
	struct beam *beam;       /* the same */
	struct v8 *v8;           /* the same */
	uint64_t v8_time_ns;     /* time of the stack being walked, and its thread */
	uint32_t v8_tid;
	struct runtime_memory memory;
	const struct stack_late *l; /* the stack being walked, and what came with it */
	const struct late_aside *aside;
	uint32_t *told; /* its threads that the program knows; own */
	size_t told_n, told_cap;
	bool short_copy;
	bool gone; /* its memory is gone */
};

struct late_jit {
	struct naming *naming;
	struct process processes[PROCESSES];
	size_t next;
	late_jit_tell tell; /* may be NULL */
	void *tell_ctx;
};

struct late_jit *late_jit_new(struct naming *n)
{
	struct late_jit *c = mem_alloc(sizeof(*c));

	*c = (struct late_jit){.naming = n};
	return c;
}

void late_jit_on_erlang(struct late_jit *c, late_jit_tell tell, void *ctx)
{
	if (!c)
		return;
	c->tell = tell;
	c->tell_ctx = ctx;
}

static void process_close(struct late_jit *c, struct process *j)
{
	for (size_t i = 0; i < j->told_n && c->tell; i++)
		c->tell(c->tell_ctx, j->tgid, j->told[i], NULL);
	free(j->told);
	hotspot_close(j->hotspot);
	beam_close(j->beam);
	v8_close(j->v8);
}

void late_jit_free(struct late_jit *c)
{
	if (!c)
		return;
	c->tell = NULL;
	for (size_t i = 0; i < PROCESSES; i++)
		process_close(c, &c->processes[i]);
	free(c);
}

/* The stack: from a little below what was copied to its end. */
static bool is_stack(const struct process *j, uint64_t addr, size_t len)
{
	uint64_t sp = j->l->regs[ROW_REG_RSP], top = j->l->fs_base;

	if (j->beam) /* an Erlang process's is in its heap, next to anything */
		return addr + len > sp && addr < sp + j->l->size;
	if (top <= sp || top - sp > STACK_BYTES)
		top = sp + STACK_BYTES;
	return addr + len > sp - 4096 && addr < top;
}

/* What came with the stack from elsewhere, if that has some of it; NULL: it has none. */
static const struct late_aside *aside_of(const struct process *j, uint64_t addr, size_t len)
{
	for (size_t i = 0; j->aside && i < STACK_ASIDE_N; i++)
		if (addr + len > j->aside[i].at && addr < j->aside[i].at + j->aside[i].size)
			return &j->aside[i];
	return NULL;
}

static bool aside_read(const struct late_aside *a, uint64_t addr, void *to, size_t len)
{
	uint64_t at = addr - a->at;

	if (at >= a->size || len > a->size - at)
		return false;
	memcpy(to, a->bytes + at, len);
	return true;
}

/* Reads the stack only from the copy, never its present content. */
static bool memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct process *j = ctx;
	struct iovec into = {to, len}, from = {(void *)(uintptr_t)addr, len};
	const struct late_aside *a = aside_of(j, addr, len);

	if (a)
		return aside_read(a, addr, to, len);
	if (j->l && is_stack(j, addr, len)) {
		uint64_t at = addr - j->l->regs[ROW_REG_RSP];

		if (at < j->l->size && len <= j->l->size - at) {
			memcpy(to, j->l->stack + at, len);
			return true;
		}
		j->short_copy |= addr >= j->l->regs[ROW_REG_RSP];
		return false;
	}
	if (process_vm_readv((pid_t)j->tgid, &into, 1, &from, 1, 0) == (ssize_t)len)
		return true;
	j->gone |= errno == ESRCH;
	return false;
}

/* A failed read stops the batch: the rest is read one by one later. */
static void memory_read_many(void *ctx, uint64_t *addr, void *const *to, size_t n, size_t len)
{
	struct process *j = ctx;
	struct iovec into[SCRIPT_KEPT], from[SCRIPT_KEPT];
	size_t of[SCRIPT_KEPT], m = 0;
	ssize_t got;

	for (size_t i = 0; i < n && m < SCRIPT_KEPT; i++) {
		if (aside_of(j, addr[i], len) || (j->l && is_stack(j, addr[i], len))) {
			addr[i] = 0;
			continue;
		}
		into[m] = (struct iovec){to[i], len};
		from[m] = (struct iovec){(void *)(uintptr_t)addr[i], len};
		of[m++] = i;
	}
	got = m ? process_vm_readv((pid_t)j->tgid, into, m, from, m, 0) : 0;
	for (size_t i = got > 0 ? (size_t)got / len : 0; i < m; i++)
		addr[of[i]] = 0;
}

/* ---- processes ---- */

struct search {
	struct hostmaps *hm;
	struct hostmaps_process *p;
	struct process *j;
	uint64_t time_ns;
	bool objects; /* its program met V8's code, so one of its files is V8's, even if that has no
			 index yet */
};

/* V8 may map its file a second time, without its variables: skip that. */
static void v8_look(struct search *s, uint64_t start, struct hostmaps_image *image)
{
	struct hostmaps_frame builtins = {0};
	struct unwind_where where = {0};
	uint64_t pending = 0;
	const void *section;
	size_t size;

	if (!s->j->v8 && s->objects && !image->index)
		hostmaps_where(s->hm, s->p, start, s->time_ns, &where, &s->j->pending);
	if (s->j->v8 || !image->index ||
	    !image_part(image->index, IMAGE_SECTION_V8, &section, &size) ||
	    !hostmaps_where(s->hm, s->p, start, s->time_ns, &where, &pending) ||
	    !where.rows.elements)
		return;
	s->j->v8 = v8_open(&s->j->memory, section, size, 0 - where.to_vaddr);
	if (!s->j->v8)
		return;
	s->j->image = image->id;
	hostmaps_frame(s->hm, s->p, v8_builtins(s->j->v8), s->time_ns, &builtins);
	if (builtins.image == image)
		return;
	v8_close(s->j->v8);
	s->j->v8 = NULL;
}

static void look(void *ctx, uint64_t start, uint64_t end, struct hostmaps_image *image)
{
	struct search *s = ctx;
	struct unwind_where where = {0};
	uint64_t pending = 0;
	const void *section;
	size_t size;
	bool java;

	(void)end;
	if (s->j->hotspot || s->j->beam || !image)
		return;
	s->j->lacks |= !image->index && !image->state;
	java = !strcmp(image->name, "libjvm.so");
	if (!java && strcmp(image->name, "beam.smp") != 0) {
		v8_look(s, start, image);
		return;
	}
	if (!image->index) {
		hostmaps_where(s->hm, s->p, start, s->time_ns, &where, &s->j->pending);
		return;
	}
	if (!image_part(image->index, java ? IMAGE_SECTION_HOTSPOT : IMAGE_SECTION_BEAM, &section,
			&size) ||
	    !hostmaps_where(s->hm, s->p, start, s->time_ns, &where, &pending) ||
	    !where.rows.elements)
		return;
	s->j->image = image->id;
	if (java)
		s->j->hotspot = hotspot_open(&s->j->memory, section, size, 0 - where.to_vaddr);
	else
		s->j->beam = beam_open(&s->j->memory, section, size, 0 - where.to_vaddr);
}

static struct process *process_slot(struct late_jit *c, const struct stack_event *ev)
{
	struct process *j;

	for (size_t i = 0; i < PROCESSES; i++) {
		j = &c->processes[i];
		if (j->tgid == ev->tgid && j->start_ns == ev->start_ns && j->exec_id == ev->exec_id)
			return j;
	}
	j = &c->processes[c->next++ % PROCESSES];
	process_close(c, j);
	*j = (struct process){.tgid = ev->tgid,
			      .start_ns = ev->start_ns,
			      .exec_id = ev->exec_id,
			      .memory = {j, memory_read, memory_read_many}};
	return j;
}

static struct process *process_of(struct late_jit *c, struct hostmaps *hm,
				  const struct stack_late *l)
{
	const struct stack_event *ev = &l->ev;
	struct process *j = process_slot(c, ev);
	struct search s = {.hm = hm, .j = j, .time_ns = ev->time_ns};
	bool came = j->pending && !hostmaps_awaits(hm, j->pending);
	uint64_t now = (uint64_t)clock_boot_ns();

	if (j->hotspot || j->beam || j->v8 || (now < j->again_ns && !came && !j->lacks))
		return j;
	j->lacks = false;
	for (size_t i = 0; i < STACK_OBJECTS; i++)
		s.objects |= l->objects[i].at != 0;
	j->again_ns = now + AGAIN_NS;
	j->pending = 0;
	s.p = hostmaps_process(hm, ev->tgid, ev->start_ns, ev->exec_id);
	if (s.p)
		hostmaps_mappings(hm, s.p, look, &s);
	return j;
}

/* ---- frames ---- */

static void say(struct late_jit *c, const struct process *j, uint32_t kind,
		const struct script_stack *found, struct unwind_code *to)
{
	for (size_t i = 0; i < found->n && to->n < to->max; i++) {
		const struct script_place *at = &found->frames[i].place;

		if (at->function)
			to->frames[to->n++] =
				naming_script_word(c->naming, kind, j->image, at->function,
						   at->file ? at->file : "", at->line);
	}
}

/* Reports the frame itself, as native code. */
static void say_native(struct unwind_code *c)
{
	if (c->n < c->max)
		c->frames[c->n++] =
			(c->pc & (FRAME_EXACT - 1)) | (c->interrupted ? FRAME_EXACT : 0);
}

static void move(struct unwind_code *c, const struct runtime_follow *to)
{
	c->pc = to->pc;
	c->sp = to->sp;
	c->bp = to->bp;
}

static int hotspot_step(struct late_jit *lc, struct process *j, const struct stack_late *l,
			struct unwind_code *c)
{
	const struct hotspot_at at = {.pc = c->pc,
				      .sp = c->sp,
				      .fp = c->bp,
				      .reg = c->interrupted ? c->reg : NULL,
				      .code = l->code};
	struct script_stack found = {0};
	struct runtime_follow to = {0};
	bool is = hotspot_sampled(j->hotspot, &at, &to, &found), deep = found.n >= SCRIPT_STACK_MAX;

	if (is && to.unnamed)
		say_native(c);
	if (is)
		say(lc, j, RUNTIME_HOTSPOT, &found, c);
	script_stack_release(&found);
	if (!is)
		return UNWIND_CODE_UNKNOWN;
	move(c, &to);
	c->end = j->short_copy ? STACK_END_SHORT_COPY :
		 deep          ? STACK_END_DEPTH :
		 j->gone       ? STACK_END_GONE :
				 STACK_END_UNSUPPORTED;
	return to.goes_on ? UNWIND_CODE_GOES_ON : UNWIND_CODE_ENDS;
}

/* Tells the program where this thread says which Erlang process it runs, once that is known. */
static void beam_tell(struct late_jit *lc, struct process *j, const struct stack_late *l,
		      uint64_t process)
{
	struct stack_erlang e = {0};
	uint64_t at = 0;
	uint32_t top = 0;

	for (size_t i = 0; i < j->told_n; i++)
		if (j->told[i] == l->ev.tid)
			return;
	if (!lc->tell || !beam_thread(j->beam, l->fs_base, process, &at, &top))
		return;
	e.running = at;
	e.top = top;
	lc->tell(lc->tell_ctx, l->ev.tgid, l->ev.tid, &e);
	mem_grow(j->told, j->told_n, j->told_cap);
	j->told[j->told_n++] = l->ev.tid;
}

static int beam_step(struct late_jit *lc, struct process *j, const struct stack_late *l,
		     struct unwind_code *c)
{
	const struct late_aside *a = j->aside;
	const struct beam_at at = {.pc = c->pc,
				   .sp = c->sp,
				   .fs_base = l->fs_base,
				   .copied = c->interrupted ? l->size : 0,
				   .interrupted = c->interrupted,
				   .bp = c->bp,
				   .stored = {a[STACK_ASIDE_STORED].at, a[STACK_ASIDE_STORED].size},
				   .at_bp = {a[STACK_ASIDE_RBP].at, a[STACK_ASIDE_RBP].size}};
	struct script_stack found = {0};
	struct runtime_follow to = {0};
	enum beam_end end;
	bool is = beam_sampled(j->beam, &at, &to, &end, &found), deep = found.n >= SCRIPT_STACK_MAX;

	if (is && to.unnamed)
		say_native(c);
	if (is)
		say(lc, j, RUNTIME_BEAM, &found, c);
	script_stack_release(&found);
	if (!is)
		return UNWIND_CODE_UNKNOWN;
	beam_tell(lc, j, l, c->interrupted ? c->reg[BEAM_REG_PROCESS] : 0);
	c->end = end == BEAM_WHOLE ? STACK_END_ROOT :
		 end == BEAM_SHORT ? STACK_END_SHORT_COPY :
		 deep              ? STACK_END_DEPTH :
		 j->gone           ? STACK_END_GONE :
				     STACK_END_UNSUPPORTED;
	return UNWIND_CODE_ENDS;
}

/* pc in V8's file, as in runtime_native. */
static uint64_t v8_vaddr(struct process *j, struct hostmaps *hm, const struct stack_late *l,
			 const struct unwind_code *c)
{
	struct hostmaps_process *p =
		hostmaps_process(hm, l->ev.tgid, l->ev.start_ns, l->ev.exec_id);
	uint64_t pending = 0, pc = c->pc - !c->interrupted;
	struct hostmaps_frame frame = {0};
	struct unwind_where where = {0};

	if (!p || !hostmaps_where(hm, p, pc, l->ev.time_ns, &where, &pending))
		return RUNTIME_OTHER_FILE;
	if (where.state == UNWIND_ROWS_NO_FILE)
		return RUNTIME_NO_FILE;
	hostmaps_frame(hm, p, pc, l->ev.time_ns, &frame);
	return frame.image && frame.image->id == j->image && where.rows.elements ?
		       pc + where.to_vaddr :
		       RUNTIME_OTHER_FILE;
}

static int v8_step(struct late_jit *lc, struct process *j, struct hostmaps *hm,
		   const struct stack_late *l, struct unwind_code *c)
{
	const struct v8_at at = {.pc = c->pc,
				 .sp = c->sp,
				 .fp = c->bp,
				 .vaddr = v8_vaddr(j, hm, l, c),
				 .reg = c->interrupted ? c->reg : NULL,
				 .code = l->code,
				 .objects = l->objects,
				 .n_objects = STACK_OBJECTS};
	struct script_stack found = {0};
	struct runtime_follow to = {0};
	bool is;

	if (at.vaddr == RUNTIME_OTHER_FILE)
		return UNWIND_CODE_UNKNOWN;
	if (j->v8_time_ns != l->ev.time_ns || j->v8_tid != l->ev.tid)
		v8_sampled_begin(j->v8);
	j->v8_time_ns = l->ev.time_ns;
	j->v8_tid = l->ev.tid;
	is = v8_sampled(j->v8, &at, &to, &found);
	if (is && to.unnamed)
		say_native(c);
	if (is)
		say(lc, j, RUNTIME_V8, &found, c);
	script_stack_release(&found);
	if (!is)
		return UNWIND_CODE_UNKNOWN;
	move(c, &to);
	return UNWIND_CODE_GOES_ON;
}

int late_jit_step(void *ctx, struct hostmaps *hm, const struct stack_late *l,
		  const struct late_aside aside[STACK_ASIDE_N], struct unwind_code *c)
{
	struct late_jit *lc = ctx;
	struct process *j = process_of(lc, hm, l);
	int step;

	if (!j->hotspot && !j->beam && !j->v8) {
		c->end = STACK_END_PENDING;
		c->pending = j->pending;
		if (!j->pending || !hostmaps_awaits(hm, j->pending))
			return UNWIND_CODE_UNKNOWN;
		say_native(c); /* all that is known of it if that does not come */
		return UNWIND_CODE_ENDS;
	}
	j->l = l;
	j->aside = aside;
	j->short_copy = false;
	step = j->hotspot ? hotspot_step(lc, j, l, c) :
	       j->beam    ? beam_step(lc, j, l, c) :
			    v8_step(lc, j, hm, l, c);
	j->l = NULL;
	j->aside = NULL;
	return step;
}
