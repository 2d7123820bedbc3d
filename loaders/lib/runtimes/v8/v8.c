/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "loaders/lib/runtimes/v8/v8code.h"
#include "loaders/lib/runtimes/v8/v8object.h"
#include "loaders/lib/runtimes/v8/v8running.h"
#include "loaders/lib/runtimes/v8/v8tables.h"
#include "probes/runtimes/object.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

/*
 * The cache: names and places of JavaScript functions, kept from one sampled stack to the next.
 *
 * 1. The key of a place is the function's SharedFunctionInfo and the offset in its bytecode.
 * 2. It is valid as long as its sources are unchanged: the function's name, script and literal's
 *    number, the script's number, source and name, the bytecode and whether it has source
 *    positions. If an object was moved or freed and another took its place, these differ: the
 *    script's number is not reused.
 * 3. The sources are read before and after the place: if they change in between, there is no place.
 */

#define V8_CACHE_MAX 8192u

struct v8_cache {
	struct v8_place *all; /* own */
};

#define TRIES        4
#define SHARED_BYTES 64u /* of a SharedFunctionInfo, from its name on */

struct key {
	uint64_t shared;
	int64_t bytecode;
};

struct v8_place {
	struct key key;
	uint64_t cookie;
	struct script_place place; /* own */
	UT_hash_handle hh;
};

static void place_free(struct v8_cache *p, struct v8_place *place)
{
	HASH_DELETE(hh, p->all, place);
	script_place_release(&place->place);
	free(place);
}

static void v8_cache_release(struct v8_cache *p)
{
	struct v8_place *place, *next;

	HASH_ITER (hh, p->all, place, next)
		place_free(p, place);
}

/* 0: it cannot be read, or is not a function. */
static uint64_t cookie_read(struct v8heap *h, uint64_t shared, int64_t bytecode)
{
	struct {
		uint64_t script, bytecodes, positions;
		uint8_t shared_bytes[SHARED_BYTES], script_bytes[V8_SCRIPT_BYTES];
	} of = {0};

	if (!v8_is(h, shared, V8_TYPE_SHARED) ||
	    !h->m->read(h->m->ctx, shared - 1 + (uint64_t)v8_n(h, V8_SHARED_NAME), of.shared_bytes,
			sizeof(of.shared_bytes)))
		return 0;
	of.script = v8_member(h, shared, v8_n(h, V8_SHARED_SCRIPT), V8_TYPE_SCRIPT);
	if (of.script &&
	    !h->m->read(h->m->ctx, of.script - 1, of.script_bytes, sizeof(of.script_bytes)))
		return 0;
	of.bytecodes = of.script && bytecode >= 0 ? v8_bytecodes(h, shared) : 0;
	if (of.bytecodes)
		v8_word(h, of.bytecodes, v8_n(h, V8_BYTECODES_POSITIONS), &of.positions);
	return hash_bytes(HASH_SEED, &of, sizeof(of)) | 1;
}

/* 0: it cannot be read, or keeps changing. The collector notes in a function how long its bytecode
 * was not used: try again then. */
static uint64_t place_read(struct v8heap *h, struct runtime_budget *b, uint64_t shared,
			   int64_t bytecode, uint64_t cookie, struct script_place *found)
{
	for (int i = 0; i < TRIES && cookie; i++) {
		uint64_t before = cookie;

		v8_place_read(h, shared, bytecode, found);
		runtime_budget_fresh(b);
		cookie = cookie_read(h, shared, bytecode);
		if (cookie == before)
			return cookie;
		script_place_release(found);
	}
	return 0;
}

/* Borrowed until the next call; its function is NULL: it has no name and is left out. NULL: it is
 * not to be had, or changed while it was read. `b` is what `h` reads by. */
static const struct script_place *v8_cache_get(struct v8_cache *p, struct v8heap *h,
					       struct runtime_budget *b, uint64_t shared,
					       int64_t bytecode)
{
	struct key key;
	struct v8_place *place;
	struct script_place found;
	uint64_t cookie = cookie_read(h, shared, bytecode);

	memset(&key, 0, sizeof(key));
	key.shared = shared;
	key.bytecode = bytecode < 0 ? V8_NOWHERE : bytecode;
	if (!cookie)
		return NULL;
	HASH_FIND(hh, p->all, &key, sizeof(key), place);
	if (place && place->cookie == cookie)
		return &place->place;
	if (place)
		place_free(p, place);
	cookie = place_read(h, b, shared, bytecode, cookie, &found);
	if (!cookie)
		return NULL;
	if (HASH_COUNT(p->all) >= V8_CACHE_MAX)
		v8_cache_release(p);
	place = mem_alloc(sizeof(*place));
	*place = (struct v8_place){.key = key, .cookie = cookie, .place = found};
	HASH_ADD(hh, p->all, key, sizeof(key), place);
	return &place->place;
}

