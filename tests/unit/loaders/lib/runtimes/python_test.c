/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's Python frames between its native ones: each shape of frames, and memory that lies. */
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include "loaders/lib/runtimes/python.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"

#define THREAD_ID 0x7f1234567000ull

static struct fake f;
static uint64_t interp, state_at;

/* An interpreter with one thread. */
static void begin(enum python_shape shape)
{
	fake_begin(&f);
	f.l.shape = (uint8_t)shape;
	if (shape != PYTHON_CFRAMES)
		f.l.cframe_frame = PYTHON_NO_CFRAME;
	if (shape == PYTHON_OBJECTS) {
		f.l.lines = PYTHON_LINES_36;
		f.l.at_scale = 1;
		f.l.loop_start[0] = 0x100000;
		f.l.loop_end[0] = 0x200000;
	}
	interp = fake_room(&f, 64);
	fake_word(&f, FAKE_BASE + 0x800, interp);
	state_at = fake_room(&f, 256);
	fake_word(&f, interp + f.l.interp_threads, state_at);
	fake_word(&f, state_at + f.l.thread_id, THREAD_ID);
}

/* A frame of function `name` that returns to `back`. */
static uint64_t frame(const char *name, uint64_t back, uint8_t owner)
{
	uint64_t at = fake_room(&f, 80),
		 code = name ? fake_code(&f, fake_ascii(&f, name), fake_ascii(&f, "a.py"), 10) : 0;

	fake_word(&f, at + f.l.frame_code, code);
	fake_word(&f, at + f.l.frame_back, back);
	if (f.l.shape == PYTHON_OBJECTS)
		fake_word(&f, at + f.l.frame_at, 0xffffffff); /* -1: has not begun */
	else
		fake_word(&f, at + f.l.frame_at, code + f.l.code_start);
	if (f.l.shape != PYTHON_OBJECTS)
		fake_put(&f, at + f.l.frame_owner, &owner, 1);
	return at;
}

/* The names of the frames and their places among the native frames: "a:0 b:0 c:2". */
static char *told_of(const struct runtime_native *n)
{
	struct strbuf s = STRBUF_INIT;
	struct script_stack stack = {0};
	struct python *p = python_open(&f.m, &f.l, sizeof(f.l), FAKE_BIAS);

	assert_non_null(p);
	python_stack(p, n, &stack);
	for (size_t i = 0; i < stack.n; i++)
		strbuf_addf(&s, "%s%s:%zu", i ? " " : "",
			    stack.frames[i].place.function ? stack.frames[i].place.function : "?",
			    stack.frames[i].at);
	if (stack.cut)
		strbuf_addstr(&s, " cut");
	script_stack_release(&stack);
	python_close(p);
	return strbuf_take(&s);
}

static void check(const struct runtime_native *n, const char *want)
{
	cleanup_free char *told = told_of(n);

	assert_string_equal(told, want);
}

/* Frames of native code whose stack pointers are FAKE_BASE + 0x20000 + 0x1000 * i. */
static struct runtime_native native(const uint64_t *pc, size_t n, bool complete)
{
	static uint64_t sp[16], outside[16];

	for (size_t i = 0; i < n; i++)
		sp[i] = FAKE_BASE + 0x20000 + 0x1000 * i;
	return (struct runtime_native){.pc = pc ? pc : outside,
				       .sp = sp,
				       .n = n,
				       .complete = complete,
				       .fs_base = THREAD_ID};
}

#define STACK(i, at) (FAKE_BASE + 0x20000 + 0x1000 * (i) + (at))

/* A _PyCFrame on the native stack. */
static uint64_t cframe(uint64_t at, uint64_t current, uint64_t back)
{
	fake_word(&f, at + f.l.cframe_frame, current);
	fake_word(&f, at + f.l.cframe_back, back);
	return at;
}

TEST(chunks_stand_for_the_native_frames_that_hold_their_cframes)
{
	struct runtime_native n = native(NULL, 6, true);
	uint64_t outer, inner, c;

	begin(PYTHON_CFRAMES);
	outer = frame("main", 0, 1);
	outer = frame("called", outer, 0);
	inner = frame("key", outer, 1);
	c = cframe(STACK(4, 0x20), outer, 0);
	c = cframe(STACK(1, 0x80), inner, c);
	fake_word(&f, state_at + f.l.thread_frame, c);
	check(&n, "key:1 called:4 main:4");
}

