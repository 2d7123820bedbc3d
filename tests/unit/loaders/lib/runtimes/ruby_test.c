/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby's frames between a thread's native ones, what its objects say, and memory that lies. */
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include "loaders/lib/runtimes/ruby.h"
#include "loaders/lib/runtimes/rubycode.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"

#define LOOP       0x100000u
#define FS_BASE    (FAKE_BASE + 0x100)
#define SLOT       (FAKE_BASE + 0x200)
#define SYMBOLS    (FAKE_BASE + 0x300)
#define STACK      (FAKE_BASE + 0x30000)
#define MEMO(kind) ((uint64_t)(kind) << 12 | 0x1a)

static struct fake f;
static struct ruby_layout l;
static uint64_t pcs[8], sps[8], frame_at, ec, ids[2];

static uint64_t words(size_t n, const uint64_t *w)
{
	uint64_t at = fake_room(&f, n * 8);

	fake_put(&f, at, w, n * 8);
	return at;
}
#define OBJECT(...) words(sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]){__VA_ARGS__})

/* A thread of 3.1 in a process of glibc's. */
static void begin(void)
{
	uint64_t thread, table, block;

	memset(&f, 0, sizeof(f));
	f.m = (struct runtime_memory){.ctx = &f, .read = fake_read};
	f.next = FAKE_BASE + 0x1000;
	l = (struct ruby_layout){.format = RUBY_FORMAT,
				 .version = 0x0301,
				 .tls_slot = SLOT - FAKE_BIAS,
				 .symbols = SYMBOLS - FAKE_BIAS,
				 .loop_start = {LOOP},
				 .loop_end = {LOOP + 0x100},
				 .thread_ec = 40,
				 .ec_thread = 48,
				 .frame_size = 64,
				 .lines = 120,
				 .lines_count = 136,
				 .lines_index = 144,
				 .line_size = 12,
				 .text_short = 16,
				 .last_op = 169};
	frame_at = STACK + 0x1000;
	ec = OBJECT(STACK, 0x1000 / 8, frame_at, 0, 0, 0, 0);
	thread = OBJECT(0, 0, 0, 0, 0, ec);
	fake_word(&f, ec + 48, thread);
	block = OBJECT(0, 0, ec);
	table = OBJECT(0, 0, 0, 0, 0, 0, block, 0);
	fake_word(&f, FS_BASE + 8, table);
	fake_word(&f, SLOT, 3);
	fake_word(&f, SLOT + 8, 16);
	ids[0] = fake_room(&f, 1024 * 8);
	ids[1] = OBJECT(7, 0, 1024, 0, ids[0]);
	fake_word(&f, SYMBOLS + 16, OBJECT(7 | 1 << 13 | 1 << 15, 0, ids[1]));
}

static uint64_t text(const char *s)
{
	uint64_t at = fake_room(&f, 64), flags = 5 | (uint64_t)strlen(s) << 14;

	fake_word(&f, at, flags);
	fake_put(&f, at + 16, s, strlen(s) + 1);
	return at;
}

static uint64_t long_text(const char *s)
{
	uint64_t at = fake_room(&f, strlen(s) + 1);

	fake_put(&f, at, s, strlen(s) + 1);
	return OBJECT(5 | 1 << 13, 0, strlen(s), at);
}

/* Of 20 instructions, on line 10. */
static uint64_t iseq(uint64_t label, uint64_t path)
{
	uint64_t body = fake_room(&f, 256);
	const uint32_t size = 20, one = 1, line = 10;
	uint64_t row = fake_room(&f, 16);

	fake_put(&f, body + 4, &size, 4);
	fake_word(&f, body + 8, fake_room(&f, 160));
	fake_word(&f, body + 64, path);
	fake_word(&f, body + 80, label);
	fake_put(&f, row, &line, 4);
	fake_word(&f, body + 120, row);
	fake_put(&f, body + 136, &one, 4);
	return OBJECT(MEMO(7), 0, body);
}

static void push(uint64_t of, uint64_t at, uint64_t method, uint64_t flags)
{
	uint64_t env = OBJECT(method, 0, flags) + 16;

	frame_at -= l.frame_size;
	fake_word(&f, frame_at, at);
	fake_word(&f, frame_at + 16, of);
	fake_word(&f, frame_at + 32, env);
	fake_word(&f, ec + 16, frame_at);
}

