/* SPDX-License-Identifier: Apache-2.0 */
/* A process with the tables of an Erlang runtime, laid out by hand: what is found, and what is not
 * believed. */
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include <stdio.h>
#include <string.h>

#include "loaders/lib/runtimes/beam/beam.h"
#include "probes/runtimes/beam_layout.h"

#define DATA     (FAKE_BASE + 0x100) /* of the runtime: what it has in .bss */
#define DATA_END (FAKE_BASE + 0x400)
#define RANGES   (FAKE_BASE + 0x180)
#define ACTIVE   (FAKE_BASE + 0x400)
#define ATOMS    (FAKE_BASE + 0x480)
#define EXIT     (FAKE_BASE + 0x500)
#define FRAMES   (FAKE_BASE + 0x508)
#define CODE     (FAKE_BASE + 0x20000)
#define CODE_END (CODE + 0x4000)
#define STACK    (FAKE_BASE + 0x30000)
#define ATOM(i)  ((uint64_t)(i) << 6 | 0x0b)

static struct fake f;
static struct beam_layout l;
static uint64_t segment;
static unsigned atoms;

static unsigned atom(const char *text)
{
	uint64_t at = fake_room(&f, 40), bytes = fake_room(&f, strlen(text) + 1);
	uint32_t number = atoms;
	uint16_t size = (uint16_t)strlen(text);

	fake_put(&f, at + 16, &number, 4);
	fake_put(&f, at + 24, &size, 2);
	fake_word(&f, at + 32, bytes);
	fake_put(&f, bytes, text, strlen(text) + 1);
	fake_word(&f, segment + 8 * atoms, at);
	return atoms++;
}

/* A module of two functions, `first` words from its header on, at `at`. */
static void module_put(uint64_t at, unsigned first, const char *name, const char *one,
		       const char *two)
{
	uint64_t functions = at + 8 * first, record = functions + 24 + 8;
	unsigned module = atom(name), names[2] = {atom(one), atom(two)};

	fake_word(&f, at, 2);
	for (unsigned i = 0; i < 2; i++) {
		fake_word(&f, functions + 8 * i, record + 0x100 * i);
		fake_word(&f, record + 0x100 * i + 16, ATOM(module));
		fake_word(&f, record + 0x100 * i + 24, ATOM(names[i]));
		fake_word(&f, record + 0x100 * i + 32, i + 1);
	}
	fake_word(&f, functions + 16, record + 0x200);
}

static void table_put(unsigned i, uint64_t modules, uint64_t n)
{
	fake_word(&f, RANGES + 32 * i, modules);
	fake_word(&f, RANGES + 32 * i + 8, n);
	fake_word(&f, RANGES + 32 * i + 16, n + 1);
	fake_word(&f, RANGES + 32 * i + 24, modules + 16 * (n / 2));
}

static void begin(void)
{
	static const char *const known[] = {"false",         "true", "_",   "nonode@nohost",
					    "$end_of_table", "",     "fun", "infinity"};
	uint64_t table, modules;
	const uint32_t active = 1;

	fake_begin(&f);
	atoms = 0;
	l = (struct beam_layout){.format = BEAM_FORMAT,
				 .version = 25,
				 .active = ACTIVE - FAKE_BIAS,
				 .atoms = ATOMS - FAKE_BIAS,
				 .exit = EXIT - FAKE_BIAS,
				 .frames = FRAMES - FAKE_BIAS,
				 .data = DATA - FAKE_BIAS,
				 .data_end = DATA_END - FAKE_BIAS};
	segment = fake_room(&f, 1024 * 8);
	table = fake_room(&f, 64);
	fake_word(&f, table, segment);
	fake_word(&f, ATOMS + 120, table);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		atom(known[i]);
	module_put(CODE, 12, "lists", "map", "foldl");
	module_put(CODE + 0x1000, 17, "Elixir.Shop", "total", "-total/1-fun-0-");
	modules = fake_room(&f, 64);
	fake_word(&f, modules, CODE);
	fake_word(&f, modules + 8, CODE + 0x1000);
	fake_word(&f, modules + 16, CODE + 0x1000);
	fake_word(&f, modules + 24, CODE_END);
	for (unsigned i = 0; i < 3; i++)
		table_put(i, modules, 2);
	fake_put(&f, ACTIVE, &active, 4);
	fake_word(&f, EXIT, CODE + 0x3f00);
}