struct v8 {
	struct runtime_budget memory;
	struct v8heap heap;
	struct v8codes codes;
	uint64_t bias, builtins, builtins_end;
	/* of sampled stacks */
	struct v8_cache places;
	struct v8running running;
	uint64_t handlers; /* the table of the bytecodes' handlers, as read last; 0: none */
	uint64_t handler[V8_BYTECODES_MAX];
};

struct v8 *v8_open(const struct runtime_memory *m, const void *section, size_t size, uint64_t bias)
{
	struct v8_layout l;
	struct v8 *v;

	if (!runtime_layout_take(&l, sizeof(l), V8_FORMAT, section, size) || !l.known ||
	    l.n[V8_SHAPE] < V8_SHAPE_9 || l.n[V8_SHAPE] > V8_SHAPE_14)
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

/* Where its builtins are; they may not have been there before. */
static bool v8_builtins_find(struct v8 *v)
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
static bool v8_is_builtin(const struct v8 *v, uint64_t vaddr)
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

/* The word in place of the context in such a frame. */
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

/* The frame's bytecode; 0: it is not this function's. */
static uint64_t v8_frame_bytecodes(struct v8 *v, uint64_t fp, uint64_t shared)
{
	uint64_t code = 0;

	return runtime_word(v->heap.m, fp + (uint64_t)(int64_t)v8_n(&v->heap, V8_FP_BYTECODES),
			    &code) &&
			       v8_bytecodes(&v->heap, shared) == code ?
		       code :
		       0;
}

/* Where in that bytecode an interpreted frame says it is; V8_NOWHERE: it does not. */
static int64_t v8_frame_offset(struct v8 *v, uint64_t fp)
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

/* ---- sampled threads: they have gone on since ---- */

#define WORD        8ull
#define READS       20000u      /* of memory, for one stack */
#define HANDLER_MAX (64u << 10) /* bytes of a bytecode's handler */
#define ENTRY_BYTES                                                                               \
	160u              /* a function's instructions before its frame is set up are within this \
			   */
#define PUSHED (2 * WORD) /* below the frame pointer: context, function */
enum { RDI = 5, R9 = 9, R10 = 10, R12 = 12, R15 = 15 };

uint64_t v8_builtins(struct v8 *v)
{
	return v8_builtins_find(v) ? v->builtins : 0;
}

void v8_sampled_begin(struct v8 *v)
{
	v->memory.left = READS * SCRIPT_READ_SHARE;
	runtime_budget_again(&v->memory);
	v8heap_fresh(&v->heap);
	v8codes_turn(&v->codes);
}

/* ---- which function ---- */

static const struct stack_object *object_then(const struct v8_at *at, uint64_t tagged)
{
	for (size_t i = 0; i < at->n_objects; i++)
		if (at->objects[i].at && at->objects[i].at == tagged - 1)
			return &at->objects[i];
	return NULL;
}

/* One that was being moved has its new address in place of its map. */
static int32_t type_then(struct v8heap *h, const struct stack_object *o)
{
	return v8_is_object(o->word[0]) ? v8_map_type(h, o->word[0]) : v8_type(h, o->word[0] + 1);
}

struct function {
	uint64_t shared; /* 0: none */
	bool then;       /* as the frame had it when the sample was taken */
};

static struct function function_of(struct v8heap *h, const struct v8_at *at, uint64_t tagged)
{
	const struct stack_object *o = v8_is_object(tagged) ? object_then(at, tagged) : NULL;
	uint32_t shared = (uint32_t)v8_n(h, V8_FUNCTION_SHARED);
	struct function f = {.then = o && !(shared % WORD) && shared / WORD < STACK_OBJECT_WORDS};
	int32_t type = f.then ? type_then(h, o) : v8_type(h, tagged);

	if (type < v8_n(h, V8_TYPE_FIRST_FUNCTION) || type > v8_n(h, V8_TYPE_LAST_FUNCTION))
		return f;
	if (f.then)
		f.shared = o->word[shared / WORD];
	else if (!v8_word(h, tagged, (int32_t)shared, &f.shared))
		f.shared = 0;
	f.shared = v8_is(h, f.shared, V8_TYPE_SHARED) ? f.shared : 0;
	return f;
}

/* The function of the frame at fp; frames of other kinds have a number in the context's place. */
static struct function sampled_function(struct v8 *v, const struct v8_at *at)
{
	struct v8heap *h = &v->heap;
	uint64_t context = 0, function = 0;

