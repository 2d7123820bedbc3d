/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/start/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

static void child(int go, int failed, char **argv) __attribute__((noreturn));
static void child(int go, int failed, char **argv)
{
	char byte;
	ssize_t n;

	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1) {
		execvp(argv[0], argv);
		n = write(failed, &errno, sizeof(errno));
	}
	_exit(127);
}

int command_start(struct command *c, char **argv, struct err *e)
{
	int go[2], failed[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		int err = -errno;

		close(go[0]);
		close(go[1]);
		return err_set(e, err, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(-err));
	}
	pid = fork();
	if (!pid) {
		close(go[1]);
		close(failed[0]);
		child(go[0], failed[1], argv);
	}
	close(go[0]);
	close(failed[1]);
	if (pid < 0) {
		int err = -errno;

		close(go[1]);
		close(failed[0]);
		return err_set(e, err, EXIT_RUNTIME, "cannot start %s: %s", argv[0],
			       strerror(-err));
	}
	*c = (struct command){.pid = pid, .go_fd = go[1], .failed_fd = failed[0]};
	return 0;
}

static void command_reap(struct command *c, int status)
{
	c->ended = true;
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int command_release(struct command *c, const char *name, struct err *e)
{
	int failed = 0, status;
	ssize_t n;

	n = write(c->go_fd, "g", 1);
	close(take_fd(&c->go_fd));
	if (n == 1)
		n = read(c->failed_fd, &failed, sizeof(failed)); /* ends with the exec */
	close(take_fd(&c->failed_fd));
	if (n == 0)
		return 0;
	if (waitpid(c->pid, &status, 0) == c->pid)
		command_reap(c, status);
	if (n < (ssize_t)sizeof(failed))
		failed = EIO;
	return err_set(e, -failed, EXIT_USAGE, "cannot run '%s': %s", name,
		       failed == ENOENT ? "no such program" : strerror(failed));
}

bool command_poll(struct command *c)
{
	int status;

	if (!c->pid || c->ended || waitpid(c->pid, &status, WNOHANG) != c->pid)
		return false;
	command_reap(c, status);
	return true;
}

void command_signal(const struct command *c, int sig)
{
	if (c->pid && !c->ended)
		kill(c->pid, sig);
}

void command_close(struct command *c)
{
	int status;
	bool unborn = c->go_fd >= 0;

	if (unborn)
		close(take_fd(&c->go_fd));
	if (c->failed_fd >= 0)
		close(take_fd(&c->failed_fd));
	if (unborn && c->pid && !c->ended && waitpid(c->pid, &status, 0) == c->pid)
		command_reap(c, status);
}
