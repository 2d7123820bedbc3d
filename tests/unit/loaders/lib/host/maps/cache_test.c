/* SPDX-License-Identifier: Apache-2.0 */
/* cache: stored indexes are found again, the size is bounded, and no file can replace another
 * file's index. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "loaders/lib/host/maps/cache.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/cache-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static int file_of(size_t bytes, char fill)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	char *p = malloc(bytes);

	memset(p, fill, bytes);
	assert_int_equal(write(fd, p, bytes), bytes);
	free(p);
	return fd;
}

static struct stat stat_of(ino_t ino)
{
	return (struct stat){
		.st_dev = 1, .st_ino = ino, .st_size = 100, .st_mtim = {5, 6}, .st_ctim = {7, 8}};
}

static char *put(struct cache *c, const char *key, char fill, ino_t ino, size_t bytes)
{
	struct stat st = stat_of(ino);
	int fd = file_of(bytes, fill);
	char *name = NULL;

	assert_int_equal(cache_put(c, key, fd, &st, &name), 0);
	close(fd);
	return name;
}

TEST_WITH(a_file_is_found_again_by_its_stat_after_a_restart, set_up, tear_down)
{
	struct cache *c = cache_open(dir, 1 << 20);
	struct stat st = stat_of(10), other = stat_of(11);
	char *text = NULL, *name = put(c, "ab12-0123", 'x', 10, 50), buf[64];
	int fd;

	assert_string_equal(name, "ab12-0123");
	free(name);
	cache_close(c);
	c = cache_open(dir, 1 << 20);
	assert_int_equal(cache_find(c, &st, &text), CACHE_KNOWN);
	assert_string_equal(text, "ab12-0123");
	fd = cache_get(c, text);
	assert_int_equal(read(fd, buf, sizeof(buf)), 50);
	close(fd);
	free(text);
	assert_int_equal(cache_find(c, &other, &text), CACHE_UNKNOWN);
	st.st_ctim.tv_nsec++;
	assert_int_equal(cache_find(c, &st, &text), CACHE_UNKNOWN);
	cache_close(c);
}

TEST_WITH(an_index_found_sound_stays_so_until_somebody_writes_it, set_up, tear_down)
{
	struct cache *c = cache_open(dir, 1 << 20);
	char *name = put(c, "ab12-0123", 'x', 10, 50), path[128];
	int fd = cache_get(c, name), out;

	assert_false(cache_is_sound(c, fd));
	cache_set_sound(c, fd);
	close(fd);
	for (int i = 0; i < 3; i++) { /* this process's own uses do not count */
		fd = cache_get(c, name);
		assert_true(cache_is_sound(c, fd));
		close(fd);
	}
	snprintf(path, sizeof(path), "%s/images/%s", dir, name);
	out = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(out, "y", 1, 20), 1);
	close(out);
	fd = cache_get(c, name);
	assert_false(cache_is_sound(c, fd));
	close(fd);
	free(name);
	cache_close(c);
}

