/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"

static int ballast_path(const char *dir, char path[PATH_MAX])
{
	return (size_t)snprintf(path, PATH_MAX, "%s/ballast", dir) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

void ballast_keep(const char *dir, uint64_t bytes, uint64_t free_bytes, uint64_t reserve)
{
	cleanup_fd int fd = -1;
	char path[PATH_MAX];
	struct stat st;

	if (ballast_path(dir, path))
		return;
	if (stat(path, &st) == 0 && (uint64_t)st.st_size == bytes)
		return;
	(void)unlink(path);
	if (!bytes || free_bytes < reserve + 2 * bytes)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return; /* it is tried again at the next look */
	folder_own(fd, path, 0640);
	if (posix_fallocate(fd, 0, (off_t)bytes))
		(void)unlink(path);
}

bool ballast_drop(const char *dir)
{
	char path[PATH_MAX];

	return !ballast_path(dir, path) && unlink(path) == 0;
}
