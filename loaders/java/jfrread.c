/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jfrread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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
#include "schema/base/mem.h"

#define JOB_NS (30 * NSEC_PER_SEC)
#define TRIES  4

/* A job: these words, and the descriptors said, out, file. */
struct job_message {
	uint64_t since;
	int64_t after_chunk_ns;
	uint64_t live;
};
#define FDS 3

/* ---- the child: reads ---- */

static size_t read_at(int fd, void *to, size_t size, size_t from)
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

/* All of it, with a header that was the same before and after, so that places in it are of these
 * bytes. */
static int file_read(int fd, bool live, void **out, size_t *len)
{
	unsigned char before[JFRPICK_HEADER];

	for (int i = 0; i < TRIES; i++) {
		const off_t end = lseek(fd, 0, SEEK_END); /* the sandbox has no fstat of glibc's */
		char *bytes;
		size_t size;

		if (end < (off_t)JFRPICK_HEADER)
			return -EAGAIN;
		size = end > (off_t)JFRREAD_FILE_MAX ? JFRREAD_FILE_MAX : (size_t)end;
		if (read_at(fd, before, sizeof(before), 0) != sizeof(before) ||
		    (live && !jfrpick_header(before, NULL)))
			continue;
		bytes = mem_alloc(size);
		*len = read_at(fd, bytes, size, 0);
		*out = bytes;
		if (*len >= JFRPICK_HEADER && (!live || !memcmp(bytes, before, sizeof(before))) &&
		    read_at(fd, before, sizeof(before), 0) == sizeof(before) &&
		    (!live || !memcmp(bytes, before, sizeof(before))))
			return 0;
		free(bytes);
	}
	return -EAGAIN;
}

static int write_out(int fd, const char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		const ssize_t n = pwrite(fd, bytes + at, len - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		at += (size_t)n;
	}
	return 0;
}

static void work(const struct job_message *j, const int fds[FDS])
{
	const struct jfrpick_opts o = {
		.live = j->live, .since = j->since, .after_chunk_ns = j->after_chunk_ns};
	void *file = NULL, *block = NULL;
	size_t len = 0, size = 0;
	int32_t status;

	if (sandbox_enter(SANDBOX_SMALL, NULL))
		_exit(1);
	status = file_read(fds[2], o.live, &file, &len);
	if (!status)
		status = jfrpick(file, len, &o, &block, &size);
	if (!status) {
		((struct jfrblock_head *)block)->cpu_ns = (uint64_t)clock_cpu_ns();
		status = write_out(fds[1], block, size);
	}
	_exit(write(fds[0], &status, sizeof(status)) == sizeof(status) ? 0 : 1);
}

/* ---- the process that starts children ---- */

static bool job_receive(int sock, struct job_message *j, int fds[FDS], size_t *n_fds)
{
	union {
		char buf[CMSG_SPACE(FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec v = {.iov_base = j, .iov_len = sizeof(*j)};
	struct msghdr h = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.buf,
			   .msg_controllen = sizeof(control.buf)};
	const struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n == sizeof(*j) ? CMSG_FIRSTHDR(&h) : NULL;
	*n_fds = 0;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(FDS * sizeof(int))) {
		memcpy(fds, CMSG_DATA(c), FDS * sizeof(int));
		*n_fds = FDS;
	}
	return n == sizeof(*j);
}

static _Noreturn void serve(int sock)
{
	struct job_message j;
	int fds[FDS];
	size_t n;

	while (job_receive(sock, &j, fds, &n)) {
		if (n == FDS && !fork()) {
			close(sock);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(&j, fds);
		}
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
	}
	_exit(0);
}

static _Noreturn void become(int sock)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "sonde-jfr");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* it ends with its loader */
	signal(SIGTERM, SIG_IGN);
	if (dup2(sock, 3) != 3)
		_exit(1);
	close_range(4, ~0u, 0);
	if (sandbox_powers_drop() || confine(0, NULL))
		_exit(1);
	serve(3);
}

/* ---- the loader's side ---- */

int jfrread_open(struct jfrread *r)
{
	int pair[2];

	*r = (struct jfrread){.sock = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r->pid = fork();
	if (!r->pid)
		become(pair[1]);
	close(pair[1]);
	if (r->pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	r->sock = pair[0];
	return 0;
}

void jfrread_close(struct jfrread *r)
{
	if (r->sock < 0)
		return;
	close(r->sock);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r->sock = -1;
}

static int job_send(const struct jfrread *r, const struct jfrpick_opts *o, const int fds[FDS])
{
	struct job_message j = {
		.since = o->since, .after_chunk_ns = o->after_chunk_ns, .live = o->live};
	union {
		char buf[CMSG_SPACE(FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec v = {.iov_base = &j, .iov_len = sizeof(j)};
	struct msghdr h = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.buf,
			   .msg_controllen = sizeof(control.buf)};

	CMSG_FIRSTHDR(&h)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&h)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&h)->cmsg_len = CMSG_LEN(FDS * sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fds, FDS * sizeof(int));
	return sendmsg(r->sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int jfrread_ask(const struct jfrread *r, int file, const struct jfrpick_opts *o,
		struct jfrread_job *job)
{
	cleanup_fd int out = -1, mine = -1, theirs = -1;
	int pair[2], rc;

	if (r->sock < 0)
		return -ENOSYS;
	out = memfd_create("jfr", MFD_CLOEXEC);
	if (out < 0 || pipe2(pair, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	mine = pair[0];
	theirs = pair[1];
	rc = job_send(r, o, (const int[FDS]){theirs, out, file});
	if (rc)
		return rc;
	*job = (struct jfrread_job){
		.said = take_fd(&mine), .out = take_fd(&out), .until_ns = clock_boot_ns() + JOB_NS};
	return 0;
}

void jfrread_drop(struct jfrread_job *job)
{
	if (job->said < 0)
		return;
	close(job->said);
	close(job->out);
	*job = (struct jfrread_job){.said = -1, .out = -1};
}

static int block_take(int fd, void **bytes, struct jfrblock *out)
{
	struct stat st;
	size_t len;
	int rc;

	if (fstat(fd, &st) || st.st_size > (off_t)JFRBLOCK_BYTES_MAX)
		return -EBADMSG;
	len = (size_t)st.st_size;
	*bytes = mem_alloc(len + 1);
	rc = read_at(fd, *bytes, len, 0) == len ? jfrblock_open(*bytes, len, out) : -EBADMSG;
	if (rc) {
		free(*bytes);
		*bytes = NULL;
	}
	return rc;
}

int jfrread_take(struct jfrread_job *job, int wait_ms, void **bytes, struct jfrblock *out)
{
	struct pollfd p = {.fd = job->said, .events = POLLIN};
	const int ready = poll(&p, 1, wait_ms);
	int32_t status = 0;
	int rc;

	if (ready <= 0 && clock_boot_ns() < job->until_ns)
		return -EINPROGRESS;
	if (ready <= 0)
		rc = -ETIME;
	else if (read(job->said, &status, sizeof(status)) != sizeof(status))
		rc = -ECHILD;
	else
		rc = status > 0 ? -EBADMSG : status;
	if (!rc)
		rc = block_take(job->out, bytes, out);
	jfrread_drop(job);
	return rc;
}
