/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/front.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/err.h"

static const int PASSED_ON[] = {SIGINT, SIGTERM, SIGHUP};

bool front_needed(void)
{
	return getsid(0) != getpid() && !access("/proc/self/autogroup", F_OK);
}

static void end_by(int sig)
{
	const struct rlimit none = {0, 0};
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
}

static int pass_on(pid_t child, const sigset_t *set)
{
	int status;

	while (waitpid(child, &status, WNOHANG) != child) {
		int sig = sigwaitinfo(set, NULL);

		if (sig > 0 && sig != SIGCHLD)
			kill(child, sig);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	end_by(WTERMSIG(status));
	return EXIT_RUNTIME;
}

int front_leave(void)
{
	const pid_t front = getpid();
	sigset_t set, before;
	pid_t child;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(PASSED_ON); i++)
		sigaddset(&set, PASSED_ON[i]);
	sigprocmask(SIG_BLOCK, &set, &before);
	child = fork();
	if (child > 0)
		return pass_on(child, &set);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != front)
			_exit(EXIT_RUNTIME);
		setsid();
		errno = 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return -1;
}