TEST(a_call_of_the_loop_that_has_no_frame_yet_gets_none)
{
	struct runtime_native n = native(NULL, 4, true);
	uint64_t c, outer;

	begin(PYTHON_CFRAMES); /* the loop is native frames 0 and 2: the innermost call has not set
				  up its _PyCFrame */
	outer = frame("main", 0, 1);
	c = cframe(STACK(2, 0), outer, 0);
	fake_word(&f, state_at + f.l.thread_frame, c);
	check(&n, "main:2");
}

/* A shim on the native stack. */
static uint64_t shim(uint64_t at, uint64_t back)
{
	uint8_t owner = 3;

	fake_word(&f, at + f.l.frame_code, FAKE_BASE + 0x900); /* None */
	fake_word(&f, at + f.l.frame_back, back);
	fake_put(&f, at + f.l.frame_owner, &owner, 1);
	return at;
}

static uint64_t two_chunks(uint64_t outer_mark, uint64_t inner_mark)
{
	uint64_t at = shim(outer_mark, 0);

	at = frame("main", at, 0);
	at = frame("called", at, 0);
	at = shim(inner_mark, at);
	return frame("key", at, 1);
}

TEST(shims_close_chunks_and_are_not_shown)
{
	struct runtime_native n = native(NULL, 6, true);

	begin(PYTHON_SHIMS);
	fake_word(&f, state_at + f.l.thread_frame, two_chunks(STACK(3, 8), STACK(0, 0)));
	check(&n, "key:0 called:3 main:3");
}

TEST(tags_of_a_reference_are_no_part_of_the_address)
{
	struct runtime_native n = native(NULL, 3, true);
	uint64_t at, word = 0;

	begin(PYTHON_SHIMS);
	at = frame("tagged", shim(STACK(1, 0), 0), 0);
	fake_read(&f, at + f.l.frame_code, &word, 8);
	fake_word(&f, at + f.l.frame_code, word | 1);
	fake_word(&f, state_at + f.l.thread_frame, at);
	check(&n, "tagged:1");
}

TEST(a_chunk_of_another_stack_is_left_out)
{
	struct runtime_native n = native(NULL, 6, true);

	begin(PYTHON_SHIMS);
	fake_word(&f, state_at + f.l.thread_frame, two_chunks(FAKE_BASE + 0xf000, STACK(2, 0)));
	check(&n, "key:2");
}

TEST(behind_a_native_stack_without_a_root_the_rest_comes_last)
{
	struct runtime_native n = native(NULL, 3, false);

	begin(PYTHON_SHIMS);
	fake_word(&f, state_at + f.l.thread_frame, two_chunks(STACK(7, 0), STACK(1, 0)));
	check(&n, "key:1 called:3 main:3");
}

TEST(frames_of_subinterpreters_stand_where_their_loops_do)
{
	struct runtime_native n = native(NULL, 6, true);
	uint64_t other = 0, second;

	begin(PYTHON_SHIMS);
	fake_word(&f, state_at + f.l.thread_frame, frame("main", shim(STACK(4, 0), 0), 0));
	other = fake_room(&f, 64);
	second = fake_room(&f, 256);
	fake_word(&f, FAKE_BASE + 0x800, other);
	fake_word(&f, other + f.l.interp_next, interp);
	fake_word(&f, other + f.l.interp_threads, second);
	fake_word(&f, second + f.l.thread_id, THREAD_ID);
	fake_word(&f, second + f.l.thread_frame, frame("sub", shim(STACK(1, 0), 0), 0));
	check(&n, "sub:1 main:4");
}

static uint64_t three_objects(void)
{
	return frame("c", frame("b", frame("a", 0, 0), 0), 0);
}

#define LOOP (0x150000 + FAKE_BIAS)

TEST(frame_objects_stand_for_calls_of_the_loop_in_order)
{
	static const uint64_t pc[] = {1, LOOP, 2, LOOP, LOOP, 3};
	struct runtime_native n = native(pc, 6, true);

	begin(PYTHON_OBJECTS);
	fake_word(&f, state_at + f.l.thread_frame, three_objects());
	check(&n, "c:1 b:3 a:4");
}

