/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_fuzz: any bytes as the memory of a process, in which a thread's JavaScript frames are looked
 * for. The first byte is the shape (enum v8_shape, less one); the others lie from BASE on: where
 * the builtins are, how many bytes, then what frames and objects there are.
 *
 * covers: loaders/lib/runtimes/v8/v8.c loaders/lib/runtimes/v8/v8object.c
 *         loaders/lib/runtimes/v8/v8code.c
 *         loaders/lib/runtimes/utf8.c
 *         loaders/lib/runtimes/v8/v8running.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/v8/v8.h"
#include "loaders/lib/runtimes/v8/v8tables.h"
#include "probes/runtimes/object.h"
#include "tests/fuzz/runtimes/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* seeds.sh goes by it. */
static struct v8_layout layout(unsigned shape)
{
	struct v8_layout l = {
		.format = V8_FORMAT,
		.version = 0x0b03,
		.known = 1,
		.blob = BASE,
		.blob_size = BASE + 8,
		.bytecodes = 8,
		.bytecode_sizes = BASE + 16,
		.n = {[V8_FP_CONTEXT] = -8,
		      [V8_FP_FUNCTION] = -16,
		      [V8_FP_BYTECODES] = -32,
		      [V8_FP_OFFSET] = -40,
		      [V8_MAP_TYPE] = 12,
		      [V8_FUNCTION_SHARED] = 24,
		      [V8_SHARED_DATA] = 8,
		      [V8_SHARED_NAME] = 16,
		      [V8_SHARED_SCRIPT] = 32,
		      [V8_SCRIPT_SOURCE] = 8,
		      [V8_SCRIPT_NAME] = 16,
		      [V8_SCRIPT_LINE_OFFSET] = 24,
		      [V8_ARRAY_LENGTH] = 8,
		      [V8_ARRAY_DATA] = 16,
		      [V8_STRING_LENGTH] = 12,
		      [V8_STRING_CHARS] = 16,
		      [V8_CONS_FIRST] = 16,
		      [V8_CONS_SECOND] = 24,
		      [V8_THIN_ACTUAL] = 16,
		      [V8_SLICED_PARENT] = 16,
		      [V8_SLICED_OFFSET] = 24,
		      [V8_EXTERNAL_DATA] = 24,
		      [V8_BYTECODES_LENGTH] = 8,
		      [V8_BYTECODES_DATA] = 54,
		      [V8_BYTECODES_POSITIONS] = 32,
		      [V8_INTERPRETER_BYTECODES] = 8,
		      [V8_BASELINE_BYTECODES] = 16,
		      [V8_SCOPE_LOCALS] = 24,
		      [V8_SCOPE_FIRST] = 32,
		      [V8_SCOPE_START] = V8_ABSENT,
		      [V8_STREAM_HEAD] = 16,
		      [V8_STREAM_CODE] = 8,
		      [V8_CODE_START] = 40,
		      [V8_CODE_SIZE] = 56,
		      [V8_CODE_FLAGS] = 48,
		      [V8_CODE_DEOPT] = 16,
		      [V8_CODE_POSITIONS] = 24,
		      [V8_KIND_INTERPRETED] = 10,
		      [V8_KIND_BASELINE] = 11,
		      [V8_KIND_MAGLEV] = 12,
		      [V8_KIND_TURBOFAN] = 13,
		      [V8_DEOPT_TRANSLATIONS] = 0,
		      [V8_DEOPT_LITERALS] = 2,
		      [V8_DEOPT_SHARED] = 6,
		      [V8_DEOPT_FIRST] = 11,
		      [V8_WRAPPED_SHARED] = 8,
		      [V8_TYPE_MAP] = 255,
		      [V8_TYPE_SHARED] = 262,
		      [V8_TYPE_SCRIPT] = 167,
		      [V8_TYPE_SCOPE] = 261,
		      [V8_TYPE_BYTECODES] = 191,
		      [V8_TYPE_INTERPRETER] = 159,
		      [V8_TYPE_BASELINE] = 94,
		      [V8_TYPE_CODE] = 245,
		      [V8_TYPE_STREAM] = 252,
		      [V8_TYPE_ARRAY] = 175,
		      [V8_TYPE_BYTES] = 190,
		      [V8_TYPE_TRUSTED_BYTES] = 212,
		      [V8_TYPE_FIRST_CONTEXT] = 205,
		      [V8_TYPE_LAST_CONTEXT] = 214,
		      [V8_TYPE_FIRST_FUNCTION] = 2066,
		      [V8_TYPE_LAST_FUNCTION] = 2082,
		      [V8_TYPE_FIRST_NONSTRING] = 128,
		      [V8_FRAME_CONTINUATION] = 20,
		      [V8_FRAME_CONTINUATION_CATCH] = 21,
		      [V8_SHAPE] = (int)shape},
	};

