/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-pprof: requests the profiles of net/http/pprof from Go programs, for sonde-scrape (wire.h),
 * which may read any process and so has no network. Requests come on standard input, a socket; a
 * child makes each (ask.h), and gives up every right before it reads the first byte of the answer.
 * It ends at the end of standard input.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/scrape/ask.h"
#include "schema/base/cli/options.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/log.h"

#define CHILDREN_MAX  64 /* at a time */
#define TIMEOUT_MAX_S 600

static const struct program PPROF = {
	.name = "sonde-pprof",
	.usage = "[options]",
	.about = "Part of sonde-scrape: requests /debug/pprof from Go programs of this host.",
};

struct questions {
	int children;
	int fds[2]; /* of the question at hand; -1: none */
};

static void fds_close(struct questions *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->fds[i] >= 0)
			close(s->fds[i]);
		s->fds[i] = -1;
	}
}

/* 1: a request; 0: an invalid one; -1: the end. */
static int receive(struct questions *s, struct wire_question *q)
{
	const ssize_t n = fdpass_take(STDIN_FILENO, q, sizeof(*q), s->fds, 2, 0);

	if (n <= 0 && n != -EMSGSIZE)
		return -1;
	return n == sizeof(*q) && s->fds[0] >= 0 && q->ask < WIRE_ASKS &&
	       q->timeout_s - 1 < TIMEOUT_MAX_S;
}

static void reap(struct questions *s, int how)
{
	while (s->children && waitpid(-1, NULL, how) > 0) {
		s->children--;
		how = WNOHANG;
	}
}

static void ask(struct questions *s, const struct wire_question *q)
{
	pid_t pid;

	reap(s, s->children < CHILDREN_MAX ? WNOHANG : 0);
	pid = fork();
	if (!pid) {
		signal(SIGCHLD, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ask_child(q, s->fds[0], s->fds[1]);
	}
	s->children += pid > 0; /* else the answer just ends */
}

static void on_child(int sig)
{
	(void)sig; /* recvmsg is interrupted: the dead are counted */
}

static int serve(void)
{
	struct questions s = {.fds = {-1, -1}};
	const struct sigaction child = {.sa_handler = on_child};
	struct wire_question q;
	int got;

	sigaction(SIGCHLD, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
	while ((got = receive(&s, &q)) >= 0) {
		if (got)
			ask(&s, &q);
		fds_close(&s);
		reap(&s, WNOHANG);
	}
	return EXIT_OK;
}

static int is_asked(void)
{
	socklen_t size = sizeof(int);
	int type = 0;

	return !getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) &&
	       type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
	const struct option_set none = {0};
	struct err e = {0};
	int rc = program_options(&PPROF, argc, argv, &none, 1, NULL, &e);

	if (rc)
		return program_end(PPROF.name, rc, &e);
	log_init(PPROF.name, LOG_LEVEL_WARN);
	if (is_asked())
		return serve();
	err_set(&e, -EINVAL, EXIT_USAGE, "standard input is not a socket of sonde-scrape");
	err_fix(&e, "sudo sonde record --families scrape -d 30s");
	return err_report(&e, PPROF.name);
}
