/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's side. */
#include "loaders/l7/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

/* A descriptor may have a number that another one needs: all are moved out of the way first. */
static void child_become(const int fds[4], const char *bucket, bool ring)
{
	char *argv[] = {"sonde-l7", (char *)PARSER_OPTION, (char *)bucket,
			ring ? (char *)PARSER_RING : NULL, NULL},
	     *envp[] = {NULL};
	int from[4];
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 4; i++)
		from[i] = fcntl(fds[i], F_DUPFD, 10);
	for (int i = 0; i < 4; i++)
		if (from[i] < 0 || dup2(from[i], 3 + i) < 0)
			_exit(1);
	close_range(7, ~0u, 0);
	execve("/proc/self/exe", argv, envp);
	_exit(1);
}

static int start(struct parser *p, struct err *e)
{
	int pair[2];
	char bucket[16];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a socket for the parser: %s",
			       strerror(errno));
	snprintf(bucket, sizeof(bucket), "%u", p->bucket_s);
	p->pid = fork();
	if (!p->pid)
		child_become((const int[4]){pair[1], p->ring_fd, p->wants_fd, p->more_fd}, bucket,
			     p->has_ring);
	close(pair[1]);
	if (p->pid < 0) {
		int err = -errno;

		close(pair[0]);
		p->pid = 0;
		return err_set(e, err, EXIT_RUNTIME, "cannot start the parser: %s", strerror(-err));
	}
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	p->fd = pair[0];
	p->starts++;
	return 0;
}

void parser_init(struct parser *p)
{
	*p = (struct parser){.fd = -1,
			     .ring_fd = -1,
			     .wants_fd = -1,
			     .more_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
}

int parser_start(struct parser *p, int ring_fd, int wants_fd, uint32_t bucket_s, struct err *e)
{
	p->ring_fd = ring_fd;
	p->wants_fd = wants_fd;
	p->bucket_s = bucket_s;
	return start(p, e);
}

/* 1: read a packet; 0: none is there; -1: it has ended. */
static int packet_read(struct parser *p, parser_take take, void *ctx, bool *flushed)
{
	ssize_t n = read(p->fd, p->buf, sizeof(p->buf));
	struct message x;
	size_t at = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	while (message_read(p->buf, (size_t)n, &at, &x)) {
		if (x.kind == MSG_FLUSHED)
			*flushed = true;
		else
			take(ctx, &x);
	}
	return 1;
}

bool parser_read(struct parser *p, parser_take take, void *ctx, size_t *n)
{
	bool flushed = false;
	int got;

	*n = 0;
	if (p->fd < 0)
		return false;
	while ((got = packet_read(p, take, ctx, &flushed)) > 0)
		++*n;
	return !got;
}

bool parser_ask(const struct parser *p, const struct parser_ask *q)
{
	size_t size = offsetof(struct parser_ask, gone) + 2 * q->n * sizeof(q->gone[0]);

	return p->fd >= 0 &&
	       (send(p->fd, q, size, MSG_NOSIGNAL) == (ssize_t)size || errno == EAGAIN);
}

bool parser_end(struct parser *p, int64_t offset_ns, int64_t patience_ns, parser_take take,
		void *ctx)
{
	const struct parser_ask q = {
		.what = PARSER_END, .now_ns = clock_boot_ns(), .offset_ns = offset_ns};
	int64_t until = clock_mono_ns() + patience_ns, now;
	bool flushed = false;

	if (!parser_ask(p, &q))
		return false;
	while (!flushed && (now = clock_mono_ns()) < until) {
		struct pollfd f = {.fd = p->fd, .events = POLLIN};

		if (poll(&f, 1, (int)((until - now) / 1000000) + 1) > 0 &&
		    packet_read(p, take, ctx, &flushed) < 0)
			return false;
	}
	return flushed;
}

static uint64_t running_cpu_ns(const struct parser *p)
{
	struct timespec t;
	clockid_t clock;

	if (p->pid <= 0 || clock_getcpuclockid(p->pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t parser_cpu_ns(const struct parser *p)
{
	return p->cpu_ns + running_cpu_ns(p);
}

void parser_close(struct parser *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	p->cpu_ns += running_cpu_ns(p);
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	p->pid = 0;
}

void parser_release(struct parser *p)
{
	parser_close(p);
	if (p->more_fd >= 0)
		close(p->more_fd);
	p->more_fd = -1;
}

int parser_again(struct parser *p, struct err *e)
{
	parser_close(p);
	return start(p, e);
}
