/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/ownfolder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

bool ownfolder_is_ours(int fd, mode_t type)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && st.st_nlink;
}

static int dir_make(const char *path)
{
	char up[256];
	char *slash;

	if (!mkdir(path, 0700) || errno == EEXIST)
		return 0;
	if (errno != ENOENT || snprintf(up, sizeof(up), "%s", path) >= (int)sizeof(up))
		return -errno;
	slash = strrchr(up, '/');
	if (!slash || slash == up)
		return -ENOENT;
	*slash = '\0'; /* one level: /run is there */
	if (mkdir(up, 0755) && errno != EEXIST)
		return -errno;
	return mkdir(path, 0700) ? -errno : 0;
}

int ownfolder_open(const char *path, int *out)
{
	cleanup_fd int fd = -1;
	int rc = dir_make(path);

	if (rc)
		return rc;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (!ownfolder_is_ours(fd, S_IFDIR))
		return -EPERM;
	*out = take_fd(&fd);
	return 0;
}
