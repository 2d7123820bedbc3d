/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/scrape/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"

#define LATE_NS (NSEC_PER_SEC / 5) /* its child's alarm is in whole seconds from a moment later */

/* ---- sonde-pprof ---- */

/* Between fork and exec: nothing but system calls. It keeps the right to enter network namespaces,
 * which its children give up. */
static void child_become(const char *path, int fd)
{
	char *argv[] = {(char *)"sonde-pprof", NULL}, *envp[] = {NULL};
	struct rlimit none = {0, 0};
	sigset_t signals;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	sigemptyset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	if (dup2(fd, STDIN_FILENO) < 0)
		_exit(126);
	close_range(3, ~0u, 0);
	execve(path, argv, envp);
	_exit(127);
}

static bool service_start(struct asker *a)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = WIRE_SOCKET};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	a->fd = fd;
	return true;
}

static int child_start(struct asker *a, struct err *e)
{
	char path[PATH_MAX];
	int pair[2], rc = sibling_find("sonde-pprof", path, e);

	if (rc)
		return rc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a socket for sonde-pprof: %s",
			       strerror(errno));
	a->child = fork();
	if (!a->child)
		child_become(path, pair[1]);
	rc = a->child < 0 ? -errno : 0;
	close(pair[1]);
	if (!rc) {
		a->fd = pair[0];
		return 0;
	}
	close(pair[0]);
	a->child = 0;
	return err_set(e, rc, EXIT_RUNTIME, "cannot start sonde-pprof: %s", strerror(-rc));
}

int asker_start(struct asker *a, struct err *e)
{
	*a = (struct asker){.fd = -1};
	return service_start(a) ? 0 : child_start(a, e);
}

void asker_end(struct asker *a)
{
	if (a->fd >= 0)
		close(a->fd);
	if (a->child) {
		kill(a->child, SIGKILL); /* its children end with it */
		waitpid(a->child, NULL, 0);
	}
	*a = (struct asker){.fd = -1};
}