TEST(a_call_that_has_just_begun_has_no_frame_object_yet)
{
	static const uint64_t pc[] = {LOOP, 1, LOOP, LOOP, LOOP, 3};
	struct runtime_native n = native(pc, 6, true);

	begin(PYTHON_OBJECTS);
	fake_word(&f, state_at + f.l.thread_frame, three_objects());
	check(&n, "c:2 b:3 a:4");
}

TEST(frame_objects_of_a_greenlet_stop_before_the_stack_does)
{
	static const uint64_t pc[] = {1, LOOP, LOOP, LOOP, LOOP, LOOP};
	struct runtime_native n = native(pc, 6, true);

	begin(PYTHON_OBJECTS);
	fake_word(&f, state_at + f.l.thread_frame, three_objects());
	check(&n, "c:1 b:2 a:3");
}

TEST(more_frame_objects_than_calls_come_last_or_with_the_outermost)
{
	static const uint64_t pc[] = {1, LOOP, LOOP, 2};
	struct runtime_native n = native(pc, 4, true);

	begin(PYTHON_OBJECTS);
	fake_word(&f, state_at + f.l.thread_frame, three_objects());
	check(&n, "c:1 b:2 a:2");
	n.complete = false;
	check(&n, "c:1 b:2 a:4");
}

TEST(two_states_with_frame_objects_are_not_guessed_at)
{
	static const uint64_t pc[] = {1, LOOP, LOOP, LOOP};
	struct runtime_native n = native(pc, 4, true);
	uint64_t second;

	begin(PYTHON_OBJECTS);
	fake_word(&f, state_at + f.l.thread_frame, three_objects());
	second = fake_room(&f, 256);
	fake_word(&f, state_at + f.l.thread_next, second);
	fake_word(&f, second + f.l.thread_id, THREAD_ID);
	check(&n, "c:1 b:2 a:3"); /* it has none: it counts not */
	fake_word(&f, second + f.l.thread_frame, three_objects());
	check(&n, "");
}

TEST(a_thread_that_runs_no_python_has_no_frames)
{
	struct runtime_native n = native(NULL, 3, true);

	begin(PYTHON_SHIMS);
	check(&n, "");
	fake_word(&f, state_at + f.l.thread_frame, frame("other", shim(STACK(1, 0), 0), 0));
	n.fs_base = THREAD_ID + 64;
	check(&n, "");
	n.fs_base = 0;
	check(&n, "");
}

TEST(chains_in_circles_end)
{
	struct runtime_native n = native(NULL, 3, true);
	uint64_t at;

	begin(PYTHON_SHIMS);
	at = frame("round", 0, 0);
	fake_word(&f, at + f.l.frame_back, at);
	fake_word(&f, state_at + f.l.thread_frame, at);
	fake_word(&f, state_at + f.l.thread_next, state_at);
	fake_word(&f, interp + f.l.interp_next, interp);
	check(&n, " cut"); /* no chunk closes: none has a place */
}

TEST(a_process_of_circles_costs_a_bounded_number_of_reads)
{
	struct runtime_native n = native(NULL, 3, true);
	struct script_stack stack = {0};
	struct python *p;
	size_t reads;
	uint64_t at;

	begin(PYTHON_SHIMS);
	at = frame("round", 0, 0);
	fake_word(&f, at + f.l.frame_back, at);
	fake_word(&f, state_at + f.l.thread_frame, at);
	fake_word(&f, state_at + f.l.thread_next, state_at);
	p = python_open(&f.m, &f.l, sizeof(f.l), FAKE_BIAS);
	for (int thread = 0; thread < 200; thread++) /* what is read again costs a share */
		python_stack(p, &n, &stack);
	assert_true(f.reads <= SCRIPT_READS_MAX + 1);
	reads = f.reads;
	python_stack(p, &n, &stack);
	assert_int_equal(f.reads, reads); /* nothing is left */
	assert_true(stack.cut && !stack.n);
	script_stack_release(&stack);
	python_close(p);
}

TEST(a_torn_chain_shows_what_has_a_place)
{
	struct runtime_native n = native(NULL, 3, true);
	uint64_t at;

	begin(PYTHON_SHIMS);
	at = shim(STACK(0, 0), frame("lost", 0x1000, 0));
	fake_word(&f, state_at + f.l.thread_frame, frame("kept", at, 0));
	check(&n, "kept:0 cut");
	begin(PYTHON_SHIMS); /* what is no code object: nothing from there on is believed */
	at = frame("beyond", shim(STACK(1, 0), 0), 0);
	at = frame("no", shim(STACK(0, 0), at), 0);
	fake_word(&f, at + f.l.frame_code, FAKE_BASE + 0x900);
	fake_word(&f, state_at + f.l.thread_frame, at);
	check(&n, " cut");
}

