/* SPDX-License-Identifier: Apache-2.0 */
/* openin: whatever is at a path inside another process's root, nothing outside that root is opened
 * and nothing blocks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/host/proc/openin.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

static char root[64];
static int root_fd;

static void write_file(const char *name, const char *text)
{
	int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/openin-test-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	mkdirat(root_fd, "dir", 0755);
	write_file("plain", "inside");
	return 0;
}

static int tear_down(void **state)
{
	char cmd[128];

	(void)state;
	close(root_fd);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	return system(cmd);
}

static void expect_text(int fd, const char *text)
{
	char buf[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), strlen(text));
	assert_string_equal(buf, text);
	close(fd);
}

TEST(a_plain_file_is_opened_and_its_identity_told)
{
	struct stat st, want;

	expect_text(openin(root_fd, "/plain", 100, &st), "inside");
	fstatat(root_fd, "plain", &want, 0);
	assert_int_equal(st.st_ino, want.st_ino);
}

TEST(an_absolute_link_and_dotdot_stay_inside_the_root)
{
	assert_int_equal(symlinkat("/plain", root_fd, "dir/absolute"), 0);
	assert_int_equal(symlinkat("../../../../../plain", root_fd, "dir/up"), 0);
	assert_int_equal(symlinkat("/etc/passwd", root_fd, "out"), 0);
	expect_text(openin(root_fd, "/dir/absolute", 100, NULL), "inside");
	expect_text(openin(root_fd, "/dir/up", 100, NULL), "inside");
	assert_int_equal(openin(root_fd, "/out", 1 << 20, NULL), -ENOENT);
	assert_int_equal(openin(root_fd, "/../../../etc/passwd", 1 << 20, NULL), -ENOENT);
}

TEST(a_fifo_does_not_block)
{
	assert_int_equal(mkfifoat(root_fd, "fifo", 0644), 0);
	assert_int_equal(openin(root_fd, "/fifo", 100, NULL), -ENOTSUP);
}

TEST(a_device_and_a_folder_are_refused)
{
	assert_int_equal(openin(root_fd, "/dir", 100, NULL), -ENOTSUP);
	if (mknodat(root_fd, "zero", S_IFCHR | 0666, makedev(1, 5))) {
		skip_missing("the right to make a device");
	}
	assert_int_equal(openin(root_fd, "/zero", 100, NULL), -ENOTSUP);
}

TEST(a_sparse_file_of_100_gb_is_refused_by_its_size)
{
	int fd = openat(root_fd, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(ftruncate(fd, 100000000000), 0);
	close(fd);
	assert_int_equal(openin(root_fd, "/sparse", OPENIN_MAX_BYTES, NULL), -EFBIG);
}

TEST(a_magic_link_is_refused)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(openin(proc, "/self/exe", OPENIN_MAX_BYTES, NULL), -ELOOP);
	close(proc);
}

TEST(a_file_cut_while_it_is_read_gives_less_and_no_signal)
{
	char buf[16];
	int fd;

	write_file("cut", "0123456789");
	fd = openin(root_fd, "/cut", 100, NULL);
	assert_int_equal(pread(fd, buf, 5, 0), 5);
	write_file("cut", "0");
	assert_int_equal(pread(fd, buf, 5, 5), 0);
	close(fd);
}

TEST(a_mapped_file_that_was_deleted_is_opened_through_its_mapping)
{
	int fd = openat(root_fd, "gone", O_RDWR | O_CREAT | O_CLOEXEC, 0644), got;
	void *m;

	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(pwrite(fd, "was here", 8, 0), 8);
	m = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	unlinkat(root_fd, "gone", 0);
	got = openin_map_file((uint32_t)getpid(), (uintptr_t)m, (uintptr_t)m + 4096, 1 << 20, NULL);
	if (got == -EPERM) {
		munmap(m, 4096);
		skip_missing("CAP_CHECKPOINT_RESTORE");
	}
	assert_true(got >= 0);
	close(got);
	assert_int_equal(openin_map_file((uint32_t)getpid(), (uintptr_t)m, (uintptr_t)m + 8192,
					 1 << 20, NULL),
			 -ENOENT);
	munmap(m, 4096);
}

/* A FUSE mount whose server never answers. */
TEST(a_file_system_that_does_not_answer_holds_nobody_up)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char opts[128], dir[96];
	struct timespec a, b;

	mkdirat(root_fd, "mute", 0755);
	snprintf(dir, sizeof(dir), "%s/mute", root);
	snprintf(opts, sizeof(opts), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("none", dir, "fuse", 0, opts)) {
		skip_missing("FUSE, or the right to mount it");
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(openin(root_fd, "/mute/lib.so", 100, NULL), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(b.tv_sec - a.tv_sec <= 2);
	for (int i = 1; i < OPENIN_STUCK_MAX; i++)
		assert_int_equal(openin(root_fd, "/mute/lib.so", 100, NULL), -ETIMEDOUT);
	assert_int_equal(openin(root_fd, "/mute/lib.so", 100, NULL), -EBUSY);
	close(fuse); /* the server ends: those who wait come back */
	umount2(dir, MNT_DETACH);
	for (int i = 0; i < 100 && openin(root_fd, "/plain", 100, NULL) == -EBUSY; i++)
		usleep(20000);
	expect_text(openin(root_fd, "/plain", 100, NULL), "inside");
}

TEST(the_root_of_a_process_is_opened)
{
	int fd = openin_root((uint32_t)getpid());

	assert_true(fd >= 0);
	close(fd);
	assert_true(openin_root(0x7fffffff) < 0);
}

/* The kernel looks into its caches only, and gives up where somebody mounts or renames meanwhile.
 */
static int pin_of(uint64_t ino, int64_t *born_ns, int *pin)
{
	int rc = -EAGAIN;

	for (int i = 0; i < 1000 && rc == -EAGAIN; i++)
		rc = openin_cached_pin(root_fd, "/plain", ino, born_ns, pin);
	return rc;
}

TEST(no_other_file_gets_the_inode_number_of_one_that_is_pinned)
{
	int64_t born_ns = 0;
	struct stat st, other;
	char name[32];
	int pin = -1, rc;

	assert_int_equal(fstatat(root_fd, "plain", &st, 0), 0);
	rc = pin_of(st.st_ino + 1, &born_ns, &pin);
	assert_int_equal(rc, -ESTALE);
	assert_int_equal(pin, -1);
	rc = pin_of(st.st_ino, &born_ns, &pin);
	if (rc == -ENOTSUP || rc == -EAGAIN)
		skip_missing("a file system that knows when a file was born");
	assert_int_equal(rc, 0);
	assert_true(born_ns > 0 && pin > 0);
	assert_true(fcntl(pin, F_GETFL) & O_PATH);
	unlinkat(root_fd, "plain", 0);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "new%d", i);
		write_file(name, "x");
		assert_int_equal(fstatat(root_fd, name, &other, 0), 0);
		assert_int_not_equal(other.st_ino, st.st_ino);
	}
	close(pin);
}

const struct test_group test_group = {set_up, tear_down};
