/* SPDX-License-Identifier: Apache-2.0 */
/* options and suggest: a command line is parsed by its table; a mistyped word gets a suggestion. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cli/options.h"
#include "schema/base/cli/suggest.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

struct values {
	bool quiet, all;
	const char *output;
	uint64_t n;
	int64_t last;
	struct option_list pid;
};

static const struct option TABLE[] = {
	{"quiet", 'q', OPTION_FLAG, NULL, "", OPTION_AT(struct values, quiet)},
	{"all", 'a', OPTION_FLAG, NULL, "", OPTION_AT(struct values, all)},
	{"output", 'o', OPTION_STRING, "FILE", "", OPTION_AT(struct values, output)},
	{"number", 'n', OPTION_UINT, "N", "", OPTION_AT(struct values, n)},
	{"last", 0, OPTION_DURATION, "TIME", "", OPTION_AT(struct values, last)},
	{"pid", 'p', OPTION_LIST, "PID", "", OPTION_AT(struct values, pid)},
	{0},
};

struct parsed {
	struct values v;
	struct option_set set;
	struct option_words words;
	struct err e;
	int rc;
};

static void parse(struct parsed *p, int argc, const char **argv)
{
	memset(p, 0, sizeof(*p));
	p->set = (struct option_set){TABLE, &p->v};
	p->rc = options_parse(argc, (char **)argv, &p->set, 1, &p->words, &p->e);
}

static void release(struct parsed *p)
{
	options_release(&p->set, 1, &p->words);
}

#define PARSE(p, ...)                                                \
	do {                                                         \
		const char *argv_[] = {"verb", ##__VA_ARGS__, NULL}; \
		parse(p, (int)ARRAY_SIZE(argv_) - 1, argv_);         \
	} while (0)

TEST(options_and_words_come_in_any_order)
{
	struct parsed p;

	PARSE(&p, "web", "--output=x.html", "-n", "5", "-p", "1", "-p2", "--pid", "3", "-qa",
	      "--last", "1h30m", "db");
	assert_int_equal(p.rc, 0);
	assert_true(p.v.quiet && p.v.all);
	assert_string_equal(p.v.output, "x.html");
	assert_int_equal(p.v.n, 5);
	assert_int_equal(p.v.last, 5400 * NSEC_PER_SEC);
	assert_int_equal(p.v.pid.n, 3);
	assert_string_equal(p.v.pid.items[1], "2");
	assert_int_equal(p.words.n, 2);
	assert_string_equal(p.words.items[1], "db");
	release(&p);
}

TEST(after_two_dashes_all_is_words)
{
	struct parsed p;

	PARSE(&p, "a", "--", "make", "-j2", "--quiet");
	assert_int_equal(p.rc, 0);
	assert_false(p.v.quiet);
	assert_int_equal(p.words.n, 4);
	assert_int_equal(p.words.n_before_dashes, 1);
	assert_true(p.words.dashes);
	assert_string_equal(p.words.items[2], "-j2");
	release(&p);
}

TEST(a_value_may_begin_with_a_dash_and_a_lone_dash_is_a_word)
{
	struct parsed p;

	PARSE(&p, "-o", "-", "-", "--output", "-2h");
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.v.output, "-2h");
	assert_int_equal(p.words.n, 1);
	release(&p);
}

TEST(a_value_that_is_the_name_of_an_option_was_forgotten)
{
	static const char *const args[] = {"--quiet", "--output", "--number=3", "--"};
	struct parsed p;

	for (size_t i = 0; i < ARRAY_SIZE(args); i++) {
		PARSE(&p, "--output", args[i]);
		assert_int_equal(p.rc, -EINVAL);
		assert_non_null(strstr(p.e.what, "--output needs a value"));
		release(&p);
	}
	PARSE(&p, "--output=--quiet", "--output", "--nothing");
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.v.output, "--nothing");
	release(&p);
}

TEST(the_beginning_of_a_long_name_is_enough)
{
	struct parsed p;

	PARSE(&p, "--out", "x", "--num=7");
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.v.output, "x");
	assert_int_equal(p.v.n, 7);
	release(&p);
}

TEST(mistakes_are_usage_errors_that_say_what_and_help)
{
	static const struct {
		const char *argv[3];
		const char *says;
	} cases[] = {
		{{"--outptu", "x"}, "did you mean '--output'?"},
		{{"--nunber", "1"}, "did you mean '--number'?"},
		{{"--zzzzzz", NULL}, "no option --zzzzzz"},
		{{"-z", NULL}, "no option -z"},
		{{"--output", NULL}, "needs a value: FILE"},
		{{"-o", NULL}, "needs a value: FILE"},
		{{"-n", "x"}, "takes a number, not 'x'"},
		{{"-n", "-1"}, "takes a number"},
		{{"-n", "99999999999999999999999"}, "takes a number"},
		{{"--last", "soon"}, "takes a duration"},
		{{"--quiet=yes", NULL}, "takes no value"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *argv[] = {"verb", cases[i].argv[0], cases[i].argv[1], NULL};
		struct parsed p;

		parse(&p, cases[i].argv[1] ? 3 : 2, argv);
		assert_int_equal(p.rc, -EINVAL);
		assert_int_equal(p.e.exit, EXIT_USAGE);
		if (!strstr(p.e.what, cases[i].says))
			fail_msg("%s: '%s' lacks '%s'", cases[i].argv[0], p.e.what, cases[i].says);
		release(&p);
	}
}

struct kinds {
	int fd;
	uint32_t freq;
	uint64_t bytes;
	int64_t keep;
	const char *args;
	int payload, what;
	bool plain;
	struct option_numbers pids;
	struct option_list comms;
};

static const struct option KINDS[] = {
	{"fd", 0, OPTION_UINT, "N", "", OPTION_AT(struct kinds, fd), .max = INT32_MAX},
	{"freq", 'F', OPTION_UINT, "HZ", "", OPTION_AT(struct kinds, freq), .min = 1, .max = 4999},
	{"bytes", 0, OPTION_BYTES, "SIZE", "", OPTION_AT(struct kinds, bytes)},
	{"keep", 0, OPTION_DURATION, "TIME", "", OPTION_AT(struct kinds, keep), .min = NSEC_PER_SEC,
	 .max = 60 * NSEC_PER_SEC, .zero = true},
	{"args", 0, OPTION_WORD, "full|masked|none", "", OPTION_AT(struct kinds, args)},
	{"payload", 0, OPTION_ENUM, "masked|full|none", "", OPTION_AT(struct kinds, payload)},
	{"tracepoints", 0, OPTION_ENUM, "auto|plain", "", OPTION_AT(struct kinds, plain)},
	{"once", 0, OPTION_SET, NULL, "", OPTION_AT(struct kinds, what), .min = 1},
	{"status", 0, OPTION_SET, NULL, "", OPTION_AT(struct kinds, what), .min = 2},
	{"pid", 0, OPTION_NUMBERS, "PID", "", OPTION_AT(struct kinds, pids), .min = 1,
	 .max = INT32_MAX},
	{"comm", 0, OPTION_LIST, "NAME", "", OPTION_AT(struct kinds, comms), .min = 1, .max = 2},
	{0},
};

static const struct program PROGRAM = {
	.name = "sonde-x", .usage = "[options] FILE", .about = "x", .words = 1};

TEST(each_kind_fills_its_field_and_no_other)
{
	char *argv[] = {"x",          "--fd",   "7",        "-F99",      "--bytes", "1.5k",
			"--keep=0",   "--args", "none",     "--payload", "none",    "--tracepoints",
			"plain",      "--once", "--status", "--pid",     "1",       "--pid",
			"2147483647", "--comm", "a",        "file",      NULL};
	struct kinds k = {.fd = -1, .keep = 5, .args = "masked"};
	const struct option_set set = {KINDS, &k};
	struct option_words words;
	struct err e = {0};

	assert_int_equal(program_options(&PROGRAM, 22, argv, &set, 1, &words, &e), 0);
	assert_int_equal(k.fd, 7);
	assert_int_equal(k.freq, 99);
	assert_int_equal(k.bytes, 1536);
	assert_int_equal(k.keep, 0);
	assert_string_equal(k.args, "none");
	assert_int_equal(k.payload, 2);
	assert_true(k.plain);
	assert_int_equal(k.what, 2);
	assert_int_equal(k.pids.n, 2);
	assert_int_equal(k.pids.items[1], INT32_MAX);
	assert_int_equal(k.comms.n, 1);
	assert_int_equal(words.n, 1);
	assert_null(words.items[1]);
	options_release(&set, 1, &words);
}

/* As sonde's programs pass it on, and as people write it. */
TEST(at_most_none_is_all)
{
	uint64_t n = 0;
	const struct option table[] = {{"number", 'n', OPTION_MOST, "N", ""}, {0}};
	const struct option_set set = {table, &n};
	static const struct {
		const char *text;
		uint64_t n; /* 0: refused */
	} cases[] = {{"1", 1},          {"30", 30}, {"0", OPTION_ALL}, {"1000000000", OPTION_ALL},
		     {"1000000001", 0}, {"-1", 0},  {"x", 0},          {"", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *argv[] = {"verb", "-n", (char *)(uintptr_t)cases[i].text, NULL};
		struct option_words words;
		struct err e = {0};
		int rc = options_parse(3, argv, &set, 1, &words, &e);

		assert_int_equal(!rc, cases[i].n != 0);
		if (!rc)
			assert_int_equal(n, cases[i].n);
		options_release(&set, 1, &words);
	}
}

TEST(nothing_has_any_unit)
{
	static const char *const zeros[] = {"0", "0s", "00m", "0ms"};

	for (size_t i = 0; i < ARRAY_SIZE(zeros); i++) {
		char *argv[] = {"x", "--keep", (char *)zeros[i], NULL};
		struct kinds k = {.keep = 5};
		const struct option_set set = {KINDS, &k};
		struct option_words words;
		struct err e = {0};

		assert_int_equal(program_options(&PROGRAM, 3, argv, &set, 1, &words, &e), 0);
		assert_int_equal(k.keep, 0);
		options_release(&set, 1, &words);
	}
}

TEST(what_a_value_may_be_is_said_with_the_way_to_the_help)
{
	static const struct {
		const char *argv[6];
		const char *says;
	} cases[] = {
		{{"--freq", "5000"}, "--freq takes a number from 1 to 4999, not '5000'"},
		{{"--freq", "0"}, "from 1 to 4999"},
		{{"--fd", "2147483648"}, "from 0 to 2147483647"},
		{{"--bytes", "0"}, "--bytes takes a size like 2G or 64M, not '0'"},
		{{"--keep", "2m"}, "--keep takes a duration of at most 1m, not '2m'"},
		{{"--keep", "10ms"}, "of at least 1s"},
		{{"--keep", "15"},
		 "--keep takes a duration with its unit, not '15': --keep 15s or --keep 15m"},
		{{"--keep", "soon"}, "a duration like 10s, 15m or 1h30m"},
		{{"--args", "some"}, "--args takes full, masked or none, not 'some'"},
		{{"--args", "full|masked"}, "full, masked or none"},
		{{"--payload", ""}, "masked, full or none"},
		{{"--pid", "12x"}, "from 1 to 2147483647, not '12x'"},
		{{"--comm", ""}, "--comm needs a value: NAME"},
		{{"--comm=a", "--comm=b", "--comm=c"}, "--comm is given more than 2 times"},
		{{"--once=1"}, "--once takes no value"},
		{{"one", "two"}, "'two' is one word too many"},
		{{"--", "one", "two"}, "'two' is one word too many"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *argv[8] = {"x"};
		struct kinds k = {0};
		const struct option_set set = {KINDS, &k};
		struct option_words words;
		struct err e = {0};
		int argc = 1;

		for (; cases[i].argv[argc - 1]; argc++)
			argv[argc] = (char *)cases[i].argv[argc - 1];
		assert_int_equal(program_options(&PROGRAM, argc, argv, &set, 1, &words, &e),
				 -EINVAL);
		assert_int_equal(e.exit, EXIT_USAGE);
		assert_string_equal(e.fix, "sonde-x --help");
		if (!strstr(e.what, cases[i].says))
			fail_msg("%s: '%s' lacks '%s'", cases[i].argv[0], e.what, cases[i].says);
		options_release(&set, 1, &words);
	}
}

TEST(distance_counts_edits_and_swaps)
{
	assert_int_equal(suggest_distance("record", "record", 3), 0);
	assert_int_equal(suggest_distance("recrod", "record", 3), 1);
	assert_int_equal(suggest_distance("RECORD", "record", 3), 0);
	assert_int_equal(suggest_distance("flme", "flame", 3), 1);
	assert_int_equal(suggest_distance("", "abc", 3), 3);
	assert_int_equal(suggest_distance("kitten", "sitting", 3), 3);
	assert_int_equal(suggest_distance("abcdef", "uvwxyz", 3), 4);
}

TEST(the_nearest_names_are_suggested_first)
{
	struct strbuf s = STRBUF_INIT;
	struct suggest n;

	suggest_init(&n, "immch");
	suggest_add(&n, "postgres");
	suggest_add(&n, "immich-x");
	suggest_add(&n, "immich");
	suggest_add(&n, "immich");
	suggest_say(&n, &s, "");
	assert_string_equal(strbuf_str(&s), "; did you mean 'immich'?");
	strbuf_reset(&s);
	suggest_init(&n, "nothing-like-it");
	suggest_add(&n, "web");
	suggest_say(&n, &s, "");
	assert_string_equal(strbuf_str(&s), "");
	strbuf_release(&s);
}