	if (at->fp & 7 || at->fp < at->sp + PUSHED ||
	    !runtime_word(h->m, at->fp + (uint64_t)(int64_t)v8_n(h, V8_FP_CONTEXT), &context) ||
	    !runtime_word(h->m, at->fp + (uint64_t)(int64_t)v8_n(h, V8_FP_FUNCTION), &function))
		return (struct function){0};
	if (!v8_is_object(context) && context != 2 * (uint64_t)v8_n(h, V8_FRAME_CONTINUATION) &&
	    context != 2 * (uint64_t)v8_n(h, V8_FRAME_CONTINUATION_CATCH))
		return (struct function){0};
	return function_of(h, at, function);
}

/* ---- saying it ---- */

/* A function without a name that is no script's is left out. false: what it is called is not
 * certain. */
static bool say(struct v8 *v, uint64_t shared, int64_t bytecode, size_t at,
		struct script_stack *out)
{
	const struct script_place *p =
		v8_cache_get(&v->places, &v->heap, &v->memory, shared, bytecode);

	if (!p)
		return false;
	if (p->function)
		script_stack_add(out, at)->place =
			(struct script_place){.function = mem_strdup(p->function),
					      .file = p->file ? mem_strdup(p->file) : NULL,
					      .line = bytecode >= 0 ? p->line : 0};
	return true;
}

static bool caller(struct v8 *v, const struct v8_at *at, struct runtime_follow *to)
{
	to->sp = at->fp + 2 * WORD;
	to->goes_on = at->fp >= at->sp && !(at->fp & 7) &&
		      runtime_word(v->heap.m, at->fp, &to->bp) &&
		      runtime_word(v->heap.m, at->fp + WORD, &to->pc) && to->pc;
	return to->goes_on;
}

static bool is_optimised(const struct v8_code *code)
{
	return code->tier == V8_TIER_MAGLEV || code->tier == V8_TIER_TURBOFAN;
}

static bool is_code_of(struct v8 *v, const struct v8_code *code, uint64_t shared)
{
	if (code->tier == V8_TIER_BASELINE)
		return v8code_is_baseline_of(&v->heap, code, shared);
	return is_optimised(code) && v8code_own(&v->heap, code) == shared;
}

static int64_t baseline_at(struct v8 *v, const struct v8_at *at, const struct v8_code *code,
			   uint64_t shared, uint64_t pc)
{
	uint64_t bytecodes =
		at->fp >= at->sp + 5 * WORD ? v8_frame_bytecodes(v, at->fp, shared) : 0;

	return bytecodes ? v8code_baseline(&v->heap, code, bytecodes, pc) : V8_NOWHERE;
}

/* ---- a frame that has called ---- */

/* Innermost first. false: nothing was said. */
static bool functions_say(struct v8 *v, const struct v8_function *functions, size_t n, size_t place,
			  struct script_stack *out)
{
	size_t before = out->n;
	bool all = n > 0;

	while (n && all) {
		n--;
		all = say(v, functions[n].shared, functions[n].bytecode, place, out);
	}
	while (!all && out->n > before)
		script_place_release(&out->frames[--out->n].place);
	return all;
}

static bool inlined_say(struct v8 *v, const struct v8_at *at, const struct v8_code *code,
			uint64_t shared, size_t place, struct script_stack *out)
{
	struct v8_function functions[V8_INLINED_MAX];

	return functions_say(v, functions,
			     v8code_inlined(&v->heap, code, shared, at->pc, functions), place, out);
}

static bool called(struct v8 *v, const struct v8_at *at, const struct v8_code *code,
		   struct function f, size_t place, struct script_stack *out)
{
	int64_t bytecode = V8_NOWHERE;
	bool sure = f.then;

