/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/file/owner.h"
#include "schema/base/strbuf.h"
#include "supervisor/children/child.h"

#define LEFT_MAX 64

void leftover_note(const char *store, const pid_t *pids, size_t n)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char path[PATH_MAX];
	cleanup_fd int fd = -1;

	for (size_t i = 0; i < n; i++)
		if (pids[i] > 0)
			strbuf_addf(&text, "%d %llu\n", (int)pids[i],
				    (unsigned long long)child_start_ticks(pids[i]));
	snprintf(path, sizeof(path), "%s/children", store);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd >= 0)
		owner_inherit(fd, path);
	if (fd >= 0 && write(fd, strbuf_str(&text), text.len) < 0)
		return; /* the disk is full: a child that hangs after sonded was killed then stays
			 */
}

/* A pidfd of that process; -1: it is gone. */
static int open_process(int pid, unsigned long long ticks)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 && child_start_ticks(pid) != ticks) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int end_one(int fd, int64_t until_ns)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int64_t left = (until_ns - clock_mono_ns()) / 1000000;

	if (poll(&pfd, 1, left > 0 ? (int)left : 0) > 0)
		return 0;
	syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	poll(&pfd, 1, 1000);
	return 1;
}

int leftover_end(const char *store, int patience_ms)
{
	int64_t until = clock_mono_ns() + patience_ms * 1000000ll;
	char path[PATH_MAX], line[64];
	cleanup_file FILE *f = NULL;
	int killed = 0, n = 0;

	snprintf(path, sizeof(path), "%s/children", store);
	f = fopen(path, "re");
	while (f && n++ < LEFT_MAX && fgets(line, sizeof(line), f)) {
		unsigned long long ticks;
		int pid;
		cleanup_fd int fd = -1;

		if (sscanf(line, "%d %llu", &pid, &ticks) != 2 || pid < 2)
			continue;
		fd = open_process(pid, ticks);
		if (fd >= 0)
			killed += end_one(fd, until);
	}
	return killed;
}