TEST_WITH(an_index_made_before_its_debug_file_came_is_older, set_up, tear_down)
{
	struct cache *c = cache_open(dir, 1 << 20);
	struct stat st = stat_of(10), debug;
	char path[96];
	int fd;

	assert_true(cache_debug_path("ab12cd-0123", path, sizeof(path)));
	assert_string_equal(path, "/usr/lib/debug/.build-id/ab/12cd.debug");
	assert_false(cache_debug_path("nobuildid-0123", path, sizeof(path)));
	assert_false(cache_debug_path("ab1-0123", path, sizeof(path)));
	free(put(c, "ab12cd-0123", 'x', 10, 50));
	usleep(20000);
	snprintf(path, sizeof(path), "%s/12cd.debug", dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_int_equal(fstat(fd, &debug), 0);
	close(fd);
	assert_true(cache_is_older(c, &st, &debug));
	usleep(20000);
	free(put(c, "ab12cd-0123", 'y', 10, 60)); /* made with it, or at least after it */
	assert_false(cache_is_older(c, &st, &debug));
	cache_close(c);
}

TEST_WITH(a_refusal_is_remembered_with_its_reason, set_up, tear_down)
{
	struct cache *c = cache_open(dir, 1 << 20);
	struct stat st = stat_of(10);
	char *text = NULL;

	cache_refuse(c, &st, "it crashed: \"x\"/../");
	assert_int_equal(cache_find(c, &st, &text), CACHE_REFUSED);
	assert_string_equal(text, "it crashed: \"x\"/../");
	free(text);
	cache_close(c);
}

TEST_WITH(a_borrowed_key_gets_a_name_of_its_own, set_up, tear_down)
{
	struct cache *c = cache_open(dir, 1 << 20);
	char *first = put(c, "ab-01", 'x', 10, 50), *evil = put(c, "ab-01", 'y', 11, 50),
	     *again = put(c, "ab-01", 'x', 12, 50);
	struct stat st = stat_of(10);
	char *text = NULL, byte;
	int fd;

	assert_string_equal(first, "ab-01");
	assert_memory_equal(evil, "ab-01~", 6);
	assert_string_equal(again, "ab-01");
	assert_int_equal(cache_find(c, &st, &text), CACHE_KNOWN);
	fd = cache_get(c, text);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(fd);
	free(text);
	free(first);
	free(evil);
	free(again);
	cache_close(c);
}

TEST_WITH(keys_that_are_paths_are_refused, set_up, tear_down)
{
	struct cache *c = cache_open(dir, 1 << 20);
	int fd = file_of(10, 'x');
	char *name = NULL;

	assert_false(cache_key_ok(""));
	assert_false(cache_key_ok("../x"));
	assert_false(cache_key_ok("ab/cd"));
	assert_false(cache_key_ok(".tmp"));
	assert_true(cache_key_ok("nobuildid-0123456789abcdef"));
	assert_int_equal(cache_put(c, "../../etc/x", fd, NULL, &name), -EINVAL);
	assert_int_equal(cache_get(c, "../../etc/passwd"), -ENOENT);
	close(fd);
	cache_close(c);
}

TEST_WITH(the_least_recently_used_goes_when_the_bound_is_reached, set_up, tear_down)
{
	struct cache *c = cache_open(dir, 10000);
	struct stat old = stat_of(1), used = stat_of(2);
	char *text = NULL;

	free(put(c, "a1-0", 'a', 1, 3000));
	usleep(20000);
	free(put(c, "a2-0", 'b', 2, 3000));
	usleep(20000);
	free(put(c, "a3-0", 'c', 3, 3000));
	usleep(20000);
	close(cache_get(c, "a1-0")); /* used: now a2 is the oldest */
	usleep(20000);
	free(put(c, "a4-0", 'd', 4, 3000));
	assert_int_equal(cache_find(c, &used, &text), CACHE_UNKNOWN);
	assert_int_equal(cache_find(c, &old, &text), CACHE_KNOWN);
	free(text);
	cache_close(c);
}

static uint64_t free_bytes(void)
{
	struct statvfs fs;

	assert_int_equal(statvfs(dir, &fs), 0);
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

TEST_WITH(on_a_small_disk_three_quarters_are_left_to_others, set_up, tear_down)
{
	char key[16], *name = NULL;
	struct stat st = stat_of(99);
	struct cache *c;
	uint64_t whole;
	int fd;

	if (mount("none", dir, "tmpfs", 0, "size=4m"))
		skip_missing("the right to mount a tmpfs");
	whole = free_bytes();
	c = cache_open(dir, 256 << 20);
	for (unsigned int i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "%02x-0", i);
		free(put(c, key, (char)i, i, 100000));
	}
	assert_in_range(whole - free_bytes(), 500000, whole / 4 + 65536);
	/* the last is there, the first was removed, and a file that would need the room of all
	 * others is not stored */
	fd = cache_get(c, "27-0");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cache_get(c, "00-0"), -ENOENT);
	fd = file_of(900000, 'x');
	assert_int_equal(cache_put(c, "ff-0", fd, &st, &name), -ENOSPC);
	close(fd);
	cache_close(c);
	assert_int_equal(umount(dir), 0);
}

static bool is_in(const char *store, const char *key)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/images/%s", store, key);
	return !access(path, F_OK);
}

TEST_WITH(a_store_that_is_renamed_is_followed, set_up, tear_down)
{
	struct cache *c = cache_open(dir, CACHE_MAX_BYTES);
	char was[64], moved[80];

	snprintf(was, sizeof(was), "%s", dir);
	snprintf(moved, sizeof(moved), "%s-moved", dir);
	free(put(c, "aa-1", 'a', 1, 100));
	assert_int_equal(rename(dir, moved), 0);
	cache_look(c);
	free(put(c, "bb-2", 'b', 2, 100));
	assert_true(is_in(moved, "aa-1") && is_in(moved, "bb-2"));
	assert_int_equal(access(was, F_OK), -1);
	/* and once more: it is known where it is now */
	assert_int_equal(rename(moved, was), 0);
	cache_look(c);
	free(put(c, "cc-3", 'c', 3, 100));
	assert_true(is_in(was, "cc-3"));
	cache_close(c);
}

TEST_WITH(a_store_that_is_removed_is_used_again_once_it_is_there, set_up, tear_down)
{
	struct cache *c = cache_open(dir, CACHE_MAX_BYTES);
	char command[200], *text = NULL;
	struct stat st = stat_of(1);

	free(put(c, "aa-1", 'a', 1, 100));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	cache_look(c); /* it makes no store: that is its writer's to do */
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(cache_find(c, &st, &text), CACHE_UNKNOWN);
	assert_true(cache_get(c, "aa-1") < 0);
	assert_int_equal(mkdir(dir, 0750), 0);
	cache_look(c);
	free(put(c, "bb-2", 'b', 2, 100));
	assert_true(is_in(dir, "bb-2") && !is_in(dir, "aa-1"));
	/* images/ alone, too */
	snprintf(command, sizeof(command), "rm -rf %s/images", dir);
	assert_int_equal(system(command), 0);
	cache_look(c);
	free(put(c, "cc-3", 'c', 3, 100));
	assert_true(is_in(dir, "cc-3"));
	cache_close(c);
}

TEST_WITH(without_a_folder_nothing_is_kept_and_nothing_fails, set_up, tear_down)
{
	struct cache *c = cache_open(NULL, 1 << 20);
	struct stat st = stat_of(1);
	char *text = NULL;
	int fd = file_of(10, 'x');

	assert_int_equal(cache_put(c, "ab-0", fd, &st, &text), -ENOENT);
	assert_int_equal(cache_find(c, &st, &text), CACHE_UNKNOWN);
	cache_refuse(c, &st, "x");
	close(fd);
	cache_close(c);
}
