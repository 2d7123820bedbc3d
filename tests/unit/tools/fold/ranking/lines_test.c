/* SPDX-License-Identifier: Apache-2.0 */
/* lines: what `sonde lines` is made of: which functions are meant, their lines' sums, and where
 * their text is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "tests/unit/test.h"
#include "tests/unit/tools/fold/fold_sample.h"
#include "tools/fold/ranking/hotlines.h"
#include "tools/fold/ranking/sourcefile.h"

static char dir[] = "/tmp/sonde-lines-XXXXXX";

TEST(lines_sum_up_what_stands_at_them_and_what_they_called)
{
	struct fold f = fold_sample();
	struct hotlines h;

	assert_int_equal(hotlines_init(&h, &f, "main", NULL), 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.functions[0].total_samples, 65);
	assert_int_equal(h.functions[0].self_samples, 0);
	assert_int_equal(h.functions[0].n_lines, 2);
	assert_int_equal(h.functions[0].lines[0].line, 10);
	assert_int_equal(h.functions[0].lines[0].total_samples, 60);
	assert_int_equal(h.functions[0].lines[1].line, 12);
	assert_int_equal(h.functions[0].lines[1].total_samples, 5);
	hotlines_release(&h);
}

TEST(an_inlined_function_has_its_own_lines_and_its_time_is_in_its_callers_total)
{
	struct fold f = fold_sample();
	struct hotlines h;

	assert_int_equal(hotlines_init(&h, &f, "^(work|small)$", NULL), 0);
	assert_int_equal(h.n, 2);
	assert_string_equal(f.frames[h.functions[0].frame].name, "work");
	assert_false(h.functions[0].inlined);
	assert_int_equal(h.functions[0].lines[0].total_samples, 35);
	assert_int_equal(h.functions[0].lines[0].self_samples, 5);
	assert_true(h.functions[1].inlined);
	assert_string_equal(h.functions[1].lines[0].file, "work.h");
	assert_int_equal(h.functions[1].lines[0].self_samples, 30);
	hotlines_release(&h);
}

TEST(a_recursion_counts_once_in_each_total)
{
	struct fold_frame frames[] = {
		{.name = "-", .module = "", .module_path = "", .build_id = "", .file = ""},
		{.name = "f", APP, .file = "f.c", .line = 1, .offset = 1, .named = true},
		{.name = "f", APP, .file = "f.c", .line = 2, .offset = 2, .named = true},
		{.name = "f", APP, .file = "", .line = 0, .offset = 3, .named = true},
	};
	struct fold_node nodes[] = {NODE(0, 0, 0, 10), NODE(1, 0, 0, 10), NODE(2, 1, 0, 10),
				    NODE(1, 2, 6, 10), NODE(3, 3, 4, 4)};
	struct fold f = {.frames = frames,
			 .n_frames = ARRAY_SIZE(frames),
			 .nodes = nodes,
			 .n_nodes = ARRAY_SIZE(nodes)};
	struct hotlines h;

	assert_int_equal(hotlines_init(&h, &f, "f", NULL), 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.functions[0].total_samples, 10);
	assert_int_equal(h.functions[0].self_samples, 10);
	assert_int_equal(h.functions[0].n_lines, 3);
	assert_int_equal(h.functions[0].lines[0].total_samples, 10);
	assert_int_equal(h.functions[0].lines[0].self_samples, 6);
	assert_int_equal(h.functions[0].lines[1].total_samples, 10);
	assert_int_equal(h.functions[0].lines[2].line, 0); /* what is not known comes last */
	assert_int_equal(h.functions[0].lines[2].self_samples, 4);
	hotlines_release(&h);
}

TEST(a_function_that_is_not_there_is_told_with_what_is_near)
{
	struct fold f = fold_sample();
	struct hotlines h;
	struct err e = {0};

	assert_true(hotlines_init(&h, &f, "smal1", &e) < 0);
	assert_int_equal(e.exit, EXIT_NOTHING);
	assert_non_null(strstr(e.what, "did you mean 'small'?"));
	assert_true(hotlines_init(&h, &f, "(", &e) < 0);
	assert_int_equal(e.exit, EXIT_USAGE);
}

