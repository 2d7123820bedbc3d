/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/talk/outlive.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

void outlive_begin(const char *name)
{
	struct rlimit none = {0, 0};
	sigset_t signals;
	int null;

	setsid(); /* not the terminal's Ctrl-C */
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, 0);
	sigemptyset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	setrlimit(RLIMIT_CORE, &none);
	/* who reads the parent's output is not kept waiting */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		(void)dup2(null, fd);
}
