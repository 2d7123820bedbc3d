/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define OUTPUT_MAX    (1 << 20)
#define NSEC_PER_MSEC 1000000
#define KILLED_NS     (2 * NSEC_PER_SEC) /* for which one that is killed is waited for */

extern char **environ;

static int start(char *const *argv, int from_fd, int to_fd, bool apart, pid_t *pid, struct err *e)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t pipe_only;
	int rc;

	/* sonde itself ignores SIGPIPE; the helper, and a command that it starts, get the
	 * default */
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigdefault(&attr, &pipe_only);
	posix_spawnattr_setflags(&attr,
				 (short)(POSIX_SPAWN_SETSIGDEF | (apart ? POSIX_SPAWN_SETSID : 0)));
	posix_spawn_file_actions_init(&actions);
	/* dup2 onto the same number clears close-on-exec */
	if (from_fd >= 0)
		posix_spawn_file_actions_adddup2(&actions, from_fd, to_fd);
	rc = posix_spawn(pid, argv[0], &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (rc)
		return err_set(e, -rc, EXIT_RUNTIME, "cannot start %s: %s", argv[0], strerror(rc));
	return 0;
}

int helper_start(char *const *argv, int keep_fd, pid_t *pid, struct err *e)
{
	return start(argv, keep_fd, keep_fd, false, pid, e);
}

int helper_start_apart(char *const *argv, int keep_fd, pid_t *pid, struct err *e)
{
	return start(argv, keep_fd, keep_fd, true, pid, e);
}

int helper_wait(pid_t pid, const char *name, int *exit, struct err *e)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, -errno, EXIT_RUNTIME, "cannot wait for %s: %s", name,
				       strerror(errno));
	/* the reader of its output had enough */
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) {
		*exit = EXIT_OK;
		return 0;
	}
	if (!WIFEXITED(status))
		return err_set(e, -ECHILD, EXIT_RUNTIME, "%s was killed by signal %d", name,
			       WTERMSIG(status));
	*exit = WEXITSTATUS(status);
	return 0;
}

int helper_run(char *const *argv, int *exit, struct err *e)
{
	pid_t pid;
	int rc = start(argv, -1, -1, false, &pid, e);

	return rc ? rc : helper_wait(pid, argv[0], exit, e);
}

int helper_feed(char *const *argv, FILE **in, pid_t *pid, struct err *e)
{
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	rc = start(argv, fds[0], STDIN_FILENO, false, pid, e);
	close(fds[0]);
	*in = rc ? NULL : fdopen(fds[1], "w");
	if (!*in)
		close(fds[1]);
	return rc || *in ? rc : err_set(e, -ENOMEM, EXIT_RUNTIME, "cannot write to %s", argv[0]);
}

/* ---- their output ---- */

static int job_start(struct helper_job *j, int64_t patience_ns)
{
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(&j->e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s",
			       strerror(errno));
	rc = start(j->argv, fds[1], STDOUT_FILENO, false, &j->pid, &j->e);
	close(fds[1]);
	if (rc < 0) {
		close(fds[0]);
		return rc;
	}
	j->fd = fds[0];
	j->until_ns = patience_ns ? clock_mono_ns() + patience_ns : INT64_MAX;
	return 0;
}

/* Closes its pipe, and waits for it: one that has ended or closed its output, or is late. What the
 * kernel does not let end is left alone. */
static void job_end(struct helper_job *j)
{
	int64_t give_up_ns = INT64_MAX;
	bool killed = false;
	pid_t got;

	close(j->fd);
	j->fd = -1;
	for (;;) {
		int64_t now_ns = clock_mono_ns();

		if (now_ns >= j->until_ns && !killed) {
			kill(j->pid, SIGKILL);
			j->late = killed = true;
			give_up_ns = now_ns + KILLED_NS;
		}
		got = waitpid(j->pid, &j->status, j->until_ns == INT64_MAX ? 0 : WNOHANG);
		if (got == j->pid || (got < 0 && errno != EINTR) || now_ns >= give_up_ns)
			return;
		if (!got)
			usleep(2000);
	}
}

/* false: there is no more of it. */
static bool job_read(struct helper_job *j)
{
	char chunk[8192];
	ssize_t n = read(j->fd, chunk, sizeof(chunk));

	if (n > 0 && j->out.len < OUTPUT_MAX)
		strbuf_add(&j->out, chunk, (size_t)n);
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Waits until one of them says something, ends or is late. */
static void jobs_wait(struct helper_job *const *running, size_t n)
{
	struct pollfd fds[HELPER_AT_ONCE];
	int64_t first_ns = INT64_MAX, ms;

	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){.fd = running[i]->fd, .events = POLLIN};
		first_ns = running[i]->until_ns < first_ns ? running[i]->until_ns : first_ns;
	}
	ms = first_ns == INT64_MAX ? -1 : (first_ns - clock_mono_ns()) / NSEC_PER_MSEC + 1;
	ms = ms < -1 ? 0 : ms > INT_MAX ? INT_MAX : ms;
	if (poll(fds, n, (int)ms) <= 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (fds[i].revents && !job_read(running[i]))
			job_end(running[i]);
}

void helper_outputs(struct helper_job *jobs, size_t n, size_t at_once, int64_t patience_ns)
{
	struct helper_job *running[HELPER_AT_ONCE];
	size_t next = 0, n_running = 0;

	at_once = at_once < 1 ? 1 : at_once > HELPER_AT_ONCE ? HELPER_AT_ONCE : at_once;
	while (next < n || n_running) {
		size_t kept = 0;

		while (next < n && n_running < at_once) {
			struct helper_job *j = &jobs[next++];

			j->rc = job_start(j, patience_ns);
			if (!j->rc)
				running[n_running++] = j;
		}
		jobs_wait(running, n_running);
		for (size_t i = 0; i < n_running; i++) {
			struct helper_job *j = running[i];

			if (j->fd >= 0 && clock_mono_ns() >= j->until_ns)
				job_end(j);
			if (j->fd >= 0)
				running[kept++] = j;
		}
		n_running = kept;
	}
}

int helper_output(char *const *argv, struct strbuf *out, int *status, struct err *e)
{
	struct helper_job j = {.argv = argv, .out = *out};

	helper_outputs(&j, 1, 1, 0);
	*out = j.out;
	*status = j.status;
	if (j.rc && e)
		*e = j.e;
	return j.rc;
}
