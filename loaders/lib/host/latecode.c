// SPDX-License-Identifier: Apache-2.0
#include "loaders/lib/host/latecode.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "loaders/lib/host/hostmaps.h"
#include "loaders/lib/host/naming.h"
#include "loaders/lib/host/unwind.h"
#include "loaders/lib/runtimes/hotspot.h"
#include "probes/runtimes/runtime.h"
#include "probes/tables.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/image/format.h"
#include "schema/image/image.h"

#define PROCESSES   64
#define AGAIN_NS    (NSEC_PER_SEC / 10) /* a JVM that has not begun is looked at again then */
#define STACK_BYTES (16ull << 20) /* of a thread whose stack's end is not known */

/* A process that was asked for. */
struct jvm {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
	uint32_t image; /* of its libjvm; 0: it has none */
	uint64_t pending; /* its index is still being made */
	uint64_t again_ns;
	struct hotspot *hotspot; /* own; NULL: it cannot be read (yet) */
	struct runtime_memory memory;
	const struct stack_late *l; /* whose stack is walked now */
	bool short_copy;
};

struct latecode {
	struct naming *naming;
	struct jvm jvms[PROCESSES];
	size_t next;
};

struct latecode *latecode_new(struct naming *n)
{
	struct latecode *c = mem_alloc(sizeof(*c));

	*c = (struct latecode){.naming = n};
	return c;
}

void latecode_free(struct latecode *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < PROCESSES; i++)
		hotspot_close(c->jvms[i].hotspot);
	free(c);
}

/* Of the stack what was copied, and nothing that stands there now. */
static bool memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct jvm *j = ctx;
	struct iovec into = {to, len}, from = {(void *)(uintptr_t)addr, len};

	if (j->l) {
		uint64_t sp = j->l->regs[ROW_REG_RSP], top = j->l->fs_base, low = sp - 4096;

		if (top <= sp || top - sp > STACK_BYTES)
			top = sp + STACK_BYTES;
		if (addr - sp < j->l->size && len <= j->l->size - (addr - sp)) {
			memcpy(to, j->l->stack + (addr - sp), len);
			return true;
		}
		if (addr + len > low && addr < top) {
			j->short_copy |= addr >= sp;
			return false;
		}
	}
	return process_vm_readv((pid_t)j->tgid, &into, 1, &from, 1, 0) == (ssize_t)len;
}

/* ---- processes ---- */

struct search {
	struct hostmaps *hm;
	struct hostmaps_process *p;
	struct jvm *j;
	uint64_t time_ns;
};

static void look(void *ctx, uint64_t start, uint64_t end, struct hostmaps_image *image)
{
	struct search *s = ctx;
	struct unwind_where where = {0};
	uint64_t pending = 0;
	const void *section;
	size_t size;

	(void)end;
	if (s->j->hotspot || !image || strcmp(image->name, "libjvm.so"))
		return;
	if (!image->index) {
		hostmaps_where(s->hm, s->p, start, s->time_ns, &where, &s->j->pending);
		return;
	}
	if ( !image_part(image->index, IMAGE_SECTION_HOTSPOT, &section, &size) ||
	    !hostmaps_where(s->hm, s->p, start, s->time_ns, &where, &pending) || !where.rows.elements)
		return;
	s->j->image = image->id;
	s->j->hotspot = hotspot_open(&s->j->memory, section, size, 0 - where.to_vaddr);
}

static struct jvm *jvm_slot(struct latecode *c, const struct stack_event *ev)
{
	struct jvm *j;

	for (size_t i = 0; i < PROCESSES; i++) {
		j = &c->jvms[i];
		if (j->tgid == ev->tgid && j->start_ns == ev->start_ns && j->exec_id == ev->exec_id)
			return j;
	}
	j = &c->jvms[c->next++ % PROCESSES];
	hotspot_close(j->hotspot);
	*j = (struct jvm){.tgid = ev->tgid, .start_ns = ev->start_ns, .exec_id = ev->exec_id, .memory = {.ctx = j, .read = memory_read}};
	return j;
}

static struct jvm *jvm_of(struct latecode *c, struct hostmaps *hm, const struct stack_event *ev)
{
	struct jvm *j = jvm_slot(c, ev);
	struct search s = {.hm = hm, .j = j, .time_ns = ev->time_ns};
	uint64_t now = (uint64_t)clock_boot_ns();

	if (j->hotspot || now < j->again_ns)
		return j;
	j->again_ns = now + AGAIN_NS;
	j->pending = 0;
	s.p = hostmaps_process(hm, ev->tgid, ev->start_ns, ev->exec_id);
	if (s.p)
		hostmaps_mappings(hm, s.p, look, &s);
	return j;
}

/* ---- frames ---- */

static void say(struct latecode *c, const struct jvm *j, const struct script_stack *found, struct unwind_code *to)
{
	for (size_t i = 0; i < found->n && to->n < to->max; i++) {
		const struct script_place *at = &found->frames[i].place;

		if (at->function)
			to->frames[to->n++] = naming_script_word(c->naming, RUNTIME_HOTSPOT, j->image, at->function, at->file ? at->file : "", at->line);
	}
}

int latecode_step(void *ctx, struct hostmaps *hm, const struct stack_late *l, struct unwind_code *c)
{
	struct latecode *lc = ctx;
	struct jvm *j = jvm_of(lc, hm, &l->ev);
	const struct hotspot_at at = {.pc = c->pc, .sp = c->sp, .fp = c->bp, .reg = c->interrupted ? c->reg : NULL, .code = l->code};
	struct script_stack found = {0};
	struct runtime_follow to = {0};
	bool is;

	if (!j->hotspot) {
		c->end = STACK_END_PENDING;
		c->pending = j->pending;
		return j->pending && hostmaps_awaits(hm, j->pending) ? UNWIND_CODE_ENDS : UNWIND_CODE_UNKNOWN;
	}
	j->l = l;
	j->short_copy = false;
	is = hotspot_sampled(j->hotspot, &at, &to, &found);
	j->l = NULL;
	if (is && to.unnamed && c->n < c->max)
		c->frames[c->n++] = (c->pc & (FRAME_EXACT - 1)) | (c->interrupted ? FRAME_EXACT : 0);
	if (is)
		say(lc, j, &found, c);
	script_stack_release(&found);
	if (!is)
		return UNWIND_CODE_UNKNOWN;
	c->pc = to.pc;
	c->sp = to.sp;
	c->bp = to.bp;
	c->end = j->short_copy ? STACK_END_SHORT_COPY : STACK_END_UNSUPPORTED;
	return to.goes_on ? UNWIND_CODE_GOES_ON : UNWIND_CODE_ENDS;
}
