// SPDX-License-Identifier: Apache-2.0
#include "loaders/pstack/scripts.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "probes/stack.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"

/* A process that was asked for. */
struct known {
	uint32_t tgid;
	uint64_t start_ns, bias;
	const struct image *index;
	struct runtime_memory memory;
	struct python *python; /* NULL: no interpreter to be read there */
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
		python_close(known[i]->python);
		free(known[i]);
	}
	free(known);
	known = NULL;
	n_known = cap_known = 0;
}

static struct python *python_of(const struct hostmaps_process *p, const struct image *index, uint64_t bias)
{
	const void *section;
	struct known *k;
	size_t size;

	for (size_t i = 0; i < n_known; i++)
		if (known[i]->tgid == p->tgid && known[i]->start_ns == p->start_ns && known[i]->index == index && known[i]->bias == bias)
			return known[i]->python;
	k = mem_alloc(sizeof(*k));
	*k = (struct known){.tgid = p->tgid, .start_ns = p->start_ns, .bias = bias, .index = index, .memory = {.ctx = k, .read = memory_read}};
	if (image_python(index, &section, &size))
		k->python = python_open(&k->memory, section, size, bias);
	mem_grow(known, n_known, cap_known);
	known[n_known++] = k;
	return k->python;
}

/* Where a native frame is looked up. */
static uint64_t pc_of(uint64_t frame)
{
	return FRAME_ADDRESS(frame) - !(frame & FRAME_EXACT);
}

/* The interpreter that this stack's frames lie in; NULL: none. */
static struct python *python_find(struct hostmaps *hm, struct hostmaps_process *p, const struct scripts_native *native,
				  uint64_t time_ns)
{
	for (size_t i = 0; i < native->n; i++) {
		uint64_t pc = pc_of(native->frames[i]), vaddr;
		struct hostmaps_frame at;
		const void *section;
		size_t size;

		hostmaps_frame(hm, p, pc, time_ns, &at);
		if (at.image && at.image->index && image_python(at.image->index, &section, &size) &&
		    image_offset_to_vaddr(at.image->index, at.offset, &vaddr))
			return python_of(p, at.image->index, pc - vaddr);
	}
	return NULL;
}

void scripts_walk(struct hostmaps *hm, struct hostmaps_process *p, const struct scripts_native *native, uint64_t time_ns,
		  struct script_stack *out, enum python_gil *gil)
{
	struct python *python = python_find(hm, p, native, time_ns);
	uint64_t pc[STACK_USER_MAX];

	if (!python || native->n > STACK_USER_MAX)
		return;
	for (size_t i = 0; i < native->n; i++)
		pc[i] = pc_of(native->frames[i]);
	python_stack(python,
		     &(struct python_native){.pc = pc, .sp = native->sp, .n = native->n, .complete = native->complete, .fs_base = native->fs_base},
		     out);
	*gil = python_gil(python, native->fs_base, native->futex);
}
