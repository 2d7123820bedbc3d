/* SPDX-License-Identifier: Apache-2.0 */
/* PHP's frames between a thread's native ones, and memory that lies. */
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include "loaders/lib/runtimes/php.h"
#include "probes/runtimes/php_layout.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"

#define LOOP    0x100000u
#define GLOBALS (FAKE_BASE + 0x800)

static struct fake f;
static struct php_layout l;
static uint64_t pcs[8], sps[8];

static void begin(void)
{
	memset(&f, 0, sizeof(f));
	f.m = (struct runtime_memory){.ctx = &f, .read = fake_read};
	f.next = FAKE_BASE + 0x1000;
	l = (struct php_layout){.format = PHP_FORMAT,
				.version = 0x0802,
				.globals = GLOBALS - FAKE_BIAS,
				.loop_start = {LOOP},
				.loop_end = {LOOP + 0x100},
				.current = 0x10,
				.code = 88,
				.code_count = 80,
				.file = 152,
				.generator_parent = 16,
				.generator_frame = 24};
}

static uint64_t string(const char *s)
{
	uint64_t at = fake_room(&f, 24 + strlen(s) + 1);
	const uint32_t gc[2] = {1, 6};

	fake_put(&f, at, gc, sizeof(gc));
	fake_word(&f, at + 16, strlen(s));
	fake_put(&f, at + 24, s, strlen(s) + 1);
	return at;
}

/* A function of 4 instructions, the i-th on line 10 + i. */
static uint64_t function(uint8_t type, const char *name, const char *class)
{
	uint64_t at = fake_room(&f, 256), code = fake_room(&f, 4 * 32);
	const uint32_t count = 4;

	fake_put(&f, at, &type, 1);
	if (name)
		fake_word(&f, at + 8, string(name));
	if (class) {
		uint64_t c = fake_room(&f, 32);

		fake_word(&f, c + 8, string(class));
		fake_word(&f, at + 16, c);
	}
	if (type == PHP_INTERNAL)
		return at;
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t line = 10 + i;

		fake_put(&f, code + 32 * i + 24, &line, sizeof(line));
	}
	fake_word(&f, at + 88, code);
	fake_put(&f, at + 80, &count, sizeof(count));
	fake_word(&f, at + 152, string("a.php"));
	return at;
}

static uint64_t frame(uint64_t func, unsigned instruction, bool top, uint64_t back)
{
	uint64_t at = fake_room(&f, 80), code = 0;
	const uint32_t info = top ? PHP_CALL_TOP : 0;

	if (func)
		memcpy(&code, f.bytes + (func + 88 - FAKE_BASE), 8);
	fake_word(&f, at + PHP_FRAME_AT, code + 32 * instruction);
	fake_word(&f, at + PHP_FRAME_FUNC, func);
	fake_put(&f, at + PHP_FRAME_INFO, &info, sizeof(info));
	fake_word(&f, at + PHP_FRAME_BACK, back);
	fake_word(&f, GLOBALS + 0x10, at);
	return at;
}

/* Native frames: 'L' in the loop, '-' elsewhere. */
static void check(const char *native, bool complete, const char *want)
{
	struct runtime_native n = {.pc = pcs,
				   .sp = sps,
				   .n = strlen(native),
				   .complete = complete,
				   .tgid = 7,
				   .tid = 7};
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct script_stack stack = {0};
	struct php *p = php_open(&f.m, &l, sizeof(l), FAKE_BIAS);

	assert_non_null(p);
	for (size_t i = 0; i < n.n; i++)
		pcs[i] = FAKE_BIAS + (native[i] == 'L' ? LOOP + i : 0);
	php_stack(p, &n, &stack);
	for (size_t i = 0; i < stack.n; i++) {
		const struct script_place *at = &stack.frames[i].place;

		strbuf_addf(&s, "%s%s", i ? " " : "", at->function ? at->function : "?");
		if (at->file)
			strbuf_addf(&s, "@%u", at->line);
		strbuf_addf(&s, ":%zu", stack.frames[i].at);
	}
	if (stack.cut)
		strbuf_addstr(&s, " cut");
	assert_string_equal(strbuf_str(&s), want);
	script_stack_release(&stack);
	php_close(p);
}

static uint64_t plain(void)
{
	uint64_t at = frame(function(PHP_SCRIPT, NULL, NULL), 0, true, 0);

	at = frame(function(PHP_SCRIPT, "f", "A"), 1, false, at);
	at = frame(function(PHP_INTERNAL, "usort", NULL), 0, false, at);
	at = frame(function(PHP_SCRIPT, "{closure}", NULL), 2, true, at);
	return frame(function(PHP_INTERNAL, "usleep", NULL), 0, false, at);
}

