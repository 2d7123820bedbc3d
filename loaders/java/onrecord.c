/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/onrecord.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/ownfolder.h"
#include "schema/base/cleanup.h"

#define NAME_LEN 48

int onrecord_open(const char *path, int *out, struct err *e)
{
	int rc = ownfolder_open(path, out);

	if (!rc)
		return 0;
	err_set(e, rc, EXIT_PERMISSION, "cannot note in %s which Java programs are recorded: %s",
		path,
		rc == -EPERM ? "it belongs to another user, or other users may write to it" :
			       strerror(-rc));
	err_fix(e, "--record-dir DIR: use a folder that you own");
	return rc;
}

static void name_of(uint32_t pid, uint64_t start_ticks, char out[NAME_LEN])
{
	snprintf(out, NAME_LEN, "%u-%" PRIu64, pid, start_ticks);
}

int onrecord_keep(int dirfd, uint32_t pid, uint64_t start_ticks, bool *left)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	char name[NAME_LEN];
	cleanup_fd int fd = -1;

	name_of(pid, start_ticks, name);
	fd = openat(dirfd, name, flags | O_CREAT | O_EXCL, 0600);
	*left = fd < 0 && errno == EEXIST;
	if (*left)
		fd = openat(dirfd, name, flags);
	if (fd < 0)
		return -errno;
	if (!ownfolder_is_ours(fd, S_IFREG))
		return -EPERM;
	if (flock(fd, LOCK_EX | LOCK_NB) || !ownfolder_is_ours(fd, S_IFREG))
		return -EBUSY;
	*left = *left && onrecord_begun(fd);
	(void)fsync(dirfd);
	return take_fd(&fd);
}

int onrecord_begin(int fd, const char *text)
{
	const ssize_t n = (ssize_t)strlen(text);

	return pwrite(fd, text, (size_t)n, 0) == n && !fsync(fd) ? 0 : -EIO;
}

void onrecord_unbegin(int fd)
{
	if (fd >= 0)
		(void)!ftruncate(fd, 0);
}

bool onrecord_begun(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0;
}

void onrecord_drop(int dirfd, uint32_t pid, uint64_t start_ticks, int fd)
{
	char name[NAME_LEN];

	name_of(pid, start_ticks, name);
	(void)unlinkat(dirfd, name, 0);
	close(fd);
}

bool onrecord_name_parse(const char *name, uint32_t *pid, uint64_t *start_ticks)
{
	char *end;
	unsigned long long n;

	if (*name < '1' || *name > '9')
		return false;
	errno = 0;
	n = strtoull(name, &end, 10);
	if (errno || n > INT32_MAX || *end != '-' || end[1] < '0' || end[1] > '9')
		return false;
	*pid = (uint32_t)n;
	*start_ticks = strtoull(end + 1, &end, 10);
	return !errno && !*end;
}

static bool is_unlocked(int dirfd, const char *name)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && ownfolder_is_ours(fd, S_IFREG) && !flock(fd, LOCK_EX | LOCK_NB);
}

void onrecord_each_left(int dirfd, void (*each)(void *ctx, uint32_t pid, uint64_t start_ticks),
			void *ctx)
{
	int again = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = again < 0 ? NULL : fdopendir(again);
	const struct dirent *at;
	uint64_t start;
	uint32_t pid;

	if (!d && again >= 0)
		close(again);
	while (d && (at = readdir(d)))
		if (onrecord_name_parse(at->d_name, &pid, &start) && is_unlocked(dirfd, at->d_name))
			each(ctx, pid, start);
}
