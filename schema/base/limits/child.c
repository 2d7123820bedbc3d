/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/limits/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define NICE        5
#define NOT_STARTED 127

static void limit(int resource, rlim_t soft, rlim_t hard)
{
	const struct rlimit r = {soft, hard};

	setrlimit(resource, &r);
}

/* Between fork and exec of a program with threads: only system calls. */
static void be_child(const char *const *argv, const struct child_limits *limits, int in, int out,
		     int say)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	setpriority(PRIO_PROCESS, 0, NICE);
	limit(RLIMIT_CPU, limits->seconds + 1, limits->seconds + 2);
	limit(RLIMIT_DATA, limits->memory_bytes, limits->memory_bytes);
	limit(RLIMIT_FSIZE, limits->answer_bytes, limits->answer_bytes);
	limit(RLIMIT_CORE, 0, 0);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(say, 2) < 0)
		_exit(NOT_STARTED);
	if (limits->spans_fd < CHILD_SPANS || dup2(limits->spans_fd, CHILD_SPANS) < 0)
		syscall(SYS_close_range, CHILD_SPANS, ~0u,
			0);                       /* descriptors that this program inherited */
	else if (!fcntl(CHILD_SPANS, F_SETFD, 0)) /* it may have had that number */
		syscall(SYS_close_range, CHILD_SPANS + 1, ~0u, 0);
	execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(NOT_STARTED);
}

/* Why waiting ends. */
static enum child_end wait_end(int pid_fd, int stop_fd, int client_fd, int64_t deadline_ns)
{
	struct pollfd fds[] = {{.fd = pid_fd, .events = POLLIN},
			       {.fd = stop_fd, .events = POLLIN},
			       {.fd = client_fd, .events = POLLRDHUP}};

	for (;;) {
		int64_t left = (deadline_ns - clock_boot_ns()) / 1000000 + 1;
		int n = poll(fds, 3, left > 0 ? (int)left : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (fds[0].revents)
			return CHILD_EXITED;
		if (fds[1].revents)
			return CHILD_STOPPED;
		if (fds[2].revents & (POLLRDHUP | POLLHUP | POLLERR))
			return CHILD_LEFT;
		if (n <= 0)
			return CHILD_OVER_TIME;
	}
}

/* Reaps it, once it has ended or was killed, and kills everything it had started. */
static void reap(pid_t pid, enum child_end end, struct child_answer *answer)
{
	int status = 0;

	kill(-pid, SIGKILL); /* a process that has ended keeps its number until it is waited for */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	answer->end = end;
	if (end != CHILD_EXITED)
		return;
	if (WIFEXITED(status)) {
		answer->exit = WEXITSTATUS(status);
	} else {
		answer->signal = WTERMSIG(status);
		answer->end = answer->signal == SIGXCPU ? CHILD_OVER_TIME : CHILD_KILLED;
	}
}

static void read_said(int fd, struct child_answer *answer)
{
	ssize_t n = pread(fd, answer->said, sizeof(answer->said) - 1, 0);

	answer->said[n > 0 ? n : 0] = '\0';
}

int child_spans_make(void)
{
	char number[16];
	int fd;

	if (getenv("SONDE_SPANS"))
		return CHILD_SPANS;
	fd = memfd_create("spans", MFD_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0)
		return -1;
	snprintf(number, sizeof(number), "%d", CHILD_SPANS);
	return setenv("SONDE_SPANS", number, 1) ? -1 : fd;
}

/* The caller closes the result, and keeps limits->in_fd. */
static int input_of(const struct child_limits *limits)
{
	if (!limits->in_fd)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	lseek(limits->in_fd, 0, SEEK_SET);
	return fcntl(limits->in_fd, F_DUPFD_CLOEXEC, 0);
}

int child_ask(const char *const *argv, const struct child_limits *limits, int stop_fd,
	      int client_fd, struct child_answer *answer, struct err *e)
{
	cleanup_fd int in = input_of(limits), pid_fd = -1;
	cleanup_fd int out = memfd_create("answer", MFD_CLOEXEC),
		       say = memfd_create("said", MFD_CLOEXEC);
	int64_t deadline_ns = clock_boot_ns() + limits->seconds * NSEC_PER_SEC;
	struct stat st = {0};
	pid_t pid;

	memset(answer, 0, sizeof(*answer));
	answer->out_fd = -1;
	pid = in < 0 || out < 0 || say < 0 ? -1 : fork();
	if (pid < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot start %s: %s", argv[0],
			       strerror(errno));
	if (!pid)
		be_child(argv, limits, in, out, say);
	setpgid(pid, pid); /* whichever of the two comes first */
	pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	reap(pid, pid_fd < 0 ? CHILD_OVER_TIME : wait_end(pid_fd, stop_fd, client_fd, deadline_ns),
	     answer);
	if (answer->end == CHILD_EXITED && answer->exit == NOT_STARTED)
		return err_set(e, -ENOENT, EXIT_PREREQUISITE, "cannot start %s", argv[0]);
	fstat(out, &st);
	read_said(say, answer);
	answer->out_bytes = (uint64_t)st.st_size;
	answer->out_fd = take_fd(&out);
	return 0;
}
