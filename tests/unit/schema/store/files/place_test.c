/* SPDX-License-Identifier: Apache-2.0 */
/* place: a folder that is renamed or removed under a writer, and a disk that has no inode left:
 * what the writer holds is kept, or the reason is true. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/unit/missing.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10101010

static void add_some(struct store_writer *w, uint32_t run, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		fixture_add(w, run, 100 + i % 5, i % 20, T0_S * NS + (int64_t)i * NS / 10, 1);
	store_flush(w);
}

static int64_t lost(const struct fixture *f)
{
	return fixture_sql_all(f, "SELECT coalesce(sum(lost), 0) FROM loss");
}

STORE_TEST(a_folder_that_is_renamed_is_followed_and_nothing_is_lost)
{
	struct fixture *f = *state, moved;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	add_some(w, run, 0, 100);
	assert_true(fixture_wait_stored(w, 100));
	snprintf(moved.dir, sizeof(moved.dir), "%.55s.moved", f->dir);
	assert_int_equal(rename(f->dir, moved.dir), 0);
	add_some(w, run, 100, 100);
	assert_true(fixture_wait_stored(w, 200));
	add_some(w, run, 200, 50);
	fixture_close(w);
	assert_int_equal(access(f->dir, F_OK), -1);
	assert_int_equal(fixture_files(moved.dir, ".db"), 1);
	assert_int_equal(fixture_sql_all(&moved, "SELECT sum(samples) FROM cpu_samples"), 250);
	assert_int_equal(lost(&moved), 0);
	assert_int_equal(fixture_sql(fixture_segment(&moved, 0),
				     "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
			 1);
	assert_int_equal(rename(moved.dir, f->dir), 0);
	/* its tally is gone: the next writer finds nothing that is missing */
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(lost(f), 0);
}

STORE_TEST(a_folder_that_is_removed_is_made_again_and_what_waits_is_stored_there)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	char command[128];

	add_some(w, run, 0, 100);
	assert_true(fixture_wait_stored(w, 100));
	snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
	assert_int_equal(system(command), 0);
	add_some(w, run, 100, 100);
	assert_true(fixture_wait_stored(w, 200));
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples"), 100);
	assert_int_equal(lost(f), 0);
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(lost(f), 0);
}

STORE_TEST(a_disk_without_an_inode_left_says_so)
{
	struct fixture *f = *state;
	struct store_writer_opts o = {.dir = f->dir};
	struct store_writer *w = NULL;
	char path[128];

	for (int left = 0; left < 6; left++) { /* lock, writers, tally, segment, -wal, -shm */
		struct err e = {0};
		int rc;

		if (geteuid() || mount("tmpfs", f->dir, "tmpfs", 0, "size=8m,nr_inodes=12"))
			skip_missing("root and the right to mount a tmpfs");
		for (int i = 0; i < 11 - left; i++) {
			snprintf(path, sizeof(path), "%s/filler%d", f->dir, i);
			close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		}
		rc = store_writer_open(&o, &w, &e);
		if (rc != -ENOSPC || !strstr(e.what, "inodes"))
			fprintf(stderr, "%d left: %d %s\n", left, rc, e.what);
		assert_int_equal(rc, -ENOSPC);
		assert_non_null(strstr(e.what, "inodes"));
		assert_non_null(strstr(e.fix, "df -i"));
		assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
	}
}
