/* SPDX-License-Identifier: Apache-2.0 */
/* v8: see the header. */
#include "loaders/lib/runtimes/v8/v8.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/v8/v8_parts.h"
#include "schema/base/mem.h"

struct v8 *v8_open(const struct runtime_memory *m, const void *section, size_t size, uint64_t bias)
{
	struct v8_layout l;
	struct v8 *v;

	if (size != sizeof(l))
		return NULL;
	memcpy(&l, section, sizeof(l));
	if (l.format != V8_FORMAT || !l.known || l.n[V8_SHAPE] < V8_SHAPE_9 ||
	    l.n[V8_SHAPE] > V8_SHAPE_13)
		return NULL;
	l.bytecode_sizes += bias;
	v = mem_alloc(sizeof(*v));
	*v = (struct v8){.bias = bias};
	runtime_budget_begin(&v->memory, m);
	v->heap.m = &v->memory.counted;
	v->heap.l = l;
	return v;
}

void v8_close(struct v8 *v)
{
	if (!v)
		return;
	v8heap_release(&v->heap);
	v8_cache_release(&v->places);
	v8running_release(&v->running);
	free(v);
}

bool v8_builtins_find(struct v8 *v)
{
	uint32_t size = 0;

	if (v->builtins)
		return true;
	if (!runtime_word(v->heap.m, v->heap.l.blob + v->bias, &v->builtins) ||
	    !v->heap.m->read(v->heap.m->ctx, v->heap.l.blob_size + v->bias, &size, sizeof(size)) ||
	    !v->builtins || !size) {
		v->builtins = 0;
		return false;
	}
	v->builtins_end = v->builtins + size;
	return true;
}

/* Of the block of builtins, which V8 maps a second time near its other code; 10.2 makes copies,
 * which are no file's. */
bool v8_is_builtin(const struct v8 *v, uint64_t vaddr)
{
	return vaddr >= v->builtins - v->bias && vaddr < v->builtins_end - v->bias;
}

/* Where JavaScript runs, a builtin has called it. None: this is not where that file is mapped. */
static bool runs(struct v8 *v, const struct runtime_native *native)
{
	if (!v8_builtins_find(v))
		return false;
	for (size_t i = 0; i < native->n; i++)
		if (v8_is_builtin(v, native->vaddr[i]))
			return true;
	return false;
}

static bool between(struct v8heap *h, uint64_t object, enum v8_number first, enum v8_number last)
{
	int32_t type = v8_type(h, object);

	return type >= v8_n(h, first) && type <= v8_n(h, last);
}

/* What stands in place of the context in a frame of such a kind. */
static bool is_continuation(const struct v8heap *h, uint64_t word)
{
	return word == 2 * (uint64_t)v8_n(h, V8_FRAME_CONTINUATION) ||
	       word == 2 * (uint64_t)v8_n(h, V8_FRAME_CONTINUATION_CATCH);
}

/* The SharedFunctionInfo of the frame at `fp`; 0: it is no frame of JavaScript. */
static uint64_t frame_function(struct v8 *v, uint64_t fp)
{
	struct v8heap *h = &v->heap;
	uint64_t context = 0, function = 0;

	if (!runtime_word(h->m, fp + (uint64_t)(int64_t)v8_n(h, V8_FP_CONTEXT), &context) ||
	    !runtime_word(h->m, fp + (uint64_t)(int64_t)v8_n(h, V8_FP_FUNCTION), &function) ||
	    !(is_continuation(h, context) ||
	      between(h, context, V8_TYPE_FIRST_CONTEXT, V8_TYPE_LAST_CONTEXT)) ||
	    !between(h, function, V8_TYPE_FIRST_FUNCTION, V8_TYPE_LAST_FUNCTION))
		return 0;
	return v8_member(h, function, v8_n(h, V8_FUNCTION_SHARED), V8_TYPE_SHARED);
}

uint64_t v8_frame_bytecodes(struct v8 *v, uint64_t fp, uint64_t shared)
{
	uint64_t code = 0;

	return runtime_word(v->heap.m, fp + (uint64_t)(int64_t)v8_n(&v->heap, V8_FP_BYTECODES),
			    &code) &&
			       v8_bytecodes(&v->heap, shared) == code ?
		       code :
		       0;
}

int64_t v8_frame_offset(struct v8 *v, uint64_t fp)
{
	uint64_t tagged = 0;
	int64_t at = 0;

	if (!runtime_word(v->heap.m, fp + (uint64_t)(int64_t)v8_n(&v->heap, V8_FP_OFFSET),
			  &tagged) ||
	    !v8_small(tagged, &at))
		return V8_NOWHERE;
	return at - (v8_n(&v->heap, V8_BYTECODES_DATA) - 1);
}

/* Where in its bytecode a frame is that was not optimised. */
static int64_t bytecode_at(struct v8 *v, uint64_t pc, const struct v8_code *code, uint64_t fp,
			   uint64_t shared)
{
	uint64_t bytecodes;

	bytecodes = v8_frame_bytecodes(v, fp, shared);
	if (code->tier != V8_TIER_BASELINE)
		return bytecodes ? v8_frame_offset(v, fp) : V8_NOWHERE;
	return bytecodes ? v8code_baseline(&v->heap, code, bytecodes, pc) : V8_NOWHERE;
}

/* The frame at `fp` of a function, whose code is at `pc`, a return address. */
static void frame(struct v8 *v, uint64_t pc, const struct v8_code *code, uint64_t fp,
		  uint64_t shared, size_t at, struct script_stack *out)
{
	bool optimised = code->tier == V8_TIER_MAGLEV || code->tier == V8_TIER_TURBOFAN;

	if (!optimised || !v8code_optimised(&v->heap, code, shared, pc, at, out))
		v8_frame_add(&v->heap, shared,
			     optimised ? V8_NOWHERE : bytecode_at(v, pc, code, fp, shared), at,
			     out);
}

void v8_stack(struct v8 *v, const struct runtime_native *native, struct script_stack *out)
{
	runtime_budget_fresh(&v->memory);
	v8heap_fresh(&v->heap);
	v8codes_fresh(&v->codes);
	if (!runs(v, native))
		return;
	for (size_t i = 0; i + 1 < native->n && out->n < SCRIPT_STACK_MAX; i++) {
		uint64_t fp = native->sp[i + 1] - 2 * sizeof(uint64_t), shared = 0;
		bool own = native->vaddr[i] == RUNTIME_NO_FILE;
		struct v8_code code;

		if ((own || v8_is_builtin(v, native->vaddr[i])) && !(fp & 7) && fp >= native->sp[i])
			shared = frame_function(v, fp);
		if (!shared)
			continue;
		if (!own || !v8code_find(&v->heap, &v->codes, native->pc[i], &code))
			code = (struct v8_code){0};
		frame(v, native->pc[i] + 1, &code, fp, shared, i, out);
	}
	out->cut |= out->n >= SCRIPT_STACK_MAX || !v->memory.left;
}
