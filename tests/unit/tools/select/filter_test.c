/* SPDX-License-Identifier: Apache-2.0 */
/* filter and word: which processes a filter lets in, and what a bare word means. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "tests/unit/test.h"
#include "tools/select/filter.h"
#include "tools/select/word.h"

static const struct store_process_row WEB = {
	.pid = 812,
	.uid = 0,
	.comm = "nginx",
	.exe = "/usr/sbin/nginx",
	.args = "nginx -g",
	.unit = "",
	.cgroup = "/docker/0123456789abcdef",
	.container = "web",
	.container_id = "0123456789abcdef",
	.container_image = "nginx:1.27",
	.runtime = "docker",
	.lang = "",
	.lang_runtime = "",
	.present = true,
};
static const struct store_process_row BACKUP = {
	.pid = 77,
	.uid = 4242,
	.comm = "restic",
	.exe = "/usr/bin/restic",
	.args = "restic backup",
	.unit = "backup.service",
	.cgroup = "/system.slice/backup.service",
	.container = "",
	.container_id = "",
	.container_image = "",
	.runtime = "",
	.lang = "java",
	.lang_runtime = "java17",
	.present = true,
};

/* NAME=VALUE words; which of WEB (1) and BACKUP (2) get in */
static int wants(const char *const *words)
{
	struct filters *f = filters_new();
	int in;

	for (; *words; words++) {
		const char *eq = strchr(*words, '=');
		int k;

		for (k = 0; k < FILTER_N; k++)
			if (!strncmp(filter_kind_name((enum filter_kind)k), *words,
				     (size_t)(eq - *words)))
				break;
		assert_true(k < FILTER_N);
		assert_int_equal(filters_add(f, (enum filter_kind)k, eq + 1, NULL), 0);
	}
	in = filters_want_process(f, &WEB) | filters_want_process(f, &BACKUP) << 1;
	filters_free(f);
	return in;
}

#define WANTS(...) wants((const char *const[]){__VA_ARGS__, NULL})

TEST(each_kind_matches_what_people_call_it)
{
	assert_int_equal(WANTS("container=web"), 1);
	assert_int_equal(WANTS("container=012345"), 1);
	assert_int_equal(WANTS("container=01234"), 0);
	assert_int_equal(WANTS("container=we"), 0);
	assert_int_equal(WANTS("image=nginx:1.27"), 1);
	assert_int_equal(WANTS("pid=812"), 1);
	assert_int_equal(WANTS("comm=restic"), 2);
	assert_int_equal(WANTS("exe=/usr/bin/restic"), 2);
	assert_int_equal(WANTS("exe=restic"), 2);
	assert_int_equal(WANTS("exe=bin/restic"), 0);
	assert_int_equal(WANTS("user=root"), 1);
	assert_int_equal(WANTS("user=4242"), 2);
	assert_int_equal(WANTS("unit=backup"), 2);
	assert_int_equal(WANTS("unit=backup.service"), 2);
	assert_int_equal(WANTS("unit=back"), 0);
	assert_int_equal(WANTS("cgroup=/system.slice"), 2);
	assert_int_equal(WANTS("cgroup=/system.slice/"), 2);
	assert_int_equal(WANTS("cgroup=/system"), 0);
	assert_int_equal(WANTS("cgroup=/"), 3);
	assert_int_equal(WANTS("lang=java"), 2);
	assert_int_equal(WANTS("lang=JVM"), 2);
	assert_int_equal(WANTS("lang=java17"), 2);
	assert_int_equal(WANTS("lang=java1"), 0);
	assert_int_equal(WANTS("lang=!jvm"), 1);
	assert_int_equal(WANTS("lang=~^java1[0-9]$"), 2);
}

TEST(one_kind_is_or_several_are_and_and_a_bang_is_not)
{
	assert_int_equal(WANTS("comm=nginx", "comm=restic"), 3);
	assert_int_equal(WANTS("comm=nginx", "pid=77"), 0);
	assert_int_equal(WANTS("comm=nginx", "pid=812"), 1);
	assert_int_equal(WANTS("comm=!nginx"), 2);
	assert_int_equal(WANTS("comm=!nginx", "comm=!restic"), 0);
	assert_int_equal(WANTS("comm=~.", "comm=!restic"), 1);
	assert_int_equal(WANTS("container=!web"), 2);
}

TEST(a_tilde_is_a_regular_expression)
{
	assert_int_equal(WANTS("comm=~^(nginx|restic)$"), 3);
	assert_int_equal(WANTS("comm=~gin"), 1);
	assert_int_equal(WANTS("comm=!~gin"), 2);
	assert_int_equal(WANTS("pid=~^8"), 1);
	assert_int_equal(WANTS("exe=~/bin/"), 2);
	assert_int_equal(WANTS("cgroup=~docker"), 1);
}

TEST(threads_are_filtered_by_their_own_kind)
{
	struct filters *f = filters_new();

	assert_true(filters_want_thread(f, 5));
	assert_int_equal(filters_add(f, FILTER_TID, "5", NULL), 0);
	assert_true(filters_want_thread(f, 5));
	assert_false(filters_want_thread(f, 6));
	assert_true(filters_want_process(f, &WEB));
	filters_free(f);
	f = filters_new();
	assert_int_equal(filters_add(f, FILTER_TID, "!5", NULL), 0);
	assert_false(filters_want_thread(f, 5));
	assert_true(filters_want_thread(f, 6));
	filters_free(f);
}