TEST(chunks_stand_for_the_calls_of_the_loop_that_run_them)
{
	begin();
	plain();
	check("--L-L--", true, "usleep:2 {closure}@12:2 usort:4 A::f@11:4 {main}@10:4");
	check("--L-L--", false, "usleep:2 {closure}@12:2 usort:4 A::f@11:4 {main}@10:4");
}

TEST(where_the_calls_of_the_loop_are_not_as_many_nothing_is_guessed)
{
	begin();
	plain();
	check("--L-L-L", true, "usleep:6 {closure}@12:6 usort:6 A::f@11:6 {main}@10:6");
	check("--L---", true, "usleep:2 {closure}@12:2 usort:2 A::f@11:2 {main}@10:2");
	check("--L---", false, "usleep:2 {closure}@12:2 usort:6 A::f@11:6 {main}@10:6");
}

TEST(a_thread_that_is_not_in_the_loop_runs_no_script)
{
	begin();
	plain();
	check("---", true, "");
	check("---", false, "");
	l.program = 1; /* the JIT's code ends the native stack of its only thread */
	check("---", false, "usleep:3 {closure}@12:3 usort:3 A::f@11:3 {main}@10:3");
	check("---", true, "");
}

TEST(code_outside_of_functions_says_whence_it_came)
{
	uint64_t at;

	begin();
	at = frame(function(PHP_SCRIPT, NULL, NULL), 0, true, 0);
	at = frame(function(PHP_SCRIPT, NULL, NULL), 1, false, at);
	frame(function(PHP_EVAL, NULL, NULL), 3, false, at);
	check("-L", true, "{eval}@13:1 {include}@11:1 {main}@10:1");
}

TEST(generators_that_wait_stand_between)
{
	uint64_t main, root, middle, leaf, held, g[3];
	const uint32_t object = 8;

	begin();
	main = frame(function(PHP_SCRIPT, NULL, NULL), 0, true, 0);
	middle = frame(function(PHP_SCRIPT, "middle", NULL), 1, true, 0);
	leaf = frame(function(PHP_SCRIPT, "leaf", NULL), 2, true, 0);
	for (int i = 0; i < 3; i++)
		g[i] = fake_room(&f, 64);
	fake_word(&f, g[2] + 16, g[1]); /* leaf waits for middle, middle for the root */
	fake_word(&f, g[1] + 16, g[0]);
	fake_word(&f, g[2] + 24, leaf);
	fake_word(&f, g[1] + 24, middle);
	held = frame(0, 0, false, main);
	fake_word(&f, held + 32, g[2]);
	fake_put(&f, held + PHP_FRAME_INFO, &object, sizeof(object));
	root = frame(function(PHP_SCRIPT, "root", NULL), 3, true, held);
	(void)root;
	check("LL", true, "root@13:0 middle@11:1 leaf@12:1 {main}@10:1");
	fake_word(&f, g[0] + 16, g[0]); /* in a circle */
	check("LL", true, "root@13:0 {main}@10:1 cut");
}

TEST(what_is_not_what_it_should_be_is_left_out)
{
	const uint8_t odd = 3;
	const uint32_t no_string = 7;
	uint64_t outer, inner, name;

	begin();
	outer = function(PHP_SCRIPT, "main", NULL);
	inner = function(PHP_SCRIPT, "f", NULL);
	frame(inner, 9, false, frame(outer, 0, true, 0));
	check("L", true, "f@0:0 main@10:0"); /* no instruction: no line */
	memcpy(&name, f.bytes + (inner + 8 - FAKE_BASE), 8);
	fake_put(&f, name + 4, &no_string, sizeof(no_string));
	check("L", true, "?@0:0 main@10:0");
	memcpy(&name, f.bytes + (inner + 152 - FAKE_BASE), 8);
	fake_word(&f, name + 16, 4); /* "a.ph", which does not end there */
	check("L", true, " cut");
	fake_put(&f, inner, &odd, 1);
	check("L", true, " cut");
}

TEST(circles_end)
{
	uint64_t main;
	struct php *p;
	struct script_stack stack = {0};
	struct runtime_native n = {.pc = pcs, .sp = sps, .n = 1, .complete = true};

	begin();
	main = frame(function(PHP_SCRIPT, "f", NULL), 1, true, 0);
	fake_word(&f, main + PHP_FRAME_BACK, main);
	pcs[0] = FAKE_BIAS + LOOP;
	p = php_open(&f.m, &l, sizeof(l), FAKE_BIAS);
	php_stack(p, &n, &stack);
	assert_int_equal(stack.n, SCRIPT_STACK_MAX);
	assert_true(stack.cut);
	script_stack_release(&stack);
	for (int i = 0; i < 100000; i++) {
		php_stack(p, &n, &stack);
		script_stack_release(&stack);
		if (f.reads > SCRIPT_READS_MAX)
			break;
	}
	assert_true(f.reads <= SCRIPT_READS_MAX + 1);
	php_close(p);
}