	if (is_optimised(code)) {
		if (inlined_say(v, at, code, f.shared, place, out))
			return true;
		sure |= is_code_of(v, code, f.shared);
	} else if (code->tier == V8_TIER_BASELINE) {
		sure |= is_code_of(v, code, f.shared);
		bytecode = is_code_of(v, code, f.shared) ?
				   baseline_at(v, at, code, f.shared, at->pc) :
				   V8_NOWHERE;
	} else if (v8_frame_bytecodes(v, at->fp, f.shared)) {
		sure = true;
		bytecode = v8_frame_offset(v, at->fp);
	}
	return sure && say(v, f.shared, bytecode, place, out);
}

/* ---- the frame that was interrupted ---- */

static bool handlers_read(struct v8 *v, uint64_t table)
{
	if (v->handlers == table)
		return true;
	v->handlers = 0;
	if (!table || table & 7 ||
	    !v->heap.m->read(v->heap.m->ctx, table, v->handler, sizeof(v->handler)))
		return false;
	v->handlers = table;
	return true;
}

/* The handler of this bytecode begins at or before pc, and no other does between. */
static bool is_in_handler(const struct v8 *v, uint8_t op, uint64_t pc)
{
	uint64_t from = v->handler[op];

	if (!from || pc < from || pc - from > HANDLER_MAX)
		return false;
	for (unsigned i = 0; i < V8_BYTECODES_MAX; i++)
		if (v->handler[i] > from && v->handler[i] <= pc)
			return false;
	return true;
}

/* Where in its bytecode an interpreted function was interrupted. */
static int64_t interpreted_at(struct v8 *v, const struct v8_at *at, uint64_t shared)
{
	struct v8heap *h = &v->heap;
	uint64_t bytecodes =
			 at->fp >= at->sp + 4 * WORD ? v8_frame_bytecodes(v, at->fp, shared) : 0,
		 tagged = 0;
	uint64_t offset = at->reg[R9] - ((uint64_t)v8_n(h, V8_BYTECODES_DATA) - 1);
	int64_t length = 0;
	uint8_t op = 0;

	if (!bytecodes || at->reg[R12] != bytecodes ||
	    !v8_word(h, bytecodes, v8_n(h, V8_BYTECODES_LENGTH), &tagged) ||
	    !v8_small(tagged, &length) || length <= 0 || offset >= (uint64_t)length ||
	    !h->m->read(h->m->ctx, bytecodes + at->reg[R9], &op, 1) ||
	    !handlers_read(v, at->reg[R15]))
		return V8_NOWHERE;
	return is_in_handler(v, op, at->pc) ? (int64_t)offset : V8_NOWHERE;
}

/* Is there a call before this address? E8, or FF /2 of a register or of memory. */
static bool is_return(struct v8 *v, uint64_t pc)
{
	uint8_t b[7];

	if (!v->heap.m->read(v->heap.m->ctx, pc - sizeof(b), b, sizeof(b)))
		return false;
	return b[2] == 0xe8 || (b[5] == 0xff && (b[6] & 0xf8) == 0xd0) ||
	       (b[4] == 0xff && (b[5] & 0xf8) == 0x50) || (b[1] == 0xff && (b[2] & 0xf8) == 0x90);
}

/* The caller by a return address at `slot`, with the frame pointer that is in force again, or that
 * is kept in the word before. */
static bool leave(struct v8 *v, const struct v8_at *at, uint64_t slot, bool keeps,
		  struct runtime_follow *to)
{
	to->bp = at->fp;
	to->sp = slot + WORD;
	if (slot < at->sp || !runtime_word(v->heap.m, slot, &to->pc) ||
	    (keeps && !runtime_word(v->heap.m, slot - WORD, &to->bp)))
		return false;
	to->goes_on = is_return(v, to->pc);
	return to->goes_on;
}

/* push rbp; mov rbp,rsp: from the function's start on. ENTRY_BYTES: it is not found. */
static uint64_t frame_begins(struct v8 *v, const struct v8_code *code)
{
	uint8_t b[ENTRY_BYTES];

	if (code->end - code->start < sizeof(b) ||
	    !v->heap.m->read(v->heap.m->ctx, code->start, b, sizeof(b)))
		return ENTRY_BYTES;
	for (unsigned i = 0; i + 4 <= sizeof(b); i++)
		if (b[i] == 0x55 && b[i + 1] == 0x48 && b[i + 2] == 0x89 && b[i + 3] == 0xe5)
			return i;
	return ENTRY_BYTES;
}

/* Behind `pop rbp`, before the return: cmp rcx, N; jg; ret; pop r10; lea rsp,[rsp + 8 * rcx]; push
 * r10. */
static bool is_leaving(const uint8_t *c)
{
	return c[0] == 0xc3 || c[0] == 0xc2 ||
	       (c[0] == 0x48 && (c[1] == 0x83 || c[1] == 0x81) && c[2] == 0xf9) || c[0] == 0x7f ||
	       (c[0] == 0x0f && c[1] == 0x8f) || (c[0] == 0x41 && c[1] == 0x5a);
}

/* Has its frame begun? If not, or not any more, *to is its caller. */
static bool is_without_frame(struct v8 *v, const struct v8_at *at, const struct v8_code *code,
			     bool mine, struct runtime_follow *to)
{
	uint64_t begins = frame_begins(v, code), pc = at->pc - code->start;

	if (begins < ENTRY_BYTES && pc <= begins)
		return leave(v, at, at->sp, false, to);
	if (begins < ENTRY_BYTES && pc == begins + 1)
		return leave(v, at, at->sp + WORD, true, to);
	return !mine && is_leaving(at->code) && leave(v, at, at->sp, false, to);
}

/* The function that the code at pc is of, where its frame does not say so. rdi has it when it is
 * entered. */
static uint64_t code_function(struct v8 *v, const struct v8_at *at, const struct v8_code *code)
{
	struct function f;

	if (is_optimised(code))
		return v8code_own(&v->heap, code);
	f = function_of(&v->heap, at, at->reg[RDI]);
	return f.shared && is_code_of(v, code, f.shared) ? f.shared : 0;
}

static bool is_same_code(struct v8 *v, const struct v8_at *at)
{
	uint8_t now[V8_CODE_BYTES];

	return v->heap.m->read(v->heap.m->ctx, at->pc, now, sizeof(now)) &&
	       !memcmp(now, at->code, sizeof(now));
}

static bool running_say(struct v8 *v, const struct v8_at *at, const struct v8_code *code,
			uint64_t shared, size_t place, struct script_stack *out)
{
	struct v8_function functions[V8_INLINED_MAX];

	return functions_say(v, functions,
			     v8running_at(&v->running, &v->heap, code, shared, at->pc, functions),
			     place, out);
}

static bool interrupted_own(struct v8 *v, const struct v8_at *at, const struct v8_code *code,
			    struct runtime_follow *to, struct script_stack *out)
{
	struct function f = sampled_function(v, at);
	bool mine = f.shared && is_code_of(v, code, f.shared);
	uint64_t own;

