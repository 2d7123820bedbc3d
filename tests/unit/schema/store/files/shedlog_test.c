/* SPDX-License-Identifier: Apache-2.0 */
/* shedlog: what sonded made do less, as a file says it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/store/files/shedlog.h"
#include "tests/unit/test.h"

static size_t spans(const char *text, int64_t from, int64_t to, struct shedlog_span **out)
{
	size_t n;

	shedlog_parse(text, strlen(text), from, to, out, &n);
	return n;
}

TEST(a_state_holds_until_the_next_line_of_its_family)
{
	struct shedlog_span *v;

	assert_int_equal(spans("100 cpu rate 49 99\n"
			       "150 offcpu step 1 3\n"
			       "200 cpu rate 24 99\n"
			       "300 cpu full 0 3\n",
			       0, 1000, &v),
			 3);
	assert_true(v[0].from_ns == 100 && v[0].to_ns == 200 && v[0].state == SHEDLOG_RATE);
	assert_true(v[0].n == 49 && v[0].of == 99 && !strcmp(v[0].family, "cpu"));
	assert_true(v[1].from_ns == 150 && v[1].to_ns == INT64_MAX && v[1].state == SHEDLOG_STEP);
	assert_true(v[2].from_ns == 200 && v[2].to_ns == 300 && v[2].n == 24);
	free(v);
}

TEST(a_sonded_that_begins_or_ends_ends_the_states_of_all_families)
{
	struct shedlog_span *v;

	assert_int_equal(
		spans("100 cpu hung 0 0\n120 offcpu cpu 4 3\n200 * full 0 0\n", 0, 1000, &v), 2);
	assert_true(v[0].to_ns == 200 && v[1].to_ns == 200);
	free(v);
}

TEST(only_spans_that_touch_the_range_are_told)
{
	static const char text[] = "100 cpu cpu 4 3\n200 cpu full 0 3\n300 cpu memory 0 3\n";
	struct shedlog_span *v;

	assert_int_equal(spans(text, 0, 100, &v), 0);
	free(v);
	assert_int_equal(spans(text, 199, 300, &v), 1);
	assert_true(v[0].state == SHEDLOG_CPU);
	free(v);
	assert_int_equal(spans(text, 200, 400, &v), 1);
	assert_true(v[0].state == SHEDLOG_MEMORY && v[0].to_ns == INT64_MAX);
	free(v);
}

TEST(lines_that_make_no_sense_are_skipped)
{
	struct shedlog_span *v;

	assert_int_equal(
		spans("x\n100 cpu\n100 cpu rate 99 49\n100 cpu step 4 3\n100 cpu less 1 2\n"
		      "100 \x1b[2J rate 1 2\n100 * rate 1 2\n100 cpu rate 1 2 3\n"
		      "100 cpu rate 49 99",
		      0, 1000, &v),
		0);
	free(v);
}

TEST(what_is_written_is_read_and_the_file_stays_small)
{
	char dir[] = "/tmp/shedlog-XXXXXX", path[64];
	struct shedlog_span *v;
	struct stat st;
	size_t n;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/shed", dir);
	assert_int_equal(shedlog_add(dir, 1, "*", SHEDLOG_FULL, 0, 0), 0);
	assert_true(access(path, F_OK) < 0); /* nothing was shed */
	for (int64_t t = 0; t < 6000; t++)
		assert_int_equal(shedlog_add(dir, 1000 + t, "offcpu",
					     t % 2 ? SHEDLOG_FULL : SHEDLOG_STEP, 1, 3),
				 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= SHEDLOG_BYTES + 128);
	shedlog_read(dir, 6996, INT64_MAX, &v, &n);
	assert_int_equal(n, 2);
	assert_true(v[0].from_ns == 6996 && v[0].to_ns == 6997 && v[1].from_ns == 6998);
	free(v);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	shedlog_read(dir, 0, INT64_MAX, &v, &n);
	assert_int_equal(n, 0);
	assert_true(shedlog_add(dir, 1, "cpu", SHEDLOG_CPU, 1, 3) < 0);
	unlink(path);
	rmdir(dir);
}
