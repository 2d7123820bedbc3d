/* SPDX-License-Identifier: Apache-2.0 */
/* fillers: which files are found on a real folder, and when a file system is looked at. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loaders/host/fillers.h"
#include "tests/unit/test.h"

#define MIB (1u << 20)

/* Returns the descriptor. */
static int file(const char *path, unsigned int mib)
{
	static char block[MIB];
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	memset(block, 'x', sizeof(block));
	for (unsigned int i = 0; i < mib; i++)
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	assert_int_equal(fsync(fd), 0); /* blocks are known once they are written */
	return fd;
}

static bool has(const struct fillers_one *list, uint32_t n, const char *end, unsigned int mib)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t len = strlen(list[i].path), k = strlen(end);

		if (len >= k && !strcmp(list[i].path + len - k, end) &&
		    list[i].bytes >= (uint64_t)mib * MIB &&
		    list[i].bytes < ((uint64_t)mib + 1) * MIB)
			return true;
	}
	return false;
}

TEST(what_was_written_lately_and_what_is_deleted_but_open_is_found)
{
	char dir[] = "/var/tmp/sonde-fillers-XXXXXX", path[200], outside[200];
	struct timespec old[2] = {{time(NULL) - 7200, 0}, {time(NULL) - 7200, 0}};
	static struct fillers_found f;
	int held, fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/log/app.log", dir);
	close(file(path, 12));
	snprintf(path, sizeof(path), "%s/log/app.log.1", dir);
	close(file(path, 6));
	snprintf(path, sizeof(path), "%s/old", dir);
	fd = file(path, 20);
	assert_int_equal(futimens(fd, old), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/sparse", dir);
	fd = file(path, 0);
	assert_int_equal(ftruncate(fd, 1ll << 33), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/out", dir);
	assert_int_equal(symlink("/usr", path), 0);
	snprintf(outside, sizeof(outside), "%s-deleted", dir);
	held = file(outside, 9);
	assert_int_equal(unlink(outside), 0);

	fillers_look(dir, "/proc", time(NULL), &f);
	assert_true(f.whole);
	assert_int_equal(f.n_files, 2);
	assert_true(has(f.files, f.n_files, "/log/app.log", 12));
	assert_true(has(f.files, f.n_files, "/log/app.log.1", 6));
	assert_int_equal(f.n_folders, 1);
	assert_true(has(f.folders, f.n_folders, "/log", 18));
	assert_true(f.seen < 20);
	/* others' deleted files may be larger */
	if (f.n_deleted < FILLERS_TOLD || f.deleted[FILLERS_TOLD - 1].bytes < 9 * MIB)
		assert_true(has(f.deleted, f.n_deleted, outside, 9));
	for (uint32_t i = 0; i < f.n_deleted; i++)
		if (!strcmp(f.deleted[i].path, outside))
			assert_int_equal(f.deleted[i].pid, getpid());

	close(held);
	for (size_t i = 0; i < 5; i++) {
		static const char *const names[] = {"log/app.log", "log/app.log.1", "old", "sparse",
						    "out"};

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(unlink(path), 0);
	}
	snprintf(path, sizeof(path), "%s/log", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

TEST(it_looks_when_little_is_left_or_much_was_used_up_and_not_again_at_once)
{
	const uint64_t gib = 1ull << 30;
	struct fillers_of of = {.known = true, .available = 60 * gib};

	assert_false(fillers_due(&of, 100 * gib, 60 * gib, 1));
	assert_false(fillers_due(&of, 100 * gib, 58 * gib, 1));
	assert_true(fillers_due(&of, 100 * gib, 56 * gib, 1)); /* 4 GiB less */
	assert_true(fillers_due(&of, 20 * gib, 58 * gib, 1));  /* a tenth less */
	assert_true(fillers_due(&of, 100 * gib, 19 * gib, 1));
	of.looked_ns = 1000000000;
	assert_false(fillers_due(&of, 100 * gib, 19 * gib, FILLERS_EVERY_NS));
	assert_true(fillers_due(&of, 100 * gib, 19 * gib, FILLERS_EVERY_NS + of.looked_ns));
	of = (struct fillers_of){0};
	assert_false(
		fillers_due(&of, 100 * gib, 30 * gib, 1)); /* the first reading: less than what? */
	assert_true(fillers_due(&of, 100 * gib, 10 * gib, 1));
}