/* A place in function `i` of the module whose functions are `first` words from `at` on; 4-aligned.
 */
static uint64_t in(uint64_t at, unsigned first, unsigned i)
{
	return at + 8 * first + 32 + 0x100 * i + 0x80;
}

static void check_at(struct beam_at at, enum beam_end want_end, const char *want)
{
	struct beam *b = beam_open(&f.m, &l, sizeof(l), FAKE_BIAS);
	struct script_stack s = {0};
	struct runtime_follow to;
	char got[512] = "";
	enum beam_end end;

	assert_non_null(b);
	if (!beam_sampled(b, &at, &to, &end, &s))
		strcpy(got, "no");
	else if (to.unnamed)
		strcpy(got, "unnamed ");
	for (size_t i = 0; i < s.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "",
			 s.frames[i].place.function);
	assert_string_equal(got, want);
	assert_int_equal(end, want_end);
	script_stack_release(&s);
	beam_close(b);
}

static void check(uint64_t pc, bool interrupted, enum beam_end want_end, const char *want)
{
	check_at(
		(struct beam_at){
			.pc = pc, .sp = STACK, .copied = 0x400, .interrupted = interrupted},
		want_end, want);
}

TEST(words_on_the_stack_that_return_into_modules_are_the_callers)
{
	begin();
	fake_word(&f, STACK, ATOM(1));
	fake_word(&f, STACK + 8, in(CODE, 12, 1));
	fake_word(&f, STACK + 16, STACK | 2); /* a tuple */
	fake_word(&f, STACK + 24, in(CODE + 0x1000, 17, 0));
	fake_word(&f, STACK + 32, CODE + 0x3f00); /* the process ends there */
	fake_word(&f, STACK + 40, in(CODE, 12, 0));
	check(in(CODE + 0x1000, 17, 1), true, BEAM_WHOLE,
	      "anonymous fn/2 in Shop.total/1 lists:foldl/2 Shop.total/1");
}

TEST(code_that_modules_share_is_its_callers_which_may_be_at_any_address)
{
	begin();
	fake_word(&f, STACK, in(CODE, 12, 0) + 1);
	fake_word(&f, STACK + 8, in(CODE, 12, 1) + 1); /* a term */
	fake_word(&f, STACK + 16, CODE + 0x3f00);
	check(CODE - 0x100, true, BEAM_WHOLE, "lists:map/1");
	check(FAKE_BASE + 0x3fff0, true, BEAM_CUT, "no");
}

TEST(of_code_of_c_only_the_function_that_called_it_is_known_where_no_erlang_stack_came)
{
	begin();
	fake_word(&f, STACK, in(CODE, 12, 1));
	check(in(CODE, 12, 0), false, BEAM_CUT, "lists:map/1");
}

static const uint8_t FROM_PROCESS[] = {0x85, 0xc0, 0x49, 0x8b, 0x65, 0x58, 0xc3};
static const uint8_t FROM_PROCESS_FAR[] = {0x49, 0x8b, 0xa5, 0x98, 0x00, 0x00, 0x00};
static const uint8_t FROM_RBP[] = {0x48, 0x89, 0xec};
static const uint8_t JUMPS_BEFORE[] = {0xeb, 0x02, 0x48, 0x89, 0xec};
static const uint8_t OTHER_PROCESS[] = {0x49, 0x89, 0xc5, 0x49, 0x8b, 0x65, 0x58};

