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

static bool has(const struct fillers_list *l, const char *end, unsigned int mib)
{
	for (uint32_t i = 0; i < l->n; i++) {
		size_t len = strlen(l->one[i].path), k = strlen(end);

		if (len >= k && !strcmp(l->one[i].path + len - k, end) &&
		    l->one[i].bytes >= (uint64_t)mib * MIB &&
		    l->one[i].bytes < ((uint64_t)mib + 1) * MIB)
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
	assert_int_equal(f.files[FILLERS_1H].n, 2);
	assert_true(has(&f.files[FILLERS_1H], "/log/app.log", 12));
	assert_true(has(&f.files[FILLERS_1H], "/log/app.log.1", 6));
	assert_int_equal(f.folders[FILLERS_1H].n, 1);
	assert_true(has(&f.folders[FILLERS_1H], "/log", 18));
	/* two hours old */
	for (int i = FILLERS_6H; i < FILLERS_SPANS; i++) {
		assert_int_equal(f.files[i].n, 3);
		assert_true(has(&f.files[i], "/old", 20));
		assert_string_equal(f.files[i].one[0].path + strlen(f.files[i].one[0].path) - 4,
				    "/old");
	}
	assert_true(f.seen < 20);
	/* others' deleted files may be larger */
	if (f.deleted.n < FILLERS_TOLD || f.deleted.one[FILLERS_TOLD - 1].bytes < 9 * MIB)
		assert_true(has(&f.deleted, outside, 9));
	for (uint32_t i = 0; i < f.deleted.n; i++)
		if (!strcmp(f.deleted.one[i].path, outside))
			assert_int_equal(f.deleted.one[i].pid, getpid());

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
	/* an hour later less is enough */
	of.available = 60 * gib;
	assert_false(fillers_due(&of, 100 * gib, 59 * gib, FILLERS_EVERY_NS + of.looked_ns));
	assert_false(fillers_due(&of, 100 * gib, 60 * gib, FILLERS_HOUR_NS + of.looked_ns));
	assert_true(fillers_due(&of, 100 * gib, 59 * gib, FILLERS_HOUR_NS + of.looked_ns));
	of = (struct fillers_of){0};
	assert_false(
		fillers_due(&of, 100 * gib, 30 * gib, 1)); /* the first reading: less than what? */
	assert_true(fillers_due(&of, 100 * gib, 10 * gib, 1));
}