static void script(const char *label, bool finish)
{
	uint64_t of = iseq(text(label), text("a.rb")), body, code;

	memcpy(&body, f.bytes + (of + 16 - FAKE_BASE), 8);
	memcpy(&code, f.bytes + (body + 8 - FAKE_BASE), 8);
	push(of, code + 16, 0, 0x22220001u | (finish ? RUBY_FLAG_FINISH : 0));
}

/* A function of C, whose method's id is 16 * serial. */
static void native_method(const char *name, uint64_t serial, uint64_t symbol)
{
	uint64_t def = OBJECT(0, 0, 0, 0, serial << 4);

	fake_word(&f, ids[0] + serial * 16, text(name));
	fake_word(&f, ids[0] + serial * 16 + 8, symbol);
	push(0, 0, OBJECT(MEMO(6), 0, def, 0, 0), RUBY_MAGIC_C | RUBY_FLAG_C);
}

static void check(const char *native, bool complete, const char *want)
{
	struct runtime_native n = {.pc = pcs,
				   .sp = sps,
				   .n = strlen(native),
				   .complete = complete,
				   .fs_base = FS_BASE};
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct script_stack stack = {0};
	struct ruby *r = ruby_open(&f.m, &l, sizeof(l), FAKE_BIAS);

	assert_non_null(r);
	for (size_t i = 0; i < n.n; i++)
		pcs[i] = FAKE_BIAS + (native[i] == 'L' ? LOOP + i : 0);
	ruby_stack(r, &n, &stack);
	for (size_t i = 0; i < stack.n; i++) {
		const struct script_place *at = &stack.frames[i].place;

		strbuf_addf(&s, "%s%s", i ? " " : "", at->function ? at->function : "?");
		if (at->file)
			strbuf_addf(&s, "@%s:%u", at->file, at->line);
		strbuf_addf(&s, ":%zu", stack.frames[i].at);
	}
	if (stack.cut)
		strbuf_addstr(&s, " cut");
	assert_string_equal(strbuf_str(&s), want);
	script_stack_release(&stack);
	ruby_close(r);
}

static void plain(void)
{
	push(0, 0, 0, 0x79990001u | RUBY_FLAG_FINISH | RUBY_FLAG_C); /* what a thread begins with */
	script("<main>", true);
	script("f", false);
	native_method("each", 11, (11ull << 4) << 8 | 0x0c);
	script("block in f", true);
	native_method("sleep", 12, (12ull << 4) << 8 | 0x0c);
}

TEST(chunks_stand_for_the_calls_of_the_loop_that_run_them)
{
	begin();
	plain();
	check("-L--L-", true, "sleep:1 block in f@a.rb:10:1 each:4 f@a.rb:10:4 <main>@a.rb:10:4");
	check("----L-", true, "sleep:4 block in f@a.rb:10:4 each:4 f@a.rb:10:4 <main>@a.rb:10:4");
	check("-L", false, "sleep:1 block in f@a.rb:10:1 each:2 f@a.rb:10:2 <main>@a.rb:10:2");
}

/* A script's frame with these flags. */
static void script_of(const char *label, uint64_t flags)
{
	uint64_t env;

	script(label, false);
	memcpy(&env, f.bytes + (frame_at + RUBY_FRAME_ENV - FAKE_BASE), 8);
	fake_word(&f, env, flags);
}

TEST(the_frame_below_the_program_s_is_none_even_with_its_name)
{
	begin();
	script_of("<main>", 0x79990001u | RUBY_FLAG_FINISH);
	script("<main>", true);
	script("f", false);
	check("-L-", true, "f@a.rb:10:1 <main>@a.rb:10:1");
	begin();
	script("<main>", true); /* one that is not the lowest counts */
	script_of("f", 0x79990001u);
	check("-L-", true, "f@a.rb:10:1 <main>@a.rb:10:1");
}

TEST(a_thread_s_context_is_found_by_each_libc_s_table)
{
	uint64_t table, block;

	begin();
	plain();
	block = OBJECT(0, 0, ec);
	table = OBJECT(0, 0, 0, block, 0, 0, 0, 0); /* musl's: a word a module */
	fake_word(&f, FS_BASE + 8, table);
	check("LL", true, "sleep:0 block in f@a.rb:10:0 each:1 f@a.rb:10:1 <main>@a.rb:10:1");
	fake_word(&f, block + 16, ec + 8); /* no context of a thread's */
	check("LL", true, "");
	l.tls_slot = 0; /* a program's own */
	l.tls_offset = -32;
	fake_word(&f, FS_BASE - 32, ec);
	check("LL", true, "sleep:0 block in f@a.rb:10:0 each:1 f@a.rb:10:1 <main>@a.rb:10:1");
}

