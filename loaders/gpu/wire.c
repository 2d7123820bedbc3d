/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/gpu/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/sibling.h"

/* ---- beginning and end ---- */

/* Between fork and exec: nothing but system calls. */
static void child_become(const char *path, int fd)
{
	char *argv[] = {(char *)"sonde-nvml", NULL};
	struct rlimit none = {0, 0};
	sigset_t signals;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* root's; others have ambient ones: */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
	sigemptyset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(126);
	close_range(3, ~0u, 0);
	execv(path, argv);
	_exit(127);
}

static int child_start(struct wire *t, struct err *e)
{
	char path[PATH_MAX];
	int pair[2], rc = sibling_find("sonde-nvml", path, e);

	if (rc)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a socket for sonde-nvml: %s",
			       strerror(errno));
	t->child = fork();
	if (!t->child)
		child_become(path, pair[1]);
	close(pair[1]);
	if (t->child < 0) {
		rc = -errno;
		t->child = 0;
		close(pair[0]);
		return err_set(e, rc, EXIT_RUNTIME, "cannot start sonde-nvml: %s", strerror(-rc));
	}
	t->to = t->from = pair[0];
	return 0;
}

/* Where systemd listens for us: the one that it starts may see the devices, which we may not. */
static bool service_start(struct wire *t)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = WIRE_SOCKET};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	t->to = t->from = fd;
	return true;
}

