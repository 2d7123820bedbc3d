/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jattach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "loaders/java/jcmd.h"
#include "loaders/lib/host/talk/asuser.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define SOCKET_NS (60 * NSEC_PER_SEC) /* a machine under load, or in a long collection */
#define ANSWER_NS (60 * NSEC_PER_SEC)
#define STEP_NS   5000000

static int refuse(struct jattach *a, int rc, const char *form, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse(struct jattach *a, int rc, const char *form, ...)
{
	va_list args;

	va_start(args, form);
	vsnprintf(a->why, sizeof(a->why), form, args);
	va_end(args);
	return rc;
}

static int cwd_open(uint32_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/cwd", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int jattach_open(struct jattach *a, uint32_t pid, uint64_t start_ticks)
{
	int rc;

	*a = (struct jattach){.cwd = -1, .tmp = -1};
	rc = asuser_open(&a->of, pid, start_ticks);
	if (rc)
		return refuse(a, rc, "it has ended");
	a->cwd = cwd_open(pid);
	a->tmp = asuser_folder(&a->of, "tmp");
	if (a->tmp < 0)
		return refuse(a, a->tmp, "its /tmp cannot be opened: %s", strerror(-a->tmp));
	if (asuser_is_gone(&a->of)) /* and what was opened may be of another */
		return refuse(a, -ESRCH, "it has ended");
	return 0;
}

int jattach_become(struct jattach *a)
{
	const int rc = asuser_become(&a->of);

	return rc ? refuse(a, rc, "cannot become its user %u: that takes CAP_SETUID and CAP_SETGID",
			   a->of.uid) :
		    0;
}

/* ---- the socket ---- */

static int socket_connect(struct jattach *a)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	snprintf(at.sun_path, sizeof(at.sun_path), ".java_pid%u", a->of.nspid);
	if (fd < 0 || fchdir(a->tmp) || connect(fd, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	/* 0: it listens in a pid namespace that is not below ours */
	if (peer.pid && (uint32_t)peer.pid != a->of.pid)
		return -EPERM;
	return take_fd(&fd);
}

int jattach_listens(struct jattach *a)
{
	const int fd = socket_connect(a);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* In the working folder if that can be written, else in /tmp. *out: it, open. */
static int file_make(struct jattach *a, const char *name, int *folder, int *out)
{
	const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
		  folders[] = {a->cwd, a->tmp};
	struct stat st;
	int fd;

	for (int i = 0; i < 2; i++) {
		if (folders[i] < 0)
			continue;
		fd = openat(folders[i], name, flags, 0600);
		if (fd < 0 && errno == EEXIST) /* an earlier try's */
			fd = openat(folders[i], name,
				    O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		/* it must be the machine's user's: a file of another's makes it print its threads
		 */
		if (fstat(fd, &st) || st.st_uid != a->of.uid || !S_ISREG(st.st_mode)) {
			close(fd);
			continue;
		}
		*out = fd;
		*folder = folders[i];
		return 0;
	}
	return refuse(a, -EACCES,
		      "neither its working folder nor its /tmp can be written by its user");
}

static int socket_await(struct jattach *a)
{
	const int64_t until = clock_boot_ns() + SOCKET_NS;

	while (jattach_listens(a)) {
		if (asuser_is_gone(&a->of))
			return refuse(a, -ESRCH, "it has ended");
		if (clock_boot_ns() > until)
			return refuse(a, -ETIMEDOUT,
				      "it did not open its attach socket within a minute");
		nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
	}
	return 0;
}

int jattach_ready(struct jattach *a)
{
	cleanup_fd int file = -1;
	char name[40];
	int folder = -1, rc = jattach_listens(a);

	if (!rc)
		return 0;
	if (rc == -EPERM)
		return refuse(a, rc, "another process listens on its attach socket");
	snprintf(name, sizeof(name), ".attach_pid%u", a->of.nspid);
	rc = file_make(a, name, &folder, &file);
	if (rc)
		return rc;
	/* two helpers of ours: a second signal would print all threads */
	if (flock(file, LOCK_EX | LOCK_NB))
		return socket_await(a);
	if (!jattach_listens(a)) {
		(void)unlinkat(folder, name, 0);
		return 0;
	}
	if (syscall(SYS_pidfd_send_signal, a->of.pidfd, SIGQUIT, NULL, 0)) {
		rc = refuse(a, -errno, "it cannot be signalled: %s", strerror(errno));
		(void)unlinkat(folder, name, 0);
		return rc;
	}
	rc = socket_await(a);
	if (rc != -ETIMEDOUT)
		(void)unlinkat(folder, name, 0);
	return rc;
}

/* ---- a command ---- */

static int answer_read(int fd, char *answer, int64_t until)
{
	size_t len = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const int64_t left = until - clock_boot_ns();
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)(left / 1000000) + 1) <= 0)
			return -ETIMEDOUT;
		n = read(fd, answer + len, JCMD_ANSWER_MAX - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n || len + (size_t)n == JCMD_ANSWER_MAX - 1) {
			len += (size_t)n;
			break;
		}
		len += (size_t)n;
	}
	answer[len] = '\0';
	return len ? 0 : -ECONNRESET;
}

static int converse(struct jattach *a, const char *request, size_t len, char *answer)
{
	const int64_t until = clock_boot_ns() + ANSWER_NS;
	cleanup_fd int fd = -1;
	int rc;

	*answer = '\0';
	if (!len)
		return refuse(a, -E2BIG, "the command is too long");
	fd = socket_connect(a);
	if (fd < 0)
		return refuse(a, fd,
			      asuser_is_gone(&a->of) ? "it has ended" :
						       "its attach socket is gone");
	if (send(fd, request, len, MSG_NOSIGNAL) != (ssize_t)len)
		return refuse(a, -EIO, "its attach socket takes no command");
	rc = answer_read(fd, answer, until);
	return rc == -ETIMEDOUT ? refuse(a, rc, "it did not answer within a minute") :
	       rc               ? refuse(a, rc, "it closed its attach socket without an answer") :
				  0;
}

int jattach_ask(struct jattach *a, const char *line, char *answer)
{
	char request[JCMD_REQUEST_MAX];

	return converse(a, request, jcmd_request(line, request), answer);
}

int jattach_load(struct jattach *a, const char *line, char *answer)
{
	char request[JCMD_REQUEST_MAX];

	return converse(a, request, jcmd_load_request(line, request), answer);
}
