/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"

#define MOUNT "mount -t tracefs tracefs /sys/kernel/tracing"

static int folder_open(int root, const char *path)
{
	int fd = openat(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Without glibc's wrappers, which came with 2.36. */
static int detached_open(void)
{
	cleanup_fd int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	cleanup_fd int mount = -1;

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
			     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				     MOUNT_ATTR_NOEXEC);
	return mount < 0 ? -errno : folder_open(mount, "events");
}

static int not_there(int why, struct err *e)
{
	if (why == -ENODEV) {
		err_set(e, -ENOTSUP, EXIT_PREREQUISITE,
			"this kernel has no tracefs, which has the numbers of tracepoints");
		err_fix(e, "a kernel that is built with CONFIG_FTRACE and CONFIG_FTRACE_SYSCALLS");
		return -ENOTSUP;
	}
	err_set(e, why, why == -EPERM ? EXIT_PREREQUISITE : EXIT_RUNTIME,
		"tracefs, which has the numbers of tracepoints, is not mounted (%s)",
		why == -EPERM ? "and CAP_SYS_ADMIN, to open it without that, is missing" :
				strerror(-why));
	err_fix(e, MOUNT);
	return why;
}

int tracefs_open(struct err *e)
{
	static const char *const roots[] = {"/sys/kernel/tracing/events",
					    "/sys/kernel/debug/tracing/events"};
	int fd, denied = 0;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		fd = folder_open(AT_FDCWD, roots[i]);
		if (fd >= 0)
			return fd;
		if (fd == -EACCES && !i)
			denied = fd;
	}
	fd = detached_open();
	if (fd >= 0)
		return fd;
	if (!denied)
		return not_there(fd, e);
	err_set(e, denied, EXIT_PERMISSION, "%s cannot be read: %s", roots[0], strerror(-denied));
	err_fix(e,
		"run it with sudo: it belongs to root, and who has CAP_DAC_READ_SEARCH reads it");
	return denied;
}

int tracefs_id(int events, const char *name, uint64_t *id)
{
	cleanup_fd int fd = -1;
	char path[128], text[32] = "";

	snprintf(path, sizeof(path), "%s/id", name);
	fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		return -EIO;
	*id = strtoull(text, NULL, 10);
	return 0;
}

int tracefs_format(int events, const char *name, struct strbuf *out)
{
	cleanup_fd int fd = -1;
	char path[128], part[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/format", name);
	fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, part, sizeof(part))) > 0)
		strbuf_add(out, part, (size_t)n);
	return n < 0 ? -errno : 0;
}
