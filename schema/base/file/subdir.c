/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/file/subdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

int subdir_open(const char *dir, const char *name)
{
	cleanup_fd int parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int fd =
		parent < 0 ? -1 :
			     openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat above, st;

	if (fd < 0 || fstat(parent, &above) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() && st.st_uid && st.st_uid != above.st_uid)
		return -EPERM;
	return take_fd(&fd);
}
