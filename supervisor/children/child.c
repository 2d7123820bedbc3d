/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

#define FDS_MAX    16
#define FIRST_FREE 64 /* descriptors are moved here first, out of the way of those they become */

uint64_t child_start_ticks(pid_t pid)
{
	char path[64], text[1024];
	cleanup_file FILE *f = NULL;
	unsigned long long ticks;
	const char *at;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name may hold anything; what follows it is: state, 18 more,
				    the start */
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %llu", &ticks) == 1 ? ticks : 0;
}

/* What follows runs between fork and exec. */

static void drop_rights(uint64_t caps)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (caps & 1ull << cap)
			continue;
		prctl(PR_CAPBSET_DROP, cap, 0, 0,
		      0); /* root's; refused to others, who have theirs as ambient ones: */
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, cap, 0, 0);
	}
}

static void set_limits(const struct child_opts *o)
{
	struct rlimit none = {0, 0}, memory;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	setrlimit(RLIMIT_CORE, &none);
	if (o->memory_bytes && !getrlimit(RLIMIT_DATA, &memory) &&
	    o->memory_bytes < memory.rlim_max) {
		memory.rlim_cur = o->memory_bytes;
		setrlimit(RLIMIT_DATA,
			  &memory); /* maps of BPF are shared memory: they are not in it */
	}
	if (fd >= 0 && write(fd, "500", 3) < 0)
		return; /* it runs without */
}

static void place_fds(const struct child_opts *o)
{
	int high[FDS_MAX];

	for (size_t i = 0; i < o->n_fds && i < FDS_MAX; i++)
		high[i] = fcntl(o->fds[i].from, F_DUPFD_CLOEXEC, FIRST_FREE);
	for (size_t i = 0; i < o->n_fds && i < FDS_MAX; i++)
		dup2(high[i], o->fds[i].to);
}

static void become(const struct child_opts *o, pid_t parent, int told)
{
	sigset_t none;
	int code;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	setpgid(0, 0); /* a terminal's Ctrl-C is for us, who end them in order */
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	place_fds(o);
	set_limits(o);
	drop_rights(o->caps);
	execv(o->argv[0], o->argv);
	code = errno;
	if (write(told, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

int child_start(const struct child_opts *o, pid_t *pid, struct err *e)
{
	pid_t parent = getpid(), child;
	cleanup_fd int read_end = -1;
	int fds[2], code = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	read_end = fds[0];
	child = fork();
	if (child == 0)
		become(o, parent, fcntl(fds[1], F_DUPFD_CLOEXEC, FIRST_FREE + FDS_MAX));
	close(fds[1]);
	if (child < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot start %s: %s", o->argv[0],
			       strerror(errno));
	while (read(read_end, &code, sizeof(code)) < 0 && errno == EINTR)
		;
	*pid = child; /* to be waited for in any case */
	if (code)
		return err_set(e, -code, EXIT_PREREQUISITE, "cannot start %s: %s", o->argv[0],
			       strerror(code));
	return 0;
}