	if (!is_same_code(v, at) || !(is_optimised(code) || code->tier == V8_TIER_BASELINE))
		return false;
	if (is_without_frame(v, at, code, mine, to)) {
		own = code_function(v, at, code);
		to->unnamed = !own || !say(v, own, V8_NOWHERE, to->at, out);
		return true;
	}
	if (!mine || !caller(v, at, to))
		return false;
	if (is_optimised(code) && running_say(v, at, code, f.shared, to->at, out))
		return true;
	to->unnamed = !say(v, f.shared,
			   code->tier == V8_TIER_BASELINE ?
				   baseline_at(v, at, code, f.shared, at->pc + 1) :
				   V8_NOWHERE,
			   to->at, out);
	return true;
}

/* A builtin without a frame was called from compiled code of the function with the frame at fp: its
 * return address is on top. */
static bool builtin_called(struct v8 *v, const struct v8_at *at, struct function f,
			   struct runtime_follow *to, struct script_stack *out)
{
	struct v8_at from = *at;
	struct v8_code code;

	return runtime_word(v->heap.m, at->sp, &from.pc) &&
	       v8code_find(&v->heap, &v->codes, from.pc - 1, &code) &&
	       is_code_of(v, &code, f.shared) && is_return(v, from.pc) &&
	       called(v, &from, &code, f, to->at, out);
}

/* In a builtin, which may have no frame, or none yet: then the frame pointer is its caller's. */
static bool interrupted_builtin(struct v8 *v, const struct v8_at *at, struct runtime_follow *to,
				struct script_stack *out)
{
	struct function f = sampled_function(v, at);
	int64_t bytecode;

	if (!f.shared || !caller(v, at, to))
		return false;
	to->unnamed = true;
	if (builtin_called(v, at, f, to, out))
		return true;
	bytecode = interpreted_at(v, at, f.shared);
	return (bytecode >= 0 || f.then) && say(v, f.shared, bytecode, to->at, out);
}

bool v8_sampled(struct v8 *v, const struct v8_at *at, struct runtime_follow *to,
		struct script_stack *out)
{
	bool own = at->vaddr == RUNTIME_NO_FILE;
	struct v8_code code = {0};
	struct function f;

	to->goes_on = to->unnamed = false;
	if (!v8_builtins_find(v) || (!own && !v8_is_builtin(v, at->vaddr)))
		return false;
	if (own && !v8code_find(&v->heap, &v->codes, at->reg ? at->pc : at->pc - 1, &code))
		code = (struct v8_code){0};
	if (at->reg)
		return code.code ? interrupted_own(v, at, &code, to, out) :
				   interrupted_builtin(v, at, to, out);
	f = sampled_function(v, at);
	return f.shared && called(v, at, &code, f, to->at, out) && caller(v, at, to);
}
