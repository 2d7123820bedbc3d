/* SPDX-License-Identifier: Apache-2.0 */
/* localfs: a file system counts as local only if the kernel itself keeps it, in memory or on a
 * block device. */
#include <stdlib.h>
#include <string.h>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loaders/lib/host/proc/localfs.h"
#include "schema/base/array.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

TEST(a_line_gives_its_device_if_its_type_is_a_local_one)
{
	dev_t d = 0;

	assert_true(localfs_line(
		"27 1 254:16 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard\n", &d));
	assert_int_equal(d, makedev(254, 16));
	assert_true(localfs_line("24 27 0:6 / /a\\040-\\040fuse rw - tmpfs none rw\n", &d));
	assert_int_equal(d, makedev(0, 6));
}

TEST(what_asks_somebody_else_is_none_however_it_is_named)
{
	/* clang-format off */
	static const char *const lines[] = {
		"30 27 0:40 / /m rw - fuse.sshfs me@there:/ext4 rw", "31 27 8:1 / /m rw - fuseblk /dev/sda1 rw",
		"32 27 0:41 / /m rw - nfs4 server:/ rw",             "33 27 0:42 / / rw - overlay overlay rw,lowerdir=/ext4",
		"34 27 0:43 / /ext4 rw - ext4x none rw",             "35 27 0:44 / /m rw ext4 - 9p none rw",
		"36 27 0:45 / /m rw",                                "37 27 x:45 / /m rw - ext4 /dev/vda rw",
		"",
	};
	/* clang-format on */
	dev_t d;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_false(localfs_line(lines[i], &d));
}

TEST(a_mount_that_comes_or_goes_is_noticed)
{
	char dir[] = "/tmp/localfs-test-XXXXXX";
	struct stat st, proc;

	assert_non_null(mkdtemp(dir));
	assert_false(stat("/proc", &proc) || localfs_has(proc.st_dev)); /* it has looked */
	if (mount("none", dir, "tmpfs", 0, NULL)) {
		rmdir(dir);
		skip_missing("the right to mount");
	}
	assert_false(stat(dir, &st));
	assert_true(localfs_has(st.st_dev));
	assert_false(umount(dir));
	assert_false(localfs_has(st.st_dev));
	rmdir(dir);
}

/* In a new mount namespace: no other process sees the mounts. */
static int own_mounts(void **state)
{
	(void)state;
	if (!unshare(CLONE_NEWNS))
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return 0;
}

const struct test_group test_group = {own_mounts, NULL};
