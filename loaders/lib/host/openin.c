// SPDX-License-Identifier: Apache-2.0
/* openin: see the header. */
#include "loaders/lib/host/openin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

int openin_root(uint32_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* `path_fd` (O_PATH, closed here) -> a descriptor to read from, if it is what we read at all. */
static int reopen(int path_fd, uint64_t max_bytes, struct stat *out)
{
	cleanup_fd int p = path_fd;
	cleanup_fd int fd = -1;
	struct stat st, again;
	char self[64];

	if (fstat(p, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if ((uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", p);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &again))
		return -errno;
	if (!S_ISREG(again.st_mode) || again.st_ino != st.st_ino || again.st_dev != st.st_dev)
		return -ESTALE;
	if (out)
		*out = again;
	return take_fd(&fd);
}

int openin(int root_fd, const char *path, uint64_t max_bytes, struct stat *st)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : reopen(fd, max_bytes, st);
}

int openin_map_file(uint32_t pid, uint64_t start, uint64_t end, uint64_t max_bytes, struct stat *st)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)start,
		 (unsigned long long)end);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : reopen(fd, max_bytes, st);
}

const char *openin_reason(int code)
{
	switch (code) {
	case -ENOTSUP:
		return "not a regular file";
	case -EFBIG:
		return "larger than 4 GiB";
	case -ESTALE:
		return "the file at that path is another one now";
	case -ENOENT:
		return "the file is gone";
	default:
		return strerror(-code);
	}
}
