// SPDX-License-Identifier: Apache-2.0
#include "loaders/pstack/scripts.h"

#include <sys/uio.h>

#include "probes/stack.h"
#include "schema/image/image.h"

/* The process that was asked for last: threads come in the order of their ids, those of one mostly together. */
static struct {
	uint32_t tgid;
	uint64_t start_ns, bias;
	const struct image *index;
	struct python *python; /* NULL: no interpreter to be read there */
} last;

static bool memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct iovec into = {to, len}, from = {(void *)(uintptr_t)addr, len};

	(void)ctx;
	return process_vm_readv((pid_t)last.tgid, &into, 1, &from, 1, 0) == (ssize_t)len;
}

static const struct runtime_memory memory = {.read = memory_read};

void scripts_forget(void)
{
	python_close(last.python);
	last.python = NULL;
	last.tgid = 0;
}

static struct python *python_of(const struct hostmaps_process *p, const struct image *index, uint64_t bias)
{
	const void *section;
	size_t size;

	if (last.tgid == p->tgid && last.start_ns == p->start_ns && last.index == index && last.bias == bias)
		return last.python;
	scripts_forget();
	last.tgid = p->tgid;
	last.start_ns = p->start_ns;
	last.index = index;
	last.bias = bias;
	if (image_python(index, &section, &size))
		last.python = python_open(&memory, section, size, bias);
	return last.python;
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
