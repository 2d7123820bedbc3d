/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/java/onrecord.h"

struct left {
	unsigned int n;
	uint32_t pid;
	uint64_t start;
};

static void each(void *ctx, uint32_t pid, uint64_t start)
{
	struct left *l = ctx;

	l->n++;
	l->pid = pid;
	l->start = start;
}

static int folder(char path[64])
{
	struct err e = {0};
	int fd = -1;

	snprintf(path, 64, "/tmp/sonde-onrecord-XXXXXX");
	assert_non_null(mkdtemp(path));
	assert_int_equal(onrecord_open(path, &fd, &e), 0);
	return fd;
}

TEST(a_record_is_left_once_its_owner_is_gone_and_the_recording_had_begun)
{
	char path[64];
	struct left l = {0};
	bool left;
	int dir = folder(path), again, fd = onrecord_keep(dir, 812, 4711, &left);

	assert_true(fd >= 0 && !left && !onrecord_begun(fd));
	onrecord_each_left(dir, each, &l);
	assert_int_equal(l.n, 0);
	assert_int_equal(onrecord_keep(dir, 812, 4711, &left), -EBUSY);
	close(fd); /* its owner was killed before it began */
	onrecord_each_left(dir, each, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.pid, 812);
	assert_int_equal(l.start, 4711);
	fd = onrecord_keep(dir, 812, 4711, &left);
	assert_true(fd >= 0 && !left);
	assert_int_equal(onrecord_begin(fd, "1"), 0);
	assert_true(onrecord_begun(fd));
	close(fd);
	again = onrecord_keep(dir, 812, 4711, &left);
	assert_true(again >= 0 && left);
	onrecord_drop(dir, 812, 4711, again);
	l.n = 0;
	onrecord_each_left(dir, each, &l);
	assert_int_equal(l.n, 0);
	close(dir);
	assert_int_equal(rmdir(path), 0);
}

TEST(a_folder_or_file_of_others_is_not_trusted)
{
	char path[64];
	struct err e = {0};
	struct left l = {0};
	bool left;
	int dir = folder(path), fd = openat(dir, "5-6", O_CREAT | O_WRONLY, 0666), other = -1;

	assert_int_equal(fchmod(fd, 0666), 0);
	onrecord_each_left(dir, each, &l);
	assert_int_equal(l.n, 0);
	assert_int_equal(onrecord_keep(dir, 5, 6, &left), -EPERM);
	assert_int_equal(symlinkat("5-6", dir, "7-8"), 0);
	assert_true(onrecord_keep(dir, 7, 8, &left) < 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(onrecord_open(path, &other, &e), -EPERM);
	assert_non_null(strstr(e.what, "other users may write"));
	close(fd);
	unlinkat(dir, "5-6", 0);
	unlinkat(dir, "7-8", 0);
	close(dir);
	rmdir(path);
}

TEST(names_are_a_pid_and_a_start)
{
	static const char *const bad[] = {"",
					  "-",
					  "1",
					  "1-",
					  "-1",
					  "x1-2",
					  "1-2x",
					  "0-1",
					  "99999999999-1",
					  "1--2",
					  "1-99999999999999999999"};
	uint64_t start;
	uint32_t pid;

	assert_true(onrecord_name_parse("12-34", &pid, &start));
	assert_int_equal(pid, 12);
	assert_int_equal(start, 34);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(onrecord_name_parse(bad[i], &pid, &start));
}
