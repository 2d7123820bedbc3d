/* SPDX-License-Identifier: Apache-2.0 */
/* options and near: a command line is parsed by its table; what is mistyped is met with a suggestion. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schema/base/clock.h"
#include "tools/cli/options.h"
#include "tools/print/suggest.h"

struct values {
	bool quiet, all;
	const char *output;
	uint64_t n;
	int64_t last;
	struct option_list pid;
};

static const struct option TABLE[] = {
	{"quiet", 'q', OPTION_FLAG, NULL, "", offsetof(struct values, quiet)},
	{"all", 'a', OPTION_FLAG, NULL, "", offsetof(struct values, all)},
	{"output", 'o', OPTION_STRING, "FILE", "", offsetof(struct values, output)},
	{"number", 'n', OPTION_UINT, "N", "", offsetof(struct values, n)},
	{"last", 0, OPTION_DURATION, "TIME", "", offsetof(struct values, last)},
	{"pid", 'p', OPTION_LIST, "PID", "", offsetof(struct values, pid)},
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

#define PARSE(p, ...)                                                     \
	do {                                                              \
		const char *argv_[] = {"verb", ##__VA_ARGS__, NULL};      \
		parse(p, (int)(sizeof(argv_) / sizeof(argv_[0])) - 1, argv_); \
	} while (0)

static void options_and_words_come_in_any_order(void **state)
{
	struct parsed p;

	(void)state;
	PARSE(&p, "web", "--output=x.html", "-n", "5", "-p", "1", "-p2", "--pid", "3", "-qa", "--last", "1h30m", "db");
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

static void after_two_dashes_all_is_words(void **state)
{
	struct parsed p;

	(void)state;
	PARSE(&p, "a", "--", "make", "-j2", "--quiet");
	assert_int_equal(p.rc, 0);
	assert_false(p.v.quiet);
	assert_int_equal(p.words.n, 4);
	assert_int_equal(p.words.n_before_dashes, 1);
	assert_true(p.words.dashes);
	assert_string_equal(p.words.items[2], "-j2");
	release(&p);
}

static void a_value_may_begin_with_a_dash_and_a_lone_dash_is_a_word(void **state)
{
	struct parsed p;

	(void)state;
	PARSE(&p, "-o", "-", "-", "--output", "-2h");
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.v.output, "-2h");
	assert_int_equal(p.words.n, 1);
	release(&p);
}

static void the_beginning_of_a_long_name_is_enough(void **state)
{
	struct parsed p;

	(void)state;
	PARSE(&p, "--out", "x", "--num=7");
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.v.output, "x");
	assert_int_equal(p.v.n, 7);
	release(&p);
}

static void mistakes_are_usage_errors_that_say_what_and_help(void **state)
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

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
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

static void distance_counts_edits_and_swaps(void **state)
{
	(void)state;
	assert_int_equal(suggest_distance("record", "record", 3), 0);
	assert_int_equal(suggest_distance("recrod", "record", 3), 1);
	assert_int_equal(suggest_distance("RECORD", "record", 3), 0);
	assert_int_equal(suggest_distance("flme", "flame", 3), 1);
	assert_int_equal(suggest_distance("", "abc", 3), 3);
	assert_int_equal(suggest_distance("kitten", "sitting", 3), 3);
	assert_int_equal(suggest_distance("abcdef", "uvwxyz", 3), 4);
}

static void the_nearest_names_are_suggested_first(void **state)
{
	struct strbuf s = STRBUF_INIT;
	struct suggest n;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_and_words_come_in_any_order),
		cmocka_unit_test(after_two_dashes_all_is_words),
		cmocka_unit_test(a_value_may_begin_with_a_dash_and_a_lone_dash_is_a_word),
		cmocka_unit_test(the_beginning_of_a_long_name_is_enough),
		cmocka_unit_test(mistakes_are_usage_errors_that_say_what_and_help),
		cmocka_unit_test(distance_counts_edits_and_swaps),
		cmocka_unit_test(the_nearest_names_are_suggested_first),
	};

	return cmocka_run_group_tests_name("tool options", tests, NULL, NULL);
}
