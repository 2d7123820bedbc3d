/* SPDX-License-Identifier: Apache-2.0 */
/* folder: names of segments, whatever the clock does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/store/files/ballast.h"
#include "schema/store/files/folder.h"
#include "tests/unit/missing.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

static void plant(const struct fixture *f, const char *name)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void expect_next(const struct fixture *f, const char *name)
{
	char path[PATH_MAX];
	struct err e = {0};

	assert_int_equal(folder_new_segment(f->dir, path, &e), 0);
	assert_string_equal(strrchr(path, '/') + 1, name);
}

STORE_TEST(a_new_name_sorts_last_even_if_the_clock_went_back)
{
	struct fixture *f = *state;

	plant(f, "20981231T235959Z-0007.db");
	expect_next(f, "20981231T235959Z-0008.db");
	expect_next(f, "20981231T235959Z-0009.db");
}

STORE_TEST(a_second_whose_names_are_all_taken_is_followed_by_the_next)
{
	struct fixture *f = *state;

	plant(f, "20981231T235959Z-9998.db");
	expect_next(f, "20981231T235959Z-9999.db");
	expect_next(f, "20990101T000000Z-0001.db");
	expect_next(f, "20990101T000000Z-0002.db");
}

STORE_TEST(what_was_ended_on_demand_is_that_file_and_those_before_it)
{
	struct fixture *f = *state;
	char name[SEGMENT_NAME_MAX], path[200];
	struct err e = {0};

	assert_int_equal(folder_turn(f->dir, name, &e), -ENOENT);
	assert_int_equal(e.exit, EXIT_NOTHING);
	plant(f, "20260101T000000Z-0001.db");
	plant(f, "20260101T000000Z-0002.db");
	assert_false(folder_is_turned(f->dir, "20260101T000000Z-0002.db"));
	assert_int_equal(folder_turn(f->dir, name, &e), 0);
	assert_string_equal(name, "20260101T000000Z-0002.db");
	plant(f, "20260101T000000Z-0003.db");
	assert_true(folder_is_turned(f->dir, "20260101T000000Z-0001.db"));
	assert_true(folder_is_turned(f->dir, "20260101T000000Z-0002.db"));
	assert_false(folder_is_turned(f->dir, "20260101T000000Z-0003.db"));
	/* the clock was a year ahead for a while, and the segments of that time are gone: names
	 * begin below them again */
	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(unlink(path), 0);
	assert_false(folder_is_turned(f->dir, "20250101T000000Z-0001.db"));
}

STORE_TEST(what_stands_in_turn_is_not_trusted)
{
	static const char *const wrong[] = {"", "x", "../../../../../../etc/passwd",
					    "20260101T000000Z-0001.dbx",
					    "99999999T999999Z-9999.db and more of it"};
	struct fixture *f = *state;

	plant(f, "20260101T000000Z-0001.db");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char path[200];
		FILE *out;

		snprintf(path, sizeof(path), "%s/turn", f->dir);
		out = fopen(path, "we");
		assert_non_null(out);
		fputs(wrong[i], out);
		fclose(out);
		assert_false(folder_is_turned(f->dir, "20260101T000000Z-0001.db"));
	}
}

/* A link that belongs to a stranger, in the place of the store's folder: what is behind it belongs
 * to root, and must stay as it is. */
STORE_TEST(root_writes_removes_and_renames_nothing_where_a_strangers_link_leads)
{
	static const char segment[] = "20260101T000000Z-0001.db";
	struct fixture *f = *state;
	char link[200], path[300], name[SEGMENT_NAME_MAX], aside[PATH_MAX];
	struct err e = {0};
	struct stat st;

	if (geteuid())
		skip_missing("root");
	plant(f, segment);
	plant(f, "ballast");
	snprintf(link, sizeof(link), "%s-link", f->dir);
	assert_int_equal(symlink(f->dir, link), 0);
	assert_int_equal(lchown(link, 4242, 4242), 0);

	assert_int_equal(folder_open(link), -EPERM);
	ballast_keep(link, 4096, 1 << 30, 0);
	assert_false(ballast_drop(link));
	snprintf(path, sizeof(path), "%s/ballast", f->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(folder_turn(link, name, &e), -EPERM);
	assert_int_equal(folder_new_segment(link, aside, &e), -EPERM);
	snprintf(path, sizeof(path), "%s/%s", link, segment);
	assert_int_equal(folder_set_aside(path, aside), -EPERM);
	assert_int_equal(stat(path, &st), 0);

	/* the administrator's own is followed */
	assert_int_equal(lchown(link, 0, 0), 0);
	assert_int_equal(folder_set_aside(path, aside), 0);
	snprintf(path, sizeof(path), "%s/%s.bad", link, segment);
	assert_string_equal(aside, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(unlink(link), 0);
}

STORE_TEST(what_is_in_the_way_of_the_name_that_ends_a_segment_is_not_written_to)
{
	struct fixture *f = *state;
	char name[SEGMENT_NAME_MAX], other[200], path[200], text[8] = "";
	FILE *file;

	plant(f, "20260101T000000Z-0001.db");
	snprintf(other, sizeof(other), "%s/other", f->dir);
	file = fopen(other, "we");
	assert_non_null(file);
	fputs("mine", file);
	fclose(file);
	snprintf(path, sizeof(path), "%s/turn.new", f->dir);
	assert_int_equal(link(other, path), 0);
	assert_int_equal(folder_turn(f->dir, name, NULL), 0);
	file = fopen(other, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "mine");
}
