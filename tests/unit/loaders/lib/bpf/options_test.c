// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/options.h"

static const struct family cpu = {.name = "cpu", .summary = "tests", .has_freq = true};
static const struct family plain = {.name = "plain", .summary = "tests"};

#define PARSE(f, o, e, ...)                                                             \
	({                                                                              \
		static char *argv_[] = {"sonde-cpu", ##__VA_ARGS__, NULL};                     \
		options_parse(f, (int)(sizeof(argv_) / sizeof(argv_[0])) - 1, argv_, o, e); \
	})

static void a_duration_is_a_sum_of_numbers_with_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"10s", 10000000000}, {"5m", 300000000000}, {"1h30m", 5400000000000}, {"500ms", 500000000},
		    {"7", 7000000000}, {"2d", 172800000000000}, {"1m1ms", 60001000000}};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(duration_parse(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
}

static void what_is_no_duration_is_refused(void **state)
{
	static const char *const bad[] = {"", "s", "10x", "-5s", "0", "0s", "5 s", "1h30", "10sm", "1.5s",
					  "99999999999999s", "99999999d", "10S", " 10s"};
	uint64_t ns = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(duration_parse(bad[i], &ns) < 0);
	assert_int_equal(ns, 42);
}

static void nothing_said_means_the_whole_host_at_99_hz_until_ctrl_c(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&cpu, &o, NULL), 0);
	assert_int_equal(o.freq, 99);
	assert_int_equal(o.duration_ns, 0);
	assert_int_equal(o.bucket_s, 10);
	assert_string_equal(o.args, "masked");
	assert_int_equal(o.progress_fd, -1);
	assert_null(o.command);
	assert_int_equal(o.n_pids + o.cgroups.n + o.containers.n + o.comms.n, 0);
}

static void repeated_options_add_up(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&cpu, &o, NULL, "-p", "12", "--pid=13", "--comm", "a", "--comm", "b", "--cgroup", "/x",
			       "--container", "web", "-d", "3s", "--freq", "4999", "--bucket", "1s", "--store", "/s",
			       "--args", "none", "--maps-socket", "/m", "--progress-fd", "5", "-v", "--recording",
			       "9223372036854775807"), 0);
	assert_true(o.recording == INT64_MAX);
	assert_int_equal(o.n_pids, 2);
	assert_int_equal(o.pids[1], 13);
	assert_int_equal(o.comms.n, 2);
	assert_string_equal(o.comms.items[1], "b");
	assert_string_equal(o.cgroups.items[0], "/x");
	assert_string_equal(o.containers.items[0], "web");
	assert_int_equal(o.duration_ns, 3000000000);
	assert_int_equal(o.freq, 4999);
	assert_int_equal(o.bucket_s, 1);
	assert_string_equal(o.store, "/s");
	assert_string_equal(o.args, "none");
	assert_string_equal(o.maps_socket, "/m");
	assert_int_equal(o.progress_fd, 5);
	assert_true(o.verbose);
}

static void what_follows_two_dashes_is_the_command_with_its_own_options(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&cpu, &o, NULL, "-d", "1s", "--", "make", "-j4", "--help"), 0);
	assert_non_null(o.command);
	assert_string_equal(o.command[0], "make");
	assert_string_equal(o.command[2], "--help");
	assert_false(o.help);
}

static void a_wrong_command_line_is_a_usage_error_that_names_the_word(void **state)
{
	struct options o = {.freq = 7};
	struct err e;

	(void)state;
#define REFUSED(word, ...)                                        \
	do {                                                      \
		e = (struct err){0};                              \
		assert_true(PARSE(&cpu, &o, &e, ##__VA_ARGS__) < 0); \
		assert_int_equal(e.exit, EXIT_USAGE);             \
		assert_non_null(strstr(e.what, word));            \
	} while (0)
	REFUSED("--frobnicate", "--frobnicate");
	REFUSED("-z", "-z");
	REFUSED("--pid", "--pid");
	REFUSED("12x", "--pid", "12x");
	REFUSED("'0'", "--freq", "0");
	REFUSED("5000", "--freq", "5000");
	REFUSED("2s", "--bucket", "2s");
	REFUSED("some", "--args", "some");
	REFUSED("word", "word");
	REFUSED("command", "--");
	REFUSED("exclude", "--pid", "1", "--", "true");
	REFUSED("9223372036854775808", "--recording", "9223372036854775808");
	REFUSED("-1", "--recording", "-1");
	REFUSED("--json", "--json");
	REFUSED("--comm", "--comm", "");
#undef REFUSED
	assert_int_equal(o.freq, 7); /* untouched on failure */
}

static void a_family_without_a_frequency_does_not_offer_one(void **state)
{
	struct options o;
	struct err e = {0};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_true(PARSE(&plain, &o, &e, "--freq", "99") < 0);
	assert_int_equal(PARSE(&plain, &o, NULL), 0);
	assert_int_equal(o.freq, 0);
	options_help(&plain, f);
	fclose(f);
	assert_null(strstr(text, "--freq"));
	assert_non_null(strstr(text, "--duration"));
	free(text);
}

static const char *color;

static int color_set(const char *value, struct err *e)
{
	color = value;
	return strcmp(value, "red") ? err_set(e, -EINVAL, EXIT_USAGE, "--color '%s' is not red", value) : 0;
}

static void a_family_has_options_of_its_own(void **state)
{
	static const struct family_option own[] = {{"color", "NAME", "a color", color_set}, {0}};
	const struct family painted = {.name = "painted", .summary = "tests", .options = own};
	struct err e = {0};
	struct options o;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(PARSE(&painted, &o, &e, "--color", "red", "--duration", "1s"), 0);
	assert_string_equal(color, "red");
	assert_int_equal(o.duration_ns, 1000000000);
	assert_int_equal(PARSE(&painted, &o, &e, "--color", "blue"), -EINVAL);
	assert_non_null(strstr(e.what, "blue"));
	assert_true(PARSE(&plain, &o, &e, "--color", "red") < 0);
	options_help(&painted, f);
	fclose(f);
	assert_non_null(strstr(text, "--color NAME"));
	free(text);
}

static void the_help_fits_a_screen(void **state)
{
	char *text = NULL;
	size_t len, lines = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	options_help(&cpu, f);
	fclose(f);
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	assert_true(lines <= 40);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_duration_is_a_sum_of_numbers_with_units),
		cmocka_unit_test(what_is_no_duration_is_refused),
		cmocka_unit_test(nothing_said_means_the_whole_host_at_99_hz_until_ctrl_c),
		cmocka_unit_test(repeated_options_add_up),
		cmocka_unit_test(what_follows_two_dashes_is_the_command_with_its_own_options),
		cmocka_unit_test(a_wrong_command_line_is_a_usage_error_that_names_the_word),
		cmocka_unit_test(a_family_without_a_frequency_does_not_offer_one),
		cmocka_unit_test(a_family_has_options_of_its_own),
		cmocka_unit_test(the_help_fits_a_screen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