TEST(deep_recursion_keeps_the_innermost_frames)
{
	struct runtime_native n = native(NULL, 3, true);
	struct script_stack stack = {0};
	struct python *p;
	uint64_t at, code;

	begin(PYTHON_SHIMS);
	at = shim(STACK(1, 0), 0);
	code = fake_code(&f, fake_ascii(&f, "deep"), fake_ascii(&f, "a.py"), 1);
	for (size_t i = 0; i < PYTHON_STACK_MAX + 100; i++) {
		uint64_t next = fake_room(&f, 72);

		fake_word(&f, next + f.l.frame_code, code);
		fake_word(&f, next + f.l.frame_back, at);
		at = next;
	}
	fake_word(&f, state_at + f.l.thread_frame, at);
	p = python_open(&f.m, &f.l, sizeof(f.l), FAKE_BIAS);
	python_stack(p, &n, &stack);
	assert_int_equal(stack.n, PYTHON_STACK_MAX);
	assert_true(stack.cut);
	assert_int_equal(stack.frames[PYTHON_STACK_MAX - 1].at, 1);
	script_stack_release(&stack);
	python_close(p);
}

static enum runtime_gil gil_of(uint64_t id, uint64_t futex)
{
	struct python *p = python_open(&f.m, &f.l, sizeof(f.l), FAKE_BIAS);
	enum runtime_gil gil = python_gil(p, id, futex);

	python_close(p);
	return gil;
}

TEST(the_lock_is_held_by_one_and_waited_for_by_others)
{
	uint64_t gil, locked = 1;

	begin(PYTHON_SHIMS);
	gil = fake_room(&f, PYTHON_GIL_SIZE);
	f.l.interp_gil = 40;
	fake_word(&f, interp + 40, gil);
	fake_word(&f, gil + PYTHON_GIL_HOLDER, state_at);
	assert_int_equal(gil_of(THREAD_ID, 0), RUNTIME_GIL_NEITHER); /* it had it last */
	fake_word(&f, gil + PYTHON_GIL_LOCKED, locked);
	assert_int_equal(gil_of(THREAD_ID, 0), RUNTIME_GIL_HOLDS);
	assert_int_equal(gil_of(THREAD_ID, gil), RUNTIME_GIL_HOLDS); /* another futex */
	assert_int_equal(gil_of(THREAD_ID + 64, 0), RUNTIME_GIL_NEITHER);
	assert_int_equal(gil_of(THREAD_ID, gil + PYTHON_GIL_COND + 8), RUNTIME_GIL_WAITS);
	assert_int_equal(gil_of(THREAD_ID, gil + PYTHON_GIL_SIZE), RUNTIME_GIL_HOLDS);
	fake_word(&f, gil + PYTHON_GIL_HOLDER, state_at + 256);
	assert_int_equal(gil_of(THREAD_ID, 0), RUNTIME_GIL_NEITHER);
	f.l.interp_gil = 0;
	f.l.gil = gil - FAKE_BIAS; /* one of the whole process */
	fake_word(&f, gil + PYTHON_GIL_HOLDER, state_at);
	assert_int_equal(gil_of(THREAD_ID, 0), RUNTIME_GIL_HOLDS);
	f.l.gil = 0; /* not known */
	assert_int_equal(gil_of(THREAD_ID, gil + PYTHON_GIL_COND), RUNTIME_GIL_NEITHER);
	f.l.gil = 8; /* not there */
	assert_int_equal(gil_of(THREAD_ID, 0), RUNTIME_GIL_NEITHER);
}

TEST(a_section_that_does_not_fit_the_process_is_refused)
{
	begin(PYTHON_SHIMS);
	assert_null(python_open(&f.m, &f.l, sizeof(f.l) - 1, FAKE_BIAS));
	assert_null(python_open(&f.m, &f.l, sizeof(f.l),
				FAKE_BIAS + 8)); /* the size of code objects there is another */
	f.l.format++;
	assert_null(python_open(&f.m, &f.l, sizeof(f.l), FAKE_BIAS));
}
