/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/scripts.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "loaders/lib/runtimes/runtimes.h"
#include "probes/lib/stack.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"

/* A file of a process that was asked for. */
struct known {
	uint32_t tgid;
	uint64_t start_ns, bias;
	const struct image *index;
	struct runtime_memory memory;
	const struct runtime_walker *kind; /* NULL: no runtime in it */
	void *runtime;                     /* NULL: none to be read there */
};

static struct known **known;
static size_t n_known, cap_known;

static bool memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct known *k = ctx;
	struct iovec into = {to, len}, from = {(void *)(uintptr_t)addr, len};

	return process_vm_readv((pid_t)k->tgid, &into, 1, &from, 1, 0) == (ssize_t)len;
}

void scripts_forget(void)
{
	for (size_t i = 0; i < n_known; i++) {
		if (known[i]->runtime)
			known[i]->kind->close(known[i]->runtime);
		free(known[i]);
	}
	free(known);
	known = NULL;
	n_known = cap_known = 0;
}

static const struct runtime_walker *kind_of(const struct image *index, const void **section,
					    size_t *size)
{
	for (size_t i = 0; i < RUNTIME_KIND_COUNT; i++)
		if (image_part(index, RUNTIME_WALKERS[i].section, section, size))
			return &RUNTIME_WALKERS[i];
	return NULL;
}

static const struct known *known_of(const struct hostmaps_process *p, const struct image *index,
				    uint64_t bias)
{
	const void *section;
	struct known *k;
	size_t size;

	for (size_t i = 0; i < n_known; i++)
		if (known[i]->tgid == p->tgid && known[i]->start_ns == p->start_ns &&
		    known[i]->index == index && known[i]->bias == bias)
			return known[i];
	k = mem_alloc(sizeof(*k));
	*k = (struct known){.tgid = p->tgid,
			    .start_ns = p->start_ns,
			    .bias = bias,
			    .index = index,
			    .memory = {.ctx = k, .read = memory_read}};
	k->kind = kind_of(index, &section, &size);
	if (k->kind)
		k->runtime = k->kind->open(&k->memory, section, size, bias);
	mem_grow(known, n_known, cap_known);
	known[n_known++] = k;
	return k;
}

/* Where a native frame is looked up. */
static uint64_t pc_of(uint64_t frame)
{
	return FRAME_ADDRESS(frame) - !(frame & FRAME_EXACT);
}

/* The files with runtimes that this stack's frames lie in; returns how many. */
static size_t runtimes_find(struct hostmaps *hm, struct hostmaps_process *p,
			    const struct scripts_native *native, uint64_t time_ns,
			    const struct known **found, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < native->n && n < max; i++) {
		uint64_t pc = pc_of(native->frames[i]), vaddr;
		struct hostmaps_frame at;
		const struct known *k;
		bool met = false;

		hostmaps_frame(hm, p, pc, time_ns, &at);
		if (!at.image || !at.image->index ||
		    !image_offset_to_vaddr(at.image->index, at.offset, &vaddr))
			continue;
		k = known_of(p, at.image->index, pc - vaddr);
		for (size_t o = 0; o < n; o++)
			met |= found[o] == k;
		if (k->runtime && !met)
			found[n++] = k;
	}
	return n;
}

static int by_place(const void *a, const void *b)
{
	const struct script_frame *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Whose stack it is. */
struct whose {
	struct hostmaps *hm;
	struct hostmaps_process *p;
	uint64_t time_ns;
};

struct places {
	uint64_t pc[STACK_USER_MAX], vaddr[STACK_USER_MAX];
};

/* Of a pc in the file `index`. */
static uint64_t vaddr_of(const struct whose *w, uint64_t pc, const struct image *index)
{
	struct hostmaps_frame at;
	uint64_t vaddr = 0;

	hostmaps_frame(w->hm, w->p, pc, w->time_ns, &at);
	if (!at.image)
		return at.mapped ? RUNTIME_NO_FILE : RUNTIME_OTHER_FILE;
	return at.image->index == index && image_offset_to_vaddr(index, at.offset, &vaddr) ?
		       vaddr :
		       RUNTIME_OTHER_FILE;
}

/* As the runtimes have it. */
static struct runtime_native native_of(const struct known *k, const struct whose *w,
				       const struct scripts_native *native, struct places *at)
{
	for (size_t i = 0; i < native->n; i++) {
		at->pc[i] = pc_of(native->frames[i]);
		at->vaddr[i] = vaddr_of(w, at->pc[i], k->index);
	}
	return (struct runtime_native){.pc = at->pc,
				       .sp = native->sp,
				       .vaddr = at->vaddr,
				       .n = native->n,
				       .complete = native->complete,
				       .fs_base = native->fs_base,
				       .tgid = w->p->tgid,
				       .tid = native->tid};
}

/* One stretch of frames after the other, as long as native code goes on between. */
static void follow(const struct known *k, const struct whose *w, struct scripts_native *native,
		   struct script_stack *out)
{
	struct places at;
	struct runtime_follow f = {0};
	struct runtime_native n = native_of(k, w, native, &at);

	while (k->kind->follow(k->runtime, &n, &f, out)) {
		native->resume(native->ctx, native, f.at + 1, &f);
		n = native_of(k, w, native, &at);
		f.from = f.at + 1;
		if (!f.goes_on)
			break;
	}
}

static void walk_kind(const struct known *k, const struct whose *w, struct scripts_native *native,
		      struct script_stack *out)
{
	struct places at;
	size_t from = out->n;

	if (k->kind->follow) {
		follow(k, w, native, out);
	} else {
		struct runtime_native n = native_of(k, w, native, &at);

		k->kind->stack(k->runtime, &n, out);
	}
	for (size_t i = from; i < out->n; i++) {
		out->frames[i].runtime = k->kind;
		out->frames[i].order = (uint32_t)i;
	}
}

void scripts_walk(struct hostmaps *hm, struct hostmaps_process *p, struct scripts_native *native,
		  uint64_t time_ns, struct script_stack *out, enum runtime_gil *gil)
{
	const struct known *found[SCRIPTS_RUNTIMES_MAX];
	const struct whose w = {hm, p, time_ns};
	size_t runtimes = native->n > STACK_USER_MAX ? 0 :
						       runtimes_find(hm, p, native, time_ns, found,
								     SCRIPTS_RUNTIMES_MAX);

	for (size_t r = 0; r < runtimes; r++) {
		walk_kind(found[r], &w, native, out);
		if (found[r]->kind->gil && *gil == RUNTIME_GIL_NEITHER)
			*gil = found[r]->kind->gil(found[r]->runtime, native->fs_base,
						   native->futex);
	}
	if (runtimes > 1 && out->n)
		qsort(out->frames, out->n, sizeof(out->frames[0]), by_place);
}
