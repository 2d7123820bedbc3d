/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/beam/beam.h"

#include <stdlib.h>

#include "loaders/lib/runtimes/beam/beamcall.h"
#include "loaders/lib/runtimes/beam/beamcode.h"
#include "loaders/lib/runtimes/beam/beamrun.h"
#include "schema/base/mem.h"

#define WORDS_MAX (1u << 14)    /* of a stack that is read */
#define NATIVE    (128u << 10)  /* below fs_base: the thread's own stack, as JIT code has it */
#define JIT_SPAN  (64ull << 20) /* code that modules share lies next to theirs */

struct beam {
	struct runtime_budget memory;
	struct beamcode code;
	struct beamrun run;
};

struct beam *beam_open(const struct runtime_memory *m, const void *section, size_t size,
		       uint64_t bias)
{
	struct beam_layout l;
	struct beam *b;

	if (!runtime_layout_take(&l, sizeof(l), BEAM_FORMAT, section, size))
		return NULL;
	b = mem_alloc(sizeof(*b));
	runtime_budget_begin(&b->memory, m);
	b->code = (struct beamcode){.m = m, .l = l, .bias = bias};
	if (!beamcode_find(&b->code)) {
		free(b);
		return NULL;
	}
	b->code.m = &b->memory.counted;
	beamrun_begin(&b->run, m, &b->code.l, bias);
	return b;
}

void beam_close(struct beam *b)
{
	free(b);
}

static bool has_frame_pointers(const struct beam *b)
{
	const struct runtime_memory *m = b->code.m;
	uint32_t layout = 0;

	return b->code.l.frames &&
	       (!m->read(m->ctx, b->code.l.frames + b->code.bias, &layout, sizeof(layout)) ||
		layout);
}

/* Appends the function at pc. false: it is not known. */
static bool add(const struct beam *b, const struct beam_module *module, uint64_t pc, bool returns,
		struct script_stack *out)
{
	struct script_place place = {0};

	if (!beamcode_place(&b->code, module, pc, returns, &place))
		return false;
	script_stack_add(out, 0)->place = place;
	return true;
}

/* Is it the thread's own stack? JIT code that is about to call C code, or has done so, is near its
 * beginning, and no heap is: a thread has at least 320 KiB. */
static bool is_native(const struct beam_at *at)
{
	return at->fs_base > at->sp && at->fs_base - at->sp < NATIVE;
}

/* The callers of the frame at hand. */
static enum beam_end walk(const struct beam *b, const struct beam_at *at, bool shared,
			  struct script_stack *out)
{
	const struct runtime_memory *m = b->code.m;
	struct beam_module module;
	uint64_t exit = 0, value;

	if (!runtime_word(m, b->code.l.exit + b->code.bias, &exit))
		return BEAM_CUT;
	for (uint32_t i = 0; i < WORDS_MAX && out->n < SCRIPT_STACK_MAX; i++) {
		if (8ull * (i + 1) > at->copied)
			return BEAM_SHORT;
		if (!runtime_word(m, at->sp + 8ull * i, &value))
			return BEAM_CUT;
		if (value == exit)
			return BEAM_WHOLE;
		if ((value & 3 && !(shared && !i)) || !beamcode_module(&b->code, value, &module))
			continue;
		if (!add(b, &module, value, true, out))
			return BEAM_CUT;
	}
	return BEAM_CUT;
}

/* Near to a module's code, where what modules share is, too. */
static bool is_shared(const struct beam *b, uint64_t pc)
{
	return beamcode_is_near(&b->code, pc, JIT_SPAN);
}

/* C code was called: the Erlang stack is elsewhere. */
static enum beam_end called(struct beam *b, const struct beam_at *at, struct runtime_follow *to,
			    struct script_stack *out)
{
	const struct beamcall call = beamcall_read(b->code.m, at->pc);
	const struct beam_piece *piece = call.stack == BEAMCALL_STORED ? &at->stored :
					 at->at_bp.at == at->bp        ? &at->at_bp :
					 at->stored.at == at->bp       ? &at->stored :
									 &(struct beam_piece){0};
	struct beam_at erlang = *at;
	const size_t n = out->n;
	enum beam_end end;

	if (call.stack == BEAMCALL_SCHEDULES && to->unnamed) {
		script_stack_add(out, 0)->place.function = mem_strdup("process_main");
		to->unnamed = false;
		return BEAM_WHOLE;
	}
	if (call.stack == BEAMCALL_UNKNOWN ||
	    (call.stack == BEAMCALL_STORED && !beamrun_top(&b->run, call.offset)) || !piece->size)
		return BEAM_CUT;
	erlang.sp = piece->at;
	erlang.copied = piece->size;
	end = walk(b, &erlang, to->unnamed, out);
	while (end == BEAM_CUT && out->n > n && out->n < SCRIPT_STACK_MAX)
		script_place_release(&out->frames[--out->n].place);
	return end;
}

bool beam_thread(struct beam *b, uint64_t fs_base, uint64_t process, uint64_t *running,
		 uint32_t *top)
{
	*top = b->run.top;
	return beamrun_find(&b->run, fs_base, process, running);
}

bool beam_sampled(struct beam *b, const struct beam_at *at, struct runtime_follow *to,
		  enum beam_end *end, struct script_stack *out)
{
	struct beam_module module;
	bool in_module;

	*to = (struct runtime_follow){0};
	*end = BEAM_CUT;
	b->memory.left = SCRIPT_READS_MAX;
	runtime_budget_fresh(&b->memory);
	in_module = beamcode_module(&b->code, at->pc - !at->interrupted, &module);
	if ((!in_module && !is_shared(b, at->pc)) || has_frame_pointers(b))
		return false;
	to->unnamed = !in_module || !add(b, &module, at->pc, !at->interrupted, out);
	if (!at->interrupted)
		*end = called(b, at, to, out);
	else if (!is_native(at) && !(at->sp & 7))
		*end = walk(b, at, to->unnamed, out);
	to->unnamed = to->unnamed && !out->n; /* what is shared is its caller's */
	return true;
}
