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

static void check(uint64_t pc, bool interrupted, enum beam_end want_end, const char *want)
{
	struct beam_at at = {.pc = pc, .sp = STACK, .copied = 0x400, .interrupted = interrupted};
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

TEST(code_that_modules_share_has_no_name_and_its_caller_may_be_at_any_address)
{
	begin();
	fake_word(&f, STACK, in(CODE, 12, 0) + 1);
	fake_word(&f, STACK + 8, in(CODE, 12, 1) + 1); /* a term */
	fake_word(&f, STACK + 16, CODE + 0x3f00);
	check(CODE - 0x100, true, BEAM_WHOLE, "unnamed lists:map/1");
	check(FAKE_BASE + 0x3fff0, true, BEAM_CUT, "no");
}

TEST(of_code_of_c_only_the_function_that_called_it_is_known)
{
	begin();
	fake_word(&f, STACK, in(CODE, 12, 1));
	check(in(CODE, 12, 0), false, BEAM_CUT, "lists:map/1");
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