uint64_t asker_cpu_ns(const struct asker *a)
{
	unsigned long long ticks[4];
	char path[64], text[1024];
	const char *at;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)a->child);
	f = a->child ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')'); /* utime, stime, cutime, cstime are fields 14 to 17 */
	if (!at ||
	    sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		   ticks, ticks + 1, ticks + 2, ticks + 3) != 4)
		return 0;
	return (ticks[0] + ticks[1] + ticks[2] + ticks[3]) *
	       (uint64_t)(NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/* ---- a question ---- */

static bool question_send(const struct asker *a, const struct wire_question *q, const int *fds,
			  size_t n)
{
	return a->fd >= 0 && !fdpass_send(a->fd, q, sizeof(*q), fds, n, MSG_DONTWAIT);
}

int fetch_begin(struct fetch *f, const struct asker *a, const struct wire_question *q, uint32_t pid,
		int connection, int64_t now_ns, struct err *e)
{
	int pair[2], fds[2], network = connection, err = 0;
	char path[64];

	*f = (struct fetch){.ask = (enum wire_ask)q->ask,
			    .fd = -1,
			    .connection = -1,
			    .asked_ns = now_ns,
			    .until_ns = now_ns + q->timeout_s * NSEC_PER_SEC};
	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	if (connection < 0 && pid && (network = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return err_set(e, -errno, EXIT_PERMISSION, "its network namespace: %s",
			       strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
	} else {
		fds[0] = pair[1];
		fds[1] = network;
		if (!question_send(a, q, fds, network >= 0 ? 2 : 1))
			err = errno ? -errno : -EPIPE;
		close(pair[1]);
		if (err)
			close(pair[0]);
		else
			f->fd = pair[0];
	}
	if (network >= 0)
		close(network);
	return err ? err_set(e, err, EXIT_RUNTIME, "cannot send a request to sonde-pprof: %s",
			     strerror(-err)) :
		     0;
}

static void close_all(struct fetch *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->connection >= 0)
		close(f->connection);
	f->fd = f->connection = -1;
}

void fetch_release(struct fetch *f)
{
	close_all(f);
	free(f->stacks);
	free(f->frames);
	f->stacks = NULL;
	f->frames = NULL;
	f->n = f->cap = f->n_frames = f->cap_frames = 0;
}

void fetch_hurry(struct fetch *f)
{
	if (f->connection >= 0)
		shutdown(f->connection, SHUT_WR);
}

/* ---- its answer ---- */

static bool stack_take(struct fetch *f, const uint64_t *at, size_t n)
{
	if (f->n >= WIRE_STACKS_MAX || f->n_frames + n > WIRE_FRAMES_MAX)
		return false;
	mem_grow(f->stacks, f->n, f->cap);
	f->stacks[f->n] = (struct fetch_stack){.frames = f->n_frames, .n = (uint32_t)n};
	memcpy(f->stacks[f->n++].values, at + 1, WIRE_VALUES * sizeof(*at));
	/* and of one without frames there is a place, too */
	if (f->n_frames + n >= f->cap_frames) {
		f->cap_frames = (uint32_t)(f->n_frames + n + 8) * 2;
		f->frames = mem_realloc(f->frames, f->cap_frames * sizeof(*f->frames));
	}
	memcpy(f->frames + f->n_frames, at + 1 + WIRE_VALUES, n * sizeof(*at));
	f->n_frames += (uint32_t)n;
	return true;
}

static bool stacks_take(struct fetch *f, const uint64_t *at, size_t words, uint32_t stacks)
{
	for (; stacks; stacks--) {
		size_t n;

		if (words < 1 + WIRE_VALUES || at[0] > WIRE_DEPTH ||
		    at[0] > words - 1 - WIRE_VALUES)
			return false;
		n = (size_t)at[0];
		if (!stack_take(f, at, n))
			return false;
		at += 1 + WIRE_VALUES + n;
		words -= 1 + WIRE_VALUES + n;
	}
	return !words;
}

static void mappings_take(struct fetch *f, const struct wire_mapping *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		f->has_mapping |= m[i].start <= f->exe.start && m[i].end >= f->exe.end &&
				  f->exe.start - m[i].start == f->exe.offset - m[i].offset;
}

bool fetch_take(struct fetch *f, const void *message, size_t len)
{
	struct wire_head h;
	const uint8_t *rest = (const uint8_t *)message + sizeof(h);
	size_t left = len - sizeof(h);

	if (len < sizeof(h))
		return false;
	memcpy(&h, message, sizeof(h));
	switch (h.what) {
	case WIRE_CONNECTED:
		return !left;
	case WIRE_INDEX:
		memcpy(&f->goroutines, rest, left == sizeof(f->goroutines) ? left : 0);
		return left == sizeof(f->goroutines);
	case WIRE_MAPPINGS:
		if (left != h.n * sizeof(struct wire_mapping))
			return false;
		mappings_take(f, (const void *)rest, h.n);
		return true;
	case WIRE_STACKS:
		return left % 8 == 0 && stacks_take(f, (const void *)rest, left / 8, h.n);
	case WIRE_END:
		memcpy(&f->end, rest, left == sizeof(f->end) ? left : 0);
		f->state = FETCH_DONE;
		return left == sizeof(f->end);
	case WIRE_FAILED:
		memcpy(&f->failed, rest, left == sizeof(f->failed) ? left : 0);
		f->state = FETCH_FAILED;
		return left == sizeof(f->failed);
	default:
		return false;
	}
}

static void broken(struct fetch *f, enum wire_why why)
{
	f->state = FETCH_FAILED;
	f->failed = (struct wire_failed){why, 0};
}

static void connection_take(struct fetch *f, int fd)
{
	if (fd < 0)
		return;
	if (f->connection >= 0)
		close(f->connection);
	f->connection = fd;
}

/* 1: a message; 0: none now; -1: no more will come. */
static int receive(struct fetch *f)
{
	static uint64_t buf[WIRE_MESSAGE / 8];
	int fd;
	const ssize_t n = fdpass_take(f->fd, buf, sizeof(buf), &fd, 1, MSG_DONTWAIT);

	connection_take(f, fd);
	if (n == -EAGAIN)
		return 0;
	if (n <= 0 && n != -EMSGSIZE)
		return -1;
	if (n < 0 || !fetch_take(f, buf, (size_t)n))
		broken(f, WIRE_BROKEN);
	return 1;
}

void fetch_read(struct fetch *f, int64_t now_ns)
{
	int got = 1;

	while (f->state == FETCH_ON && got > 0)
		got = receive(f);
	if (f->state == FETCH_ON && now_ns >= f->until_ns - LATE_NS)
		broken(f, WIRE_SILENT);
	if (f->state == FETCH_ON && got < 0)
		broken(f, WIRE_BROKEN);
	if (f->state != FETCH_ON)
		close_all(f);
}
