/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a file that was waited for. */
#include "loaders/disk/syncfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test.h"

static struct disk_sync names(const char *file, const char *folder, const char *above,
			      const char *top)
{
	const char *all[DISK_NAMES] = {file, folder, above, top, "x4", "x5", "x6", "x7"};
	struct disk_sync s = {0};

	for (int i = 0; i < DISK_NAMES; i++)
		snprintf(s.names[i], DISK_NAME, "%s", all[i]);
	return s;
}

static void expect(struct disk_sync s, const char *path)
{
	char out[SYNCFILE_PATH];

	syncfile_names(&s, NULL, 0, out);
	assert_string_equal(out, path);
}

TEST(names_up_to_the_root_are_a_whole_path_and_others_its_end)
{
	expect(names("a", "/", "/", "/"), "/a");
	expect(names("a", "tmp", "var", "/"), "/var/tmp/a");
	expect(names("1249", "5", "base", "data"), ".../x7/x6/x5/x4/data/base/5/1249");
	expect(names("", "", "", ""), "");
}

TEST(with_mounts_a_whole_path_is_the_hosts)
{
	struct mounts_one one = {.dev = 8, .root = "/", .point = "/data"};
	const struct mounts m = {.list = &one, .n = 1};
	struct disk_sync s = names("a", "pg", "/", "/");
	char out[SYNCFILE_PATH];

	syncfile_names(&s, &m, 8, out);
	assert_string_equal(out, "/data/pg/a");
	syncfile_names(&s, &m, 9, out);
	assert_string_equal(out, ".../pg/a"); /* mounted nowhere any more */
	s = names("/", "/", "/", "/");
	syncfile_names(&s, &m, 8, out);
	assert_string_equal(out, "/data");
	s = names("1249", "5", "base", "data");
	syncfile_names(&s, &m, 8, out);
	assert_string_equal(out, ".../x7/x6/x5/x4/data/base/5/1249");
}

TEST(a_name_that_may_be_longer_says_so)
{
	expect(names("abcdefghijklmnopqrstuvwxyzabcdefgh", "tmp", "/", "/"),
	       "/tmp/abcdefghijklmnopqrstuvwxyzabcde...");
}

TEST(a_descriptor_that_still_shows_the_file_has_its_whole_path)
{
	char path[] = "/tmp/sonde-syncfile-XXXXXX", out[SYNCFILE_PATH];
	struct disk_sync s = {0};
	struct disk_sync_key key = {.who = {.tgid = (__u32)getpid()}};
	struct stat st;
	int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	s.fd = (__u32)fd;
	snprintf(s.names[0], DISK_NAME, "%s", strrchr(path, '/') + 1);
	snprintf(s.names[1], DISK_NAME, "here");
	key.ino = st.st_ino;
	syncfile_path(&key, s.fd, &s, NULL, out);
	assert_string_equal(out, path);
	key.ino++;
	syncfile_path(&key, s.fd, &s, NULL, out);
	assert_int_equal(strncmp(out, "/here/sonde-syncfile-", 21), 0);
	close(fd);
	unlink(path);
}