/* A C function returns to `pc`, where the code does that; the Erlang stacks that came. */
static void check_called(uint64_t pc, const uint8_t *code, size_t len, struct beam_piece stored,
			 struct beam_piece at_bp, enum beam_end want_end, const char *want)
{
	fake_put(&f, pc, code, len);
	check_at((struct beam_at){.pc = pc, .bp = STACK + 0x800, .stored = stored, .at_bp = at_bp},
		 want_end, want);
}

TEST(callers_of_c_code_are_on_the_stack_that_the_code_behind_the_call_takes)
{
	const struct beam_piece stored = {STACK, 0x100}, at_bp = {STACK + 0x800, 0x100},
				none = {0, 0};
	const uint64_t pc = in(CODE, 12, 0);

	begin();
	fake_word(&f, STACK, in(CODE, 12, 1));
	fake_word(&f, STACK + 8, CODE + 0x3f00);
	fake_word(&f, STACK + 0x800, in(CODE + 0x1000, 17, 0));
	fake_word(&f, STACK + 0x808, CODE + 0x3f00);
	check_called(pc, FROM_PROCESS, sizeof(FROM_PROCESS), stored, at_bp, BEAM_WHOLE,
		     "lists:map/1 lists:foldl/2");
	check_called(pc, FROM_PROCESS_FAR, sizeof(FROM_PROCESS_FAR), stored, at_bp, BEAM_WHOLE,
		     "lists:map/1 lists:foldl/2");
	check_called(pc, FROM_RBP, sizeof(FROM_RBP), stored, at_bp, BEAM_WHOLE,
		     "lists:map/1 Shop.total/1");
	check_called(pc, FROM_RBP, sizeof(FROM_RBP), stored, none, BEAM_CUT, "lists:map/1");
	check_called(pc, FROM_PROCESS, sizeof(FROM_PROCESS), none, at_bp, BEAM_CUT, "lists:map/1");
	check_called(pc, JUMPS_BEFORE, sizeof(JUMPS_BEFORE), stored, at_bp, BEAM_CUT,
		     "lists:map/1");
}

TEST(callers_that_lead_to_no_end_are_not_believed)
{
	const struct beam_piece stored = {STACK, 0x100};
	const uint64_t pc = in(CODE, 12, 0);

	begin();
	fake_word(&f, STACK, in(CODE, 12, 1));
	fake_word(&f, STACK + 8, in(CODE, 12, 0) + 4);
	fake_word(&f, CODE + 8 * 12 + 32 + 24, ATOM(900)); /* lists:map has no name any more */
	check_called(pc, FROM_PROCESS, sizeof(FROM_PROCESS), stored, stored, BEAM_CUT, "unnamed ");
}

TEST(where_the_scheduler_is_called_no_erlang_runs)
{
	begin();
	check_called(CODE - 0x100, OTHER_PROCESS, sizeof(OTHER_PROCESS),
		     (struct beam_piece){STACK, 0x100}, (struct beam_piece){0, 0}, BEAM_WHOLE,
		     "process_main");
}

#define SCHEDULERS (FAKE_BASE + 0x600) /* a pointer to their array */
#define ARRAY      (FAKE_BASE + 0x38000)
#define PROCESS    (FAKE_BASE + 0x3c000)
#define HEAP       (FAKE_BASE + 0x3d000)
#define TOP        0x58
#define FS_BASE    0x7f1234567000ull

/* The data of the second scheduler, whose process lies 19 words behind its thread's id. */
static void run_put(uint64_t process)
{
	begin();
	l.schedulers[1] = SCHEDULERS - FAKE_BIAS;
	fake_word(&f, SCHEDULERS, ARRAY);
	fake_word(&f, ARRAY + 0x100, FS_BASE + 0x1000);
	fake_word(&f, ARRAY + 0x900, FS_BASE);
	fake_word(&f, ARRAY + 0x900 + 19 * 8, process);
	fake_word(&f, PROCESS, 0x1234 << 4 | 3);
	fake_word(&f, PROCESS + TOP - 8, HEAP + 0x10);
	fake_word(&f, PROCESS + TOP, HEAP + 0x80);
	fake_word(&f, PROCESS + TOP + 0x40, HEAP);
	fake_word(&f, PROCESS + TOP + 0x48, HEAP + 0x100);
	fake_word(&f, PROCESS + TOP + 0x58, 0x100 / 8);
}