TEST(a_thread_of_2_7_is_found_in_the_vm_s_list)
{
	uint64_t thread, vm, other;

	begin();
	plain();
	l.tls_slot = 0;
	l.vm = FAKE_BASE + 0x400 - FAKE_BIAS;
	l.vm_threads = 8;
	l.thread_node = 0;
	l.thread_id = 72;
	memcpy(&thread, f.bytes + (ec + 48 - FAKE_BASE), 8);
	vm = OBJECT(0, 0, 0);
	thread = OBJECT(vm + 8, 0, 0, 0, 0, ec, 0, 0, 0, FS_BASE);
	other = OBJECT(thread, 0, 0, 0, 0, 0, 0, 0, 0, 5);
	fake_word(&f, ec + 48, thread);
	fake_word(&f, vm + 8, other);
	fake_word(&f, FAKE_BASE + 0x400, vm);
	check("LL", true, "sleep:0 block in f@a.rb:10:0 each:1 f@a.rb:10:1 <main>@a.rb:10:1");
	fake_word(&f, other, other); /* a circle without it */
	check("LL", true, "");
	assert_true(f.reads < SCRIPT_READS_MAX);
}

TEST(an_id_that_the_table_does_not_say_back_has_no_name)
{
	begin();
	script("<main>", true);
	native_method("wrong", 11, (12ull << 4) << 8 | 0x0c);
	check("-L", true, "<main>@a.rb:10:1");
	native_method("right", 13, OBJECT(0x14, 0, 0, 0, 13 << 4)); /* a symbol that is an object */
	check("-L", true, "right:1 <main>@a.rb:10:1");
}

TEST(texts_of_both_kinds_are_read_and_no_others)
{
	uint64_t of, path[2];

	begin();
	path[0] = long_text("/srv/shop/app/models/basket of goods.rb");
	path[1] = OBJECT(7 | 1 << 13 | 2 << 15, 0, path[0], text("real"));
	of = iseq(long_text("block (2 levels) in a_long_name_of_a_method"), path[1]);
	push(of, 1, 0, RUBY_FLAG_FINISH); /* no instruction */
	check("L", true,
	      "block (2 levels) in a_long_name_of_a_method@/srv/shop/app/models/basket of goods.rb:0:0");
	fake_word(&f, path[0], 6); /* no string */
	check("L", true, " cut");
}

TEST(a_row_is_what_counting_says)
{
	uint64_t index = fake_room(&f, 48 + 80 * 4), bits[54 + 512 * 4] = {0};
	uint32_t rank = 0;

	begin();
	index = fake_room(&f, 48 + 80 * 4);
	for (unsigned i = 0; i < 54 + 2048; i++)
		bits[i] = i == 0 || (i * 2654435761u >> 28) < 5;
	for (unsigned i = 0; i < 54; i += 9) {
		uint64_t w = 0;

		for (unsigned j = 0; j < 9; j++) {
			rank += (uint32_t)bits[i + j];
			w |= (uint64_t)rank << j * 7;
		}
		fake_word(&f, index + i / 9 * 8, w);
	}
	for (unsigned b = 0; b < 4; b++) {
		uint64_t ranks = 0, at = index + 48 + 80 * b;
		uint32_t small = 0;

		fake_put(&f, at, &rank, 4);
		for (unsigned s = 0; s < 8; s++) {
			uint64_t w = 0;

			if (s)
				ranks |= (uint64_t)small << (s - 1) * 9;
			for (unsigned j = 0; j < 64; j++) {
				w |= bits[54 + 512 * b + 64 * s + j] << j;
				small += (uint32_t)bits[54 + 512 * b + 64 * s + j];
			}
			fake_word(&f, at + 16 + 8 * s, w);
		}
		fake_word(&f, at + 8, ranks);
		rank += small;
	}
	rank = 0;
	for (unsigned i = 0; i < 54 + 2048; i++) {
		rank += (uint32_t)bits[i];
		assert_int_equal(rubycode_row(&f.m, index, i), rank);
	}
}

TEST(a_stack_that_cannot_be_one_is_not_walked)
{
	begin();
	plain();
	fake_word(&f, ec + 16, frame_at + 8); /* no whole frames up to its end */
	check("LL", true, " cut");
	fake_word(&f, ec + 16, STACK - 64);
	check("LL", true, " cut");
	fake_word(&f, ec + 16, 0); /* the thread has ended */
	check("LL", true, "");
}
