/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"

void ballast_keep(const char *dir, uint64_t bytes, uint64_t free_bytes, uint64_t reserve)
{
	cleanup_fd int at = folder_open(dir), fd = -1;
	struct stat st;

	if (at < 0)
		return;
	if (fstatat(at, "ballast", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == bytes)
		return;
	(void)unlinkat(at, "ballast", 0);
	if (!bytes || free_bytes < reserve + 2 * bytes)
		return;
	fd = openat(at, "ballast", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return; /* it is tried again at the next look */
	folder_own_at(at, fd, "ballast", 0640);
	if (posix_fallocate(fd, 0, (off_t)bytes))
		(void)unlinkat(at, "ballast", 0);
}

bool ballast_drop(const char *dir)
{
	cleanup_fd int at = folder_open(dir);

	return at >= 0 && unlinkat(at, "ballast", 0) == 0;
}