	return l;
}

/* The same frames by registers: interrupted in a builtin and in compiled code, and from return
 * addresses; functions as they are now, or as another moment had them: the words that the input
 * begins with. */
static void sampled(struct v8 *v, const uint8_t *data, size_t len, struct script_stack *s)
{
	static const uint64_t reg[16] = {
		[3] = BASE + 0x301,   [5] = BASE + 0x281,  [9] = 53,
		[10] = BASE + 0x1035, [12] = BASE + 0x401, [15] = BASE + 0x800};
	struct stack_object objects[2] = {{.at = BASE + 0x280}};
	uint8_t code[V8_CODE_BYTES] = {0};

	memcpy(code, data, len < sizeof(code) ? len : sizeof(code));
	memcpy(objects[0].word, data,
	       len < sizeof(objects[0].word) ? len : sizeof(objects[0].word));
	for (unsigned i = 0; i < 8; i++) {
		const struct v8_at at = {.pc = i & 1 ? BASE + (i & 4 ? 0x1030 : 0x1034) :
						       0x10000 - 0x800,
					 .vaddr = i & 1 ? RUNTIME_NO_FILE : 0x10000 - 0x800,
					 .sp = BASE + 0x100,
					 .fp = BASE + 0x170,
					 .reg = i & 2 ? reg : NULL,
					 .code = code,
					 .objects = objects,
					 .n_objects = i & 4 ? 2 : 0};
		struct runtime_follow to = {.at = 3};

		if (i & 1 && len >= at.pc - BASE + sizeof(code)) /* the code that is there now */
			memcpy(code, data + (at.pc - BASE), sizeof(code));
		v8_sampled_begin(v);
		if (v8_sampled(v, &at, &to, s) && to.goes_on && to.sp <= at.sp)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint64_t pc[4] = {0x10000 - 0x800, BASE + 0x1034, BASE + 0x1035,
				       0x10000 - 0x700};
	static const uint64_t sp[4] = {BASE + 0x40, BASE + 0x100, BASE + 0x180, BASE + 0x200};
	static const uint64_t vaddr[4] = {0x10000 - 0x800, RUNTIME_NO_FILE, RUNTIME_NO_FILE,
					  0x10000 - 0x700};
	struct bytes b = {data + 1, len ? len - 1 : 0};
	const struct runtime_memory m = {&b, read_bytes};
	struct runtime_native native = {
		.pc = pc, .sp = sp, .vaddr = vaddr, .n = 4, .complete = true};
	struct script_stack s = {0};
	struct v8_layout l;
	struct v8 *v;

	if (!len)
		return 0;
	l = layout(V8_SHAPE_9 + data[0] % 5);
	v = v8_open(&m, &l, sizeof(l), 0);
	v8_stack(v, &native, &s);
	v8_stack(v, &native, &s);
	sampled(v, b.data, b.len, &s);
	if (s.n > 8 * V8_INLINED_MAX + SCRIPT_STACK_MAX + V8_INLINED_MAX)
		abort();
	for (size_t i = 0; i < s.n; i++)
		if (s.frames[i].at >= native.n || !s.frames[i].place.function ||
		    strlen(s.frames[i].place.function) > 3 * (SCRIPT_TEXT_MAX + 3))
			abort();
	script_stack_release(&s);
	v8_close(v);
	return 0;
}
