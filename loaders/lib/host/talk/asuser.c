/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/talk/asuser.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/cleanup.h"

/* The effective ids are the third number of their line. */
static bool ids_read(struct asuser *u)
{
	cleanup_free char *text = NULL;
	const char *uid, *gid;
	struct proc_status st;
	size_t len;

	if (proc_read(u->pid, "status", 65536, &text, &len) || proc_parse_status(text, len, &st))
		return false;
	uid = strstr(text, "\nUid:");
	gid = strstr(text, "\nGid:");
	u->nspid = st.nspid;
	return uid && gid && sscanf(uid, "\nUid: %*u %u", &u->uid) == 1 &&
	       sscanf(gid, "\nGid: %*u %u", &u->gid) == 1;
}

int asuser_open(struct asuser *u, uint32_t pid, uint64_t start_ticks)
{
	struct proc_stat ps;

	*u = (struct asuser){.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0)};
	if (u->pidfd < 0)
		return -errno;
	if (proc_read_stat(pid, &ps) || ps.start_ticks != start_ticks || !ids_read(u) ||
	    asuser_is_gone(u)) /* what was read may be of another process that has its number now */
		return -ESRCH;
	return 0;
}

bool asuser_is_gone(const struct asuser *u)
{
	struct pollfd p = {.fd = u->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

int asuser_folder(const struct asuser *u, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	cleanup_fd int root = openin_root(u->pid);
	int fd = root < 0 ? root : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return root < 0 ? root : fd < 0 ? -errno : fd;
}

int asuser_become(const struct asuser *u)
{
	if (geteuid() == u->uid && getegid() == u->gid) {
		(void)setgroups(0, NULL);
		return sandbox_powers_drop();
	}
	if (setgroups(0, NULL) || setresgid(u->gid, u->gid, u->gid) ||
	    setresuid(u->uid, u->uid, u->uid))
		return -errno;
	return sandbox_powers_drop();
}
