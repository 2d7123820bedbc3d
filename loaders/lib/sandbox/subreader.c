/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/sandbox/subreader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/sandbox/confine.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/mem.h"

enum { SAID, OUT, FILES, FDS_MAX = FILES + SUBREADER_FILES_MAX };

int subreader_put(int fd, const void *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		const ssize_t n = pwrite(fd, (const char *)bytes + at, len - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		at += (size_t)n;
	}
	return 0;
}

size_t subreader_get(int fd, void *to, size_t size, size_t from)
{
	size_t at = 0;

	while (at < size) {
		const ssize_t n = pread(fd, (char *)to + at, size - at, (off_t)(from + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	return at;
}

/* ---- the process that starts children ---- */

static _Noreturn void serve(int sock, subreader_work work)
{
	char job[SUBREADER_JOB_MAX] __attribute__((aligned(8)));
	int fds[FDS_MAX];
	ssize_t size;

	while ((size = fdpass_take(sock, job, sizeof(job), fds, FDS_MAX, 0)) > 0) {
		struct subreader_files f = {
			.files = fds + FILES, .said = fds[SAID], .out = fds[OUT]};

		while (f.n < SUBREADER_FILES_MAX && fds[FILES + f.n] >= 0)
			f.n++;
		if (f.out >= 0 && !fork()) {
			close(sock);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(work(job, (size_t)size, &f));
		}
		for (size_t i = 0; i < FDS_MAX; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	}
	_exit(0);
}

/* It keeps nothing of the loader's but its end of the socket, and standard error. */
static _Noreturn void become(int sock, const char *name, subreader_work work)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_IGN); /* no child is waited for */
	signal(SIGINT, SIG_IGN);  /* it ends with its loader, who may read until its own end */
	signal(SIGTERM, SIG_IGN);
	if (dup2(sock, 3) != 3)
		_exit(1);
	close_range(4, ~0u, 0);
	if (sandbox_powers_drop() || confine(0, NULL))
		_exit(1);
	serve(3, work);
}

/* ---- the loader's side ---- */

int subreader_open(struct subreader *r, const char *name, subreader_work work)
{
	int pair[2];

	*r = (struct subreader){.sock = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r->pid = fork();
	if (!r->pid)
		become(pair[1], name, work);
	close(pair[1]);
	if (r->pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	r->sock = pair[0];
	return 0;
}

void subreader_close(struct subreader *r)
{
	if (r->sock < 0)
		return;
	close(r->sock);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r->sock = -1;
}

int subreader_ask(const struct subreader *r, const void *job, size_t size, const int *files,
		  size_t n, int64_t most_ns, struct subreader_job *out)
{
	cleanup_fd int result = -1, mine = -1, theirs = -1;
	int pair[2], fds[FDS_MAX], rc;

	if (r->sock < 0)
		return -ENOSYS;
	if (size > SUBREADER_JOB_MAX || n > SUBREADER_FILES_MAX)
		return -E2BIG;
	result = memfd_create("read", MFD_CLOEXEC);
	if (result < 0 || pipe2(pair, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	mine = pair[0];
	theirs = pair[1];
	fds[SAID] = theirs;
	fds[OUT] = result;
	for (size_t i = 0; i < n; i++)
		fds[FILES + i] = files[i];
	rc = fdpass_send(r->sock, job, size, fds, FILES + n, MSG_DONTWAIT);
	if (rc)
		return rc == -EAGAIN ? -EBUSY : -ENOSYS;
	*out = (struct subreader_job){.said = take_fd(&mine),
				      .out = take_fd(&result),
				      .until_ns = clock_boot_ns() + most_ns};
	return 0;
}

int subreader_take(const struct subreader_job *job, int wait_ms, void *status, size_t size)
{
	struct pollfd p = {.fd = job->said, .events = POLLIN};
	const int ready = poll(&p, 1, wait_ms);

	if (ready <= 0)
		return clock_boot_ns() < job->until_ns ? -EINPROGRESS : -ETIME;
	return read(job->said, status, size) == (ssize_t)size ? 0 : -ECHILD;
}

int subreader_result(const struct subreader_job *job, size_t most, void **bytes, size_t *len)
{
	struct stat st;
	char *got;

	if (fstat(job->out, &st) || st.st_size < 0 || (uint64_t)st.st_size > most)
		return -EBADMSG;
	got = mem_alloc((size_t)st.st_size + 1);
	*len = subreader_get(job->out, got, (size_t)st.st_size, 0);
	if (*len != (size_t)st.st_size) {
		free(got);
		return -EBADMSG;
	}
	got[*len] = '\0';
	*bytes = got;
	return 0;
}

void subreader_drop(struct subreader_job *job)
{
	if (job->said < 0)
		return;
	close(job->said);
	close(job->out);
	job->said = job->out = -1;
}
