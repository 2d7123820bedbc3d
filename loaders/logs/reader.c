/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's side. */
#include "loaders/logs/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/file/fdpass.h"

#define ANSWER_NS (20 * NSEC_PER_SEC)

/* It keeps nothing of the loader's but its end of the socket, and standard error. */
static _Noreturn void become(const struct reader *r, int sock)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "sonde-logread");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* it ends with its loader, who may read until its own end */
	signal(SIGTERM, SIG_IGN);
	if (dup2(sock, 3) != 3)
		_exit(1);
	close_range(4, ~0u, 0);
	reading_main(3, r->bucket_s, r->text, r->reads);
}

int reader_start(struct reader *r)
{
	int pair[2];

	if (!r->reads) {
		void *shared = mmap(NULL, sizeof(*r->reads), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (shared == MAP_FAILED)
			return -errno;
		r->reads = shared;
	}
	*r->reads = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r->pid = fork();
	if (!r->pid)
		become(r, pair[1]);
	close(pair[1]);
	if (r->pid < 0) {
		close(pair[0]);
		r->pid = 0;
		return -EAGAIN;
	}
	r->fd = pair[0];
	r->cpu_ns = 0;
	return 0;
}

void reader_end(struct reader *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r->pid = 0;
	r->ended_ns += r->cpu_ns;
	r->cpu_ns = 0;
}

uint64_t reader_cpu_ns(const struct reader *r)
{
	return r->ended_ns + r->cpu_ns;
}

bool reader_ask(const struct reader *r, const struct wire_ask *q, int fd)
{
	return r->fd >= 0 && !fdpass_send(r->fd, q, sizeof(*q), &fd, fd >= 0, 0);
}

bool reader_read(struct reader *r, const struct wire_ask *q,
		 void (*take)(void *ctx, const struct wire_said *x, const char *const text[2]),
		 void *ctx, bool *more)
{
	static struct wire_packet p;
	int64_t until = clock_mono_ns() + ANSWER_NS;
	bool asked = reader_ask(r, q, -1);
	const char *text[2];
	struct wire_said x;

	*more = false;
	while (asked && clock_mono_ns() < until) {
		struct pollfd f = {.fd = r->fd, .events = POLLIN};
		size_t at = 0;
		ssize_t n;

		if (poll(&f, 1, 1000) <= 0)
			continue;
		n = read(r->fd, p.bytes, sizeof(p.bytes));
		if (n <= 0)
			break;
		p.len = (size_t)n;
		while (wire_next(&p, &at, &x, text)) {
			if (x.kind != WIRE_DONE) {
				take(ctx, &x, text);
				continue;
			}
			r->cpu_ns = x.cpu_ns;
			*more = x.more;
			return true;
		}
	}
	reader_end(r);
	return false;
}