static void reaped(struct wire *t, const struct rusage *u)
{
	t->ended_cpu_ns += (uint64_t)((u->ru_utime.tv_sec + u->ru_stime.tv_sec) * NSEC_PER_SEC +
				      (u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1000);
}

/* A free slot for a killed child; NULL: none. */
static pid_t *stuck_room(struct wire *t)
{
	pid_t *room = NULL;
	struct rusage u;

	for (int i = 0; i < WIRE_STUCK_MAX; i++) {
		pid_t gone = t->stuck[i] ? wait4(t->stuck[i], NULL, WNOHANG, &u) : 0;

		if (gone > 0)
			reaped(t, &u);
		if (gone)
			t->stuck[i] = 0;
		if (!t->stuck[i])
			room = &t->stuck[i];
	}
	return room;
}

static void let_go(struct wire *t, int64_t now_ns)
{
	pid_t *room = stuck_room(t);

	if (t->from >= 0)
		close(t->from);
	t->to = t->from = -1;
	if (t->child) {
		kill(t->child, SIGKILL);
		if (room)
			*room = t->child; /* there was room as it was started */
	}
	t->child = 0;
	t->state = WIRE_OFF;
	t->rest_ns = now_ns + WIRE_REST_NS;
	strbuf_reset(&t->text);
}

int wire_start(struct wire *t, int64_t now_ns, struct err *e)
{
	int rc;

	if (t->state != WIRE_OFF || now_ns < t->rest_ns)
		return 0;
	if (!stuck_room(t))
		return err_set(e, -EBUSY, EXIT_RUNTIME,
			       "NVIDIA's driver hangs: programs that called it cannot be killed");
	rc = service_start(t) ? 0 : child_start(t, e);
	if (rc) {
		t->rest_ns = now_ns + WIRE_REST_NS;
		return rc;
	}
	fcntl(t->from, F_SETFL, O_NONBLOCK);
	strbuf_reset(&t->text);
	t->state = WIRE_STARTING;
	t->since_ns = now_ns;
	t->starts++;
	return 0;
}

void wire_end(struct wire *t)
{
	struct timespec moment = {.tv_nsec = 10000000};

	let_go(t, 0);
	for (int i = 0; i < 20; i++) {
		bool any = false;

		stuck_room(t);
		for (int k = 0; k < WIRE_STUCK_MAX; k++)
			any |= t->stuck[k] != 0;
		if (!any)
			break;
		nanosleep(&moment, NULL);
	}
	strbuf_release(&t->text);
}

/* ---- what it says ---- */

static void drop_front(struct strbuf *s, size_t n)
{
	struct strbuf rest = STRBUF_INIT;

	strbuf_add(&rest, s->buf + n, s->len - n);
	strbuf_release(s);
	*s = rest;
}

/* Its first words. */
static int greeted(struct wire *t, int64_t now_ns, struct err *e)
{
	size_t len;
	enum gpuparse_what what = gpuparse_next(strbuf_str(&t->text), t->text.len, &len);

	if (what == GPUPARSE_MORE)
		return 0;
	if (what != GPUPARSE_READY) {
		int rc = what == GPUPARSE_ERROR ? gpuparse_error(strbuf_str(&t->text), len, e) :
						  err_set(e, -EIO, EXIT_RUNTIME,
							  "sonde-nvml sent an unexpected answer");

		let_go(t, now_ns);
		return rc;
	}
	gpuparse_hello(strbuf_str(&t->text), len, &t->hello);
	drop_front(&t->text, len);
	t->state = WIRE_IDLE;
	return 0;
}

static int gone(struct wire *t, int64_t now_ns, const char *why, struct err *e)
{
	err_set(e, -EIO, EXIT_RUNTIME, "sonde-nvml %s", why);
	err_fix(e, "does nvidia-smi answer? sudo dmesg | grep NVRM    shows the driver's errors");
	let_go(t, now_ns);
	return -EIO;
}

int wire_read(struct wire *t, int64_t now_ns, struct err *e)
{
	char buf[8192];
	ssize_t n;

	if (t->state == WIRE_OFF)
		return 0;
	while ((n = read(t->from, buf, sizeof(buf))) > 0) {
		strbuf_add(&t->text, buf, (size_t)n);
		if (t->text.len > WIRE_BYTES_MAX)
			return gone(t, now_ns, "sends too much", e);
	}
	if (t->state == WIRE_STARTING) {
		int rc = greeted(t, now_ns, e);

		if (rc)
			return rc;
	}
	if (n == 0 && (t->state != WIRE_ASKED || !t->text.len))
		return gone(t, now_ns, "ended", e);
	if (t->state == WIRE_STARTING && now_ns - t->since_ns > WIRE_START_NS)
		return gone(t, now_ns, "did not begin within 30 s: NVIDIA's driver hangs", e);
	return 0;
}

int wire_await(struct wire *t, int64_t patience_ns, struct err *e)
{
	int64_t until = clock_mono_ns() + patience_ns, now = clock_mono_ns();
	int rc = 0;

	while (!rc && t->state == WIRE_STARTING && now < until) {
		struct pollfd f = {.fd = t->from, .events = POLLIN};

		poll(&f, 1, (int)((until - now) / 1000000) + 1);
		rc = wire_read(t, clock_boot_ns(), e);
		now = clock_mono_ns();
	}
	return rc ? rc : t->state == WIRE_STARTING ? -ETIMEDOUT : 0;
}

bool wire_ask(struct wire *t, int64_t now_ns)
{
	if (t->state != WIRE_IDLE || send(t->to, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return false;
	t->state = WIRE_ASKED;
	t->since_ns = now_ns;
	return true;
}

enum gpuparse_what wire_next(struct wire *t, struct gpuparse_device *out)
{
	size_t len = 0;
	enum gpuparse_what what = t->state == WIRE_ASKED ?
					  gpuparse_next(strbuf_str(&t->text), t->text.len, &len) :
					  GPUPARSE_MORE;

	if (what == GPUPARSE_DEVICE)
		gpuparse_device(strbuf_str(&t->text), len, out);
	if (what == GPUPARSE_END)
		t->state = WIRE_IDLE;
	if (what != GPUPARSE_MORE)
		drop_front(&t->text, len);
	return what;
}

int wire_overdue(struct wire *t, int64_t now_ns, struct err *e)
{
	if (t->state != WIRE_ASKED || now_ns - t->since_ns <= WIRE_ANSWER_NS)
		return 0;
	return gone(t, now_ns, "did not answer within 5 s: NVIDIA's driver hangs", e);
}

uint64_t wire_cpu_ns(const struct wire *t)
{
	struct timespec ts;
	clockid_t clock;

	if (!t->child || clock_getcpuclockid(t->child, &clock) || clock_gettime(clock, &ts))
		return t->ended_cpu_ns;
	return t->ended_cpu_ns + (uint64_t)(ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec);
}
