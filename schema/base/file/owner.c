/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/file/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/log.h"

/* A file with a second name may be one of another folder. */
static bool may_be_given(const struct stat *st, const struct stat *folder)
{
	return st->st_uid == 0 && folder->st_uid != 0 &&
	       (S_ISDIR(st->st_mode) ||
		((S_ISREG(st->st_mode) || S_ISLNK(st->st_mode)) && st->st_nlink == 1));
}

/* Of the same mount as the folder. st_dev does not say that: an overlay's files have another one
 * than its folders. -1 with errno, EXDEV: something is mounted there. */
static int open_here(int dir, const char *name)
{
	const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				     .resolve = RESOLVE_NO_XDEV};

	return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

int owner_give(int dir, const struct stat *folder, const char *name)
{
	cleanup_fd int fd = open_here(dir, name);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT || errno == EXDEV ? 0 : -errno;
	if (!may_be_given(&st, folder))
		return 0;
	/* its group, if it has one of the store's, stays */
	return fchownat(fd, "", folder->st_uid, st.st_gid ? (gid_t)-1 : folder->st_gid,
			AT_EMPTY_PATH) < 0 ?
		       -errno :
		       1;
}

void owner_inherit_at(int dir, const char *name)
{
	struct stat folder;
	int rc;

	if (geteuid() != 0 || fstat(dir, &folder) < 0)
		return;
	rc = owner_give(dir, &folder, name);
	if (rc < 0)
		log_debug("cannot give %s to the owner of its folder: %s", name, strerror(-rc));
}

void owner_inherit(int fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_fd int dir = -1;
	struct stat st, named;
	char folder[PATH_MAX];

	if (geteuid() != 0 ||
	    (size_t)snprintf(folder, sizeof(folder), "%.*s/", slash ? (int)(slash - path) : 1,
			     slash ? path : ".") >= sizeof(folder))
		return;
	dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	path = slash ? slash + 1 : path;
	/* the folder may have been replaced since the file was opened */
	if (dir >= 0 && !fstat(fd, &st) && !fstatat(dir, path, &named, AT_SYMLINK_NOFOLLOW) &&
	    st.st_dev == named.st_dev && st.st_ino == named.st_ino)
		owner_inherit_at(dir, path);
}