/* What is known after `samples` of that thread. */
static bool runs(int samples, uint64_t process, uint64_t *at)
{
	struct beam *b = beam_open(&f.m, &l, sizeof(l), FAKE_BIAS);
	const struct beam_at call = {.pc = in(CODE, 12, 0), .stored = {STACK, 8}};
	struct script_stack s = {0};
	struct runtime_follow to;
	enum beam_end end;
	uint32_t top = 0;
	bool is = false;

	assert_non_null(b);
	fake_put(&f, call.pc, FROM_PROCESS, sizeof(FROM_PROCESS));
	assert_true(beam_sampled(b, &call, &to, &end, &s));
	script_stack_release(&s);
	for (int i = 0; i < samples; i++)
		is = beam_thread(b, FS_BASE, process, at, &top);
	assert_true(!is || top == TOP);
	beam_close(b);
	return is;
}

TEST(where_a_thread_says_what_it_runs_is_known_when_that_was_seen_twice)
{
	uint64_t at = 0;

	run_put(PROCESS);
	assert_false(runs(1, 0, &at));
	assert_true(runs(2, 0, &at));
	assert_int_equal(at, ARRAY + 0x900 + 19 * 8);
	assert_true(runs(1, PROCESS, &at)); /* it ran that a moment ago */
}

TEST(what_is_no_process_is_none_that_a_thread_runs)
{
	uint64_t at = 0;

	run_put(PROCESS);
	fake_word(&f, PROCESS, 0x1234 << 4 | 7); /* a port */
	assert_false(runs(4, 0, &at));
	run_put(PROCESS);
	fake_word(&f, PROCESS + TOP + 0x58, 0x100 / 8 + 1); /* another size */
	assert_false(runs(4, 0, &at));
	run_put(PROCESS);
	fake_word(&f, PROCESS + TOP, HEAP + 0x108); /* beyond its heap */
	assert_false(runs(4, 0, &at));
	run_put(PROCESS);
	fake_word(&f, ARRAY + 0x900, 0); /* no scheduler's thread */
	assert_false(runs(4, 0, &at));
}

TEST(a_stack_that_leads_nowhere_is_not_whole)
{
	begin();
	fake_word(&f, STACK + 8, in(CODE, 12, 1));
	check(in(CODE, 12, 0), true, BEAM_SHORT, "lists:map/1 lists:foldl/2");
}

TEST(tables_that_do_not_prove_themselves_are_not_read)
{
	static const struct {
		uint64_t at, value;
	} wrong[] = {
		{RANGES + 8, 0},                    /* an empty table */
		{RANGES + 56, FAKE_BASE + 0x10000}, /* the last range is not in it */
		{ATOMS + 120, FAKE_BASE + 0x10000},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin();
		fake_word(&f, wrong[i].at, wrong[i].value);
		assert_null(beam_open(&f.m, &l, sizeof(l), FAKE_BIAS));
	}
	begin();
	l.format++;
	assert_null(beam_open(&f.m, &l, sizeof(l), FAKE_BIAS));
}

TEST(with_frame_pointers_native_code_walks)
{
	const uint32_t layout = 1;

	begin();
	fake_put(&f, FRAMES, &layout, 4);
	check(in(CODE, 12, 0), true, BEAM_CUT, "no");
}

TEST(a_function_whose_atoms_are_wrong_has_no_name)
{
	begin();
	fake_word(&f, CODE + 8 * 12 + 32 + 24, ATOM(900));
	check(in(CODE, 12, 0), false, BEAM_CUT, "unnamed ");
	begin();
	fake_word(&f, CODE + 8 * 12 + 32 + 32, 256); /* no arity */
	check(in(CODE, 12, 0), false, BEAM_CUT, "unnamed ");
}
