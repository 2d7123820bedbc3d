/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

#define OUTPUT_MAX (1 << 20)

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

int helper_output(char *const *argv, struct strbuf *out, int *status, struct err *e)
{
	cleanup_fd int read_fd = -1;
	int fds[2], rc;
	char chunk[8192];
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	read_fd = fds[0];
	rc = start(argv, fds[1], STDOUT_FILENO, false, &pid, e);
	close(fds[1]);
	if (rc < 0)
		return rc;
	while ((n = read(read_fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && out->len < OUTPUT_MAX)
			strbuf_add(out, chunk, (size_t)n);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return 0;
}