static const char *places(const char *path, const char *const *items, size_t n)
{
	static char all[1024];
	struct option_list dirs = {.items = (const char **)items, .n = n};
	struct strbuf s = STRBUF_INIT;
	size_t len = 0;

	all[0] = '\0';
	for (size_t i = 0; sourcefile_candidate(path, &dirs, i, &s); i++)
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", len ? " " : "",
					s.buf);
	strbuf_release(&s);
	return all;
}

TEST(source_is_looked_for_by_rule_then_in_folders_then_as_recorded)
{
	const char *rule[] = {"/build=/home/user", "/src"}, *root[] = {"/=/mnt"},
		   *dirs[] = {"/a", "/b"};

	assert_string_equal(
		places("/build/x/../lib/f.c", rule, 2),
		"/home/user/lib/f.c /src/build/lib/f.c /src/lib/f.c /src/f.c /build/lib/f.c");
	assert_string_equal(places("/builder/f.c", rule, 1), "/builder/f.c");
	assert_string_equal(places("/x/f.c", root, 1), "/mnt/x/f.c /x/f.c");
	assert_string_equal(places("../../etc/./shadow", dirs, 2),
			    "/a/etc/shadow /a/shadow /b/etc/shadow /b/shadow");
	assert_string_equal(places("/../../f.c", dirs, 0), "/f.c");
	assert_string_equal(places("f.c", dirs, 0), "");
	assert_string_equal(places("..", dirs, 2), "");
	assert_string_equal(places("", dirs, 2), "");
}

TEST(only_regular_files_are_read_and_shown_as_text)
{
	static const char content[] = "int a;\r\n\tb\x1b[31m();\n\nlast";
	struct option_list none = {0};
	struct strbuf line = STRBUF_INIT;
	struct sourcefile *s;
	const char *why;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/f.c", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, content, sizeof(content) - 1), sizeof(content) - 1);
	close(fd);
	s = sourcefile_open(path, &none, &(struct sourcereader){0}, &why);
	assert_non_null(s);
	assert_true(sourcefile_line(s, 1, &line));
	assert_string_equal(line.buf, "int a;");
	assert_true(sourcefile_line(s, 2, &line));
	assert_string_equal(line.buf, "        b\\x1b[31m();");
	assert_true(sourcefile_line(s, 3, &line));
	assert_string_equal(strbuf_str(&line), "");
	assert_true(sourcefile_line(s, 4, &line));
	assert_string_equal(line.buf, "last");
	assert_false(sourcefile_line(s, 5, &line));
	assert_false(sourcefile_line(s, 0, &line));
	sourcefile_close(s);
	strbuf_release(&line);
	assert_int_equal(truncate(path, SOURCEFILE_MAX + 1), 0);
	assert_null(sourcefile_open(path, &none, &(struct sourcereader){0}, &why));
	assert_string_equal(why, "too large");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(sourcefile_open(path, &none, &(struct sourcereader){0}, &why));
	assert_string_equal(why, "not a regular file");
	unlink(path);
	assert_null(sourcefile_open(path, &none, &(struct sourcereader){0}, &why));
	assert_string_equal(why, "No such file or directory");
}

TEST(an_empty_file_has_no_line)
{
	struct option_list none = {0};
	struct strbuf line = STRBUF_INIT;
	struct sourcefile *s;
	const char *why;
	char path[64];

	snprintf(path, sizeof(path), "%s/empty", dir);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	s = sourcefile_open(path, &none, &(struct sourcereader){0}, &why);
	assert_non_null(s);
	assert_false(sourcefile_line(s, 1, &line));
	sourcefile_close(s);
	unlink(path);
}

static int dir_make(void **state)
{
	(void)state;
	return !mkdtemp(dir);
}

static int dir_remove(void **state)
{
	(void)state;
	return rmdir(dir);
}

const struct test_group test_group = {dir_make, dir_remove};
