/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/options.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

static const struct family cpu = {.name = "cpu", .summary = "tests", .has_freq = true};
static const struct family plain = {.name = "plain", .summary = "tests"};

#define PARSE(f, o, e, ...)                                                                \
	({                                                                                 \
		static char *argv_[] = {"sonde-cpu", ##__VA_ARGS__, NULL};                 \
		loader_options_read(f, argv_[0], (int)ARRAY_SIZE(argv_) - 1, argv_, o, e); \
	})

TEST(nothing_said_means_the_whole_host_at_99_hz_until_ctrl_c)
{
	struct options o;

	assert_int_equal(PARSE(&cpu, &o, NULL), 0);
	assert_int_equal(o.freq, 99);
	assert_int_equal(o.duration_ns, 0);
	assert_int_equal(o.bucket_s, 10);
	assert_string_equal(o.args, "masked");
	assert_int_equal(o.progress_fd, -1);
	assert_null(o.command);
	assert_int_equal(o.pids.n + o.cgroups.n + o.containers.n + o.comms.n, 0);
	loader_options_release(&cpu, &o);
}

TEST(repeated_options_add_up)
{
	struct options o;

	assert_int_equal(PARSE(&cpu, &o, NULL, "-p", "12", "--pid=13", "--comm", "a", "--comm", "b",
			       "--cgroup", "/x", "--container", "web", "-d", "3s", "--freq", "4999",
			       "--bucket", "1s", "--store", "/s", "--args", "none", "--maps-socket",
			       "/m", "--progress-fd", "5", "-v", "--recording",
			       "9223372036854775807"),
			 0);
	assert_true(o.recording == INT64_MAX);
	assert_int_equal(o.pids.n, 2);
	assert_int_equal(o.pids.items[1], 13);
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
	loader_options_release(&cpu, &o);
}

TEST(what_follows_two_dashes_is_the_command_with_its_own_options)
{
	struct options o;

	assert_int_equal(PARSE(&cpu, &o, NULL, "-d", "1s", "--", "make", "-j4", "--help"), 0);
	assert_non_null(o.command);
	assert_string_equal(o.command[0], "make");
	assert_string_equal(o.command[2], "--help");
	loader_options_release(&cpu, &o);
}

TEST(a_wrong_command_line_is_a_usage_error_that_names_the_word)
{
	struct options o;
	struct err e;

#define REFUSED(word, ...)                                                     \
	do {                                                                   \
		e = (struct err){0};                                           \
		assert_int_equal(PARSE(&cpu, &o, &e, ##__VA_ARGS__), -EINVAL); \
		assert_string_equal(e.fix, "sonde-cpu --help");                \
		loader_options_release(&cpu, &o);                              \
		assert_int_equal(e.exit, EXIT_USAGE);                          \
		assert_non_null(strstr(e.what, word));                         \
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
}

/* What --help prints, to be freed. */
static char *help_of(const struct family *f)
{
	FILE *out = tmpfile();
	int saved = dup(STDOUT_FILENO);
	char *text = calloc(1, 8192);
	struct options o;

	fflush(stdout);
	dup2(fileno(out), STDOUT_FILENO);
	assert_int_equal(PARSE(f, &o, NULL, "--help"), 1);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(out);
	assert_true(fread(text, 1, 8191, out) > 0);
	fclose(out);
	loader_options_release(f, &o);
	return text;
}

TEST(a_family_without_a_frequency_does_not_offer_one)
{
	char *text = help_of(&plain);
	struct options o;
	struct err e = {0};

	assert_true(PARSE(&plain, &o, &e, "--freq", "99") < 0);
	loader_options_release(&plain, &o);
	assert_int_equal(PARSE(&plain, &o, NULL), 0);
	assert_int_equal(o.freq, 0);
	loader_options_release(&plain, &o);
	assert_null(strstr(text, "--freq"));
	assert_non_null(strstr(text, "--duration"));
	free(text);
}

TEST(a_family_has_options_of_its_own)
{
	static struct {
		int color;
	} values;
	static const struct option own[] = {
		{"color", 0, OPTION_ENUM, "green|red", "a color", 0, sizeof(int)}, {0}};
	const struct family painted = {
		.name = "painted", .summary = "tests", .options = {own, &values}};
	char *text = help_of(&painted);
	struct err e = {0};
	struct options o;

	assert_int_equal(PARSE(&painted, &o, &e, "--color", "red", "--duration", "1s"), 0);
	assert_int_equal(values.color, 1);
	assert_int_equal(o.duration_ns, 1000000000);
	loader_options_release(&painted, &o);
	assert_int_equal(PARSE(&painted, &o, &e, "--color", "blue"), -EINVAL);
	assert_string_equal(e.what, "--color takes green or red, not 'blue'");
	loader_options_release(&painted, &o);
	assert_true(PARSE(&plain, &o, &e, "--color", "red") < 0);
	loader_options_release(&plain, &o);
	assert_non_null(strstr(text, "--color green|red"));
	free(text);
}

TEST(the_help_fits_a_screen)
{
	char *text = help_of(&cpu);
	size_t lines = 0;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_true(lines <= 40);
	free(text);
}
