/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/cli/escapes.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "tools/print/term.h"

#define MOST_WORDS  16
#define SHELL_SIGNS "|&;<>()$`\\\"'*?[#~=%\t\n"

extern char **environ;

static bool forbidden;
static pid_t pager;
static int terminal[2] = {-1, -1}; /* what stdout and stderr were; -1: still are */

void pager_forbid(void)
{
	forbidden = true;
}

/* NULL: none is wanted. */
static const char *wanted(void)
{
	const char *program = getenv("SONDE_PAGER");

	program = program ? program : getenv("PAGER");
	program = program ? program : "less -FRX";
	if (forbidden || pager || !escapes_on(STDOUT_FILENO))
		return NULL;
	return *program && strcmp(program, "cat") ? program : NULL;
}

/* Its process, reading from `from`; 0: it is not there. */
static pid_t run(const char *program, int from)
{
	cleanup_free char *words = mem_strdup(program);
	char *argv[MOST_WORDS + 1] = {NULL}, *rest = NULL;
	posix_spawn_file_actions_t actions;
	pid_t pid = 0;
	size_t n = 0;
	int error;

	for (char *w = strtok_r(words, " ", &rest); w && n < MOST_WORDS;
	     w = strtok_r(NULL, " ", &rest))
		argv[n++] = w;
	if (strpbrk(program, SHELL_SIGNS)) {
		argv[0] = (char *)"sh";
		argv[1] = (char *)"-c";
		argv[2] = (char *)program;
		argv[3] = NULL;
	}
	if (!argv[0])
		return 0;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error ? 0 : pid;
}

/* The reader has gone, or Ctrl-C: only what is safe in a handler. */
static void on_signal(int sig)
{
	close(STDOUT_FILENO);
	if (terminal[1] >= 0)
		close(STDERR_FILENO);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	_exit(sig == SIGPIPE ? EXIT_OK : EXIT_INTERRUPTED);
}

static void replace(int fd, int by, int *was)
{
	*was = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	dup2(by, fd);
}

void pager_start(void)
{
	const char *program = wanted();
	int ends[2];

	if (pager || !program || pipe2(ends, O_CLOEXEC))
		return;
	setenv("LESS", "FRX", 0);
	pager = run(program, ends[0]);
	close(ends[0]);
	if (pager) {
		term_keep(stdout);
		signal(SIGPIPE, on_signal);
		signal(SIGINT, on_signal);
		setvbuf(stdout, NULL, _IOLBF, 0); /* in order with stderr */
		replace(STDOUT_FILENO, ends[1], &terminal[0]);
		if (isatty(STDERR_FILENO))
			replace(STDERR_FILENO, ends[1], &terminal[1]);
	}
	close(ends[1]);
}

int pager_terminal(void)
{
	return terminal[1] >= 0 ? terminal[1] : STDERR_FILENO;
}

void pager_end(void)
{
	if (!pager)
		return;
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		if (terminal[i] >= 0) {
			dup2(terminal[i], i ? STDERR_FILENO : STDOUT_FILENO);
			close(terminal[i]);
			terminal[i] = -1;
		}
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}