TEST(bad_values_are_usage_errors)
{
	static const struct {
		enum filter_kind kind;
		const char *value, *says;
	} bad[] = {
		{FILTER_PID, "nginx", "takes a number"},
		{FILTER_TID, "1x", "takes a number"},
		{FILTER_COMM, "", "needs a value"},
		{FILTER_COMM, "!", "needs a value"},
		{FILTER_COMM, "~", "needs a value"},
		{FILTER_COMM, "~(", "not a valid regular expression"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct filters *f = filters_new();
		struct err e = {0};

		assert_int_equal(filters_add(f, bad[i].kind, bad[i].value, &e), -EINVAL);
		assert_int_equal(e.exit, EXIT_USAGE);
		assert_non_null(strstr(e.what, bad[i].says));
		assert_true(filters_empty(f));
		filters_free(f);
	}
}

TEST(filters_are_told_ready_for_a_shell)
{
	struct strbuf s = STRBUF_INIT;
	struct filters *f = filters_new();

	filters_add(f, FILTER_COMM, "!it's; rm -rf", NULL);
	filters_add(f, FILTER_CONTAINER, "web-1", NULL);
	filters_text(f, &s);
	assert_string_equal(strbuf_str(&s), "--container web-1 --comm '!it'\\''s; rm -rf'");
	strbuf_reset(&s);
	filters_what(f, &s);
	assert_string_equal(strbuf_str(&s), "web-1, not it's; rm -rf");
	strbuf_release(&s);
	filters_free(f);
}

static struct names some_names(void)
{
	struct names l = {0};

	names_add(&l, FILTER_CONTAINER, "immich-server", "aabbccddeeff00");
	names_add(&l, FILTER_CONTAINER, "immich-ml", "ffee00112233");
	names_add(&l, FILTER_CONTAINER, "nginx", "001122334455");
	names_add(&l, FILTER_UNIT, "backup", "");
	names_add(&l, FILTER_COMM, "nginx", "");
	names_add(&l, FILTER_COMM, "restic", "");
	names_add(&l, FILTER_COMM, "python3", "");
	names_add(&l, FILTER_PID, "812", "");
	names_add(&l, FILTER_PID, "8124", "");
	return l;
}

TEST(a_word_means_the_name_it_is_or_is_part_of)
{
	static const struct {
		const char *word;
		enum filter_kind kind;
		const char *text;
	} cases[] = {
		{"nginx", FILTER_CONTAINER, "nginx"}, /* not the command of the same name */
		{"ngi", FILTER_CONTAINER, "nginx"},
		{"restic", FILTER_COMM, "restic"},
		{"PYTHON", FILTER_COMM, "python3"},
		{"backup", FILTER_UNIT, "backup"},
		{"backup.service", FILTER_UNIT, "backup"},
		{"-ml", FILTER_CONTAINER, "immich-ml"},
		{"aabbcc", FILTER_CONTAINER, "immich-server"},
		{"812", FILTER_PID, "812"},
	};
	struct names l = some_names();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t at = 999;

		assert_int_equal(word_resolve(&l, cases[i].word, &at, NULL), 0);
		assert_int_equal(l.items[at].kind, cases[i].kind);
		assert_string_equal(l.items[at].text, cases[i].text);
	}
	names_release(&l);
}

TEST(a_word_that_fits_several_lists_them)
{
	struct names l = some_names();
	struct err e = {0};
	size_t at;

	assert_int_equal(word_resolve(&l, "immich", &at, &e), -EEXIST);
	assert_int_equal(e.exit, EXIT_USAGE);
	assert_non_null(strstr(e.what, "container immich-server, container immich-ml"));
	assert_non_null(strstr(e.fix, "--container '~immich'"));
	names_release(&l);
}

TEST(a_word_that_fits_nothing_gets_a_suggestion)
{
	struct names l = some_names();
	struct err e = {0};
	size_t at;

	assert_int_equal(word_resolve(&l, "81", &at, &e), -ENOENT);
	assert_int_equal(word_resolve(&l, "ngixn", &at, &e), -ENOENT);
	assert_int_equal(word_unknown(&l, "ngixn", &e), -ENOENT);
	assert_int_equal(e.exit, EXIT_USAGE);
	assert_non_null(strstr(e.what, "did you mean 'nginx'?"));
	names_release(&l);
}

TEST(a_filter_that_names_nothing_is_told_what_is_near)
{
	struct strbuf said cleanup_strbuf = STRBUF_INIT, none cleanup_strbuf = STRBUF_INIT;
	struct filters *f = filters_new(), *others = filters_new();
	struct names l = {0};
	struct err e = {0};

	names_add(&l, FILTER_CONTAINER, "web", "0123456789ab");
	names_add(&l, FILTER_COMM, "nginx", "");
	assert_int_equal(filters_add(f, FILTER_CONTAINER, "wbe", &e), 0);
	word_near_filters(&l, f, &said);
	assert_string_equal(strbuf_str(&said), "; did you mean '--container web'?");
	assert_int_equal(filters_add(others, FILTER_CONTAINER, "012345", &e), 0); /* by id */
	assert_int_equal(filters_add(others, FILTER_COMM, "!ngixn", &e), 0);
	assert_int_equal(filters_add(others, FILTER_COMM, "~ngi", &e), 0);
	assert_int_equal(filters_add(others, FILTER_COMM, "zebra", &e), 0);
	word_near_filters(&l, others, &none);
	assert_string_equal(strbuf_str(&none), "");
	filters_free(f);
	filters_free(others);
	names_release(&l);
}
