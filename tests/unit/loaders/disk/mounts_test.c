/* SPDX-License-Identifier: Apache-2.0 */
/* From what the kernel knows of a file to its path on the host. */
#include "loaders/disk/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/disk/filename.h"
#include "loaders/disk/layers.h"
#include "tests/unit/test.h"

#define DEV (8 << 20 | 1)

static struct mounts mounts_of(const char *const *lines)
{
	static struct mounts_one list[8];
	struct mounts m = {.list = list};

	while (*lines)
		assert_true(mounts_parse(*lines++, &list[m.n++]));
	return m;
}

TEST(a_line_has_its_device_the_folder_that_is_mounted_and_where)
{
	struct mounts_one x;

	assert_true(mounts_parse(
		"36 35 8:1 /mnt\\040a /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n", &x));
	assert_int_equal(x.dev, DEV);
	assert_string_equal(x.root, "/mnt a");
	assert_string_equal(x.point, "/mnt2");
	assert_false(
		mounts_parse("36 35 0:4 net:[4026532413] /run/netns/a rw - nsfs nsfs rw\n", &x));
	assert_false(mounts_parse("36 35", &x));
}

TEST(a_look_at_a_file_of_a_server_or_of_a_process_may_wait)
{
	static const char *const lines[] = {"1 0 8:1 / / rw - ext4 /dev/sda1 rw",
					    "2 0 0:40 / /net rw - nfs4 a:/b rw",
					    "3 0 0:41 / /home/user/s rw - fuse.sshfs a: rw",
					    "4 0 0:42 / /tmp/nfs rw - tmpfs nfs rw", NULL};
	struct mounts m = mounts_of(lines);

	assert_false(mounts_waits(&m, DEV));
	assert_true(mounts_waits(&m, 40));
	assert_true(mounts_waits(&m, 41));
	assert_false(mounts_waits(&m, 42));
	assert_false(mounts_waits(&m, 43));
}

TEST(a_path_below_the_file_system_s_root_is_one_below_its_mount)
{
	static const char *const lines[] = {"1 0 8:1 /var/x /bind rw - ext4 /dev/sda1 rw",
					    "2 0 8:1 / /data rw - ext4 /dev/sda1 rw",
					    "3 0 0:30 /@root / rw - btrfs /dev/sdb rw", NULL};
	struct mounts m = mounts_of(lines);
	char path[FILENAME_PATH];

	assert_true(mounts_path(&m, DEV, "/var/x/y", path, sizeof(path)));
	assert_string_equal(path, "/data/var/x/y");
	assert_true(mounts_path(&m, 30, "/@root/etc/a", path, sizeof(path)));
	assert_string_equal(path, "/etc/a");
	assert_false(mounts_path(&m, 30, "/@rootless/a", path, sizeof(path)));
	assert_false(mounts_path(&m, 31, "/a", path, sizeof(path)));
	assert_false(mounts_path(&m, DEV, "/a-longer-path", path, 8));
	assert_string_equal(path, "");
	assert_string_equal(mounts_point(&m, DEV), "/data");
	assert_string_equal(mounts_point(&m, 30), "/");
	assert_string_equal(mounts_point(&m, 31), "");
}

TEST(an_overlay_has_its_folders_the_upper_one_first)
{
	static const char *const lines[] = {
		"1 0 0:50 / / rw - overlay overlay rw,lowerdir=/none/b:/none/c,upperdir=/none/a,workdir=/none/w",
		"2 0 0:51 / /r rw - overlay overlay ro,lowerdir=/none/d\\040e",
		"3 0 8:1 /vol/x /data rw - ext4 /dev/sda1 rw", NULL};
	struct mounts m = mounts_of(lines);
	char path[FILENAME_PATH];

	assert_string_equal(m.list[0].layers, "/none/a:/none/b:/none/c");
	assert_string_equal(m.list[1].layers, "/none/d e");
	assert_null(m.list[2].layers);
	assert_true(layers_seen(&m, DEV, "/none/b/etc/x", "/none/b/etc/x", path, sizeof(path)));
	assert_string_equal(path, "/etc/x");
	assert_true(layers_seen(&m, DEV, "/none/d e/x", "/none/d e/x", path, sizeof(path)));
	assert_string_equal(path, "/r/x");
	assert_true(layers_seen(&m, DEV, "/vol/x/y", "/mnt/vol/x/y", path, sizeof(path)));
	assert_string_equal(path, "/data/y"); /* a volume */
	assert_false(layers_seen(&m, DEV, "/none/bb/x", "/none/bb/x", path, sizeof(path)));
	assert_false(layers_host(&m.list[0], "/etc/x", path, sizeof(path)));
	free(m.list[0].layers);
	free(m.list[1].layers);
}

TEST(a_layer_that_is_a_link_is_what_it_leads_to)
{
	char path[FILENAME_PATH];

	assert_true(layers_follow("/var/l/AB", "../c0ffee/diff", path, sizeof(path)));
	assert_string_equal(path, "/var/c0ffee/diff");
	assert_true(layers_follow("/var/l/AB", "/other", path, sizeof(path)));
	assert_string_equal(path, "/other");
	assert_true(layers_follow("/a", "../../../b", path, sizeof(path)));
	assert_string_equal(path, "/b");
	assert_false(layers_follow("/var/l/AB", "../c0ffee/diff", path, 8));
}

TEST(parts_are_a_whole_path_only_up_to_a_root_and_if_none_was_cut)
{
	char names[4][8] = {"file", "folder", "", ""}, path[FILENAME_PATH];

	assert_false(filename_join(names[0], 4, 8, path)); /* its end was not read */
	assert_string_equal(path, "/folder/file");
	strcpy(names[2], "/");
	assert_true(filename_join(names[0], 4, 8, path));
	assert_string_equal(path, "/folder/file");
	strcpy(names[1], "folders"); /* fills its place */
	assert_false(filename_join(names[0], 4, 8, path));
	assert_string_equal(path, "/folders.../file");
	strcpy(names[2], "a");
	strcpy(names[3], "b");
	assert_false(filename_join(names[0], 4, 8, path));
	assert_string_equal(path, ".../b/a/folders.../file");
	strcpy(names[0], "/");
	assert_false(filename_join(names[0], 4, 8, path)); /* the root itself has no name */
	assert_string_equal(path, "");
}

TEST(a_path_without_room_keeps_its_end)
{
	char names[40][64], path[FILENAME_PATH];

	for (int i = 0; i < 40; i++)
		snprintf(names[i], sizeof(names[i]), "%02d-a-name-of-some-length", i);
	strcpy(names[39], "/");
	assert_false(filename_join(names[0], 40, 64, path));
	assert_int_equal(strncmp(path, ".../", 4), 0);
	assert_true(filename_ends(path, names[0], 64));
	assert_true(strlen(path) < FILENAME_PATH);
}
