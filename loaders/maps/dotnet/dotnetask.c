/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/dotnet/dotnetask.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/host/proc/proc.h"
#include "loaders/lib/host/talk/outlive.h"
#include "loaders/lib/sandbox/confine.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "loaders/maps/dotnet/dotnettalk.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define PROGRAMS_MAX 512
#define CHILDREN_MAX 8
#define CHILD_S      90 /* of one conversation */
#define OVERDUE_NS   ((CHILD_S + 10) * NSEC_PER_SEC)
#define WATCH_NS     (10 * NSEC_PER_SEC)
#define ENDING_NS    (60 * NSEC_PER_SEC)
#define CLOSE_NS     (5 * NSEC_PER_SEC) /* that sonde-maps waits for it */

struct dotnetask {
	int sock;
	pid_t pid;
};

struct ask {
	uint64_t start_ticks;
	uint32_t pid, pad;
};

struct heard {
	uint32_t pid;
	struct dotnet_told told;
};

/* ---- the helper ---- */

enum state { ASKED, WRITES, STOPPED };

struct program {
	struct dotnet_job job;
	enum state state;
	bool waits;     /* its job has not begun */
	bool ours_root; /* what it leaves can be removed */
	int from;       /* the child's report; -1: no child */
	int64_t begun_ns;
};

struct helper {
	int sock;
	bool ending;
	int64_t watch_ns, until_ns;
	unsigned int children, n;
	struct program all[PROGRAMS_MAX];
};

static bool runs(const struct program *p)
{
	struct proc_stat ps;

	return !proc_read_stat(p->job.pid, &ps) && ps.start_ticks == p->job.start_ticks;
}

static bool is_ours_root(uint32_t pid)
{
	char path[64];
	struct stat its, ours;

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	return !stat(path, &its) && !stat("/", &ours) && its.st_dev == ours.st_dev &&
	       its.st_ino == ours.st_ino;
}

static void job_begin(struct helper *h, struct program *p)
{
	struct dotnet_told told;
	int pair[2];
	pid_t child;

	p->waits = false;
	if (pipe2(pair, O_CLOEXEC))
		return;
	child = fork();
	if (!child) {
		alarm(CHILD_S);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dotnettalk_run(&p->job, &told);
		_exit(write(pair[1], &told, sizeof(told)) == sizeof(told) ? 0 : 1);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return;
	}
	p->from = pair[0];
	p->begun_ns = clock_boot_ns();
	h->children++;
}

static void ask_end(struct program *p, enum dotnet_op op)
{
	p->job.op = op;
	p->waits = true;
}

/* Was it told to begin, without an answer? Then it may begin yet. */
static bool may_begin(int rc)
{
	return rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECHILD;
}

/* The report of its child, or that it made none. `overdue`: it is not waited for any longer. */
static void job_take(struct helper *h, struct program *p, bool overdue)
{
	struct heard heard = {.pid = p->job.pid};

	if (overdue || read(p->from, &heard.told, sizeof(heard.told)) != sizeof(heard.told)) {
		heard.told = (struct dotnet_told){.rc = -ECHILD};
		snprintf(heard.told.why, sizeof(heard.told.why),
			 "the process that asked it was ended, or stopped, or broke");
	}
	close(p->from);
	p->from = -1;
	h->children--;
	if (p->job.op != DOTNET_BEGIN) {
		p->state = STOPPED;
		return;
	}
	p->state = heard.told.rc ? STOPPED : WRITES;
	p->job.its = heard.told.its;
	p->job.its.folder[DOTNETTALK_FOLDER - 1] = '\0';
	heard.told.why[DOTNETTALK_WHY - 1] = '\0';
	if (heard.told.rc != -ENOENT && heard.told.rc != -EALREADY && !h->ending)
		(void)send(h->sock, &heard, sizeof(heard), MSG_NOSIGNAL | MSG_DONTWAIT);
	if ((h->ending && p->state == WRITES) || may_begin(heard.told.rc))
		ask_end(p, DOTNET_END);
}

static void program_add(struct helper *h, const struct ask *a)
{
	struct program *p = NULL;

	for (unsigned int i = 0; i < h->n; i++)
		if (h->all[i].job.pid == a->pid && h->all[i].job.start_ticks == a->start_ticks)
			return;
	for (unsigned int i = 0; i < h->n && !p; i++)
		if (h->all[i].state == STOPPED && h->all[i].from < 0 && !h->all[i].waits &&
		    !runs(&h->all[i]))
			p = &h->all[i];
	if (!p && h->n == PROGRAMS_MAX)
		return;
	p = p ? p : &h->all[h->n++];
	*p = (struct program){.job = {.pid = a->pid, .start_ticks = a->start_ticks},
			      .waits = true,
			      .ours_root = is_ours_root(a->pid),
			      .from = -1};
}

static void ending(struct helper *h)
{
	h->ending = true;
	h->until_ns = clock_boot_ns() + ENDING_NS;
	for (unsigned int i = 0; i < h->n; i++) {
		struct program *p = &h->all[i];

		if (p->state == WRITES && p->from < 0)
			ask_end(p, DOTNET_END);
		else if (p->state == ASKED && p->from < 0)
			p->waits = false;
	}
}

static void asks_take(struct helper *h)
{
	struct ask a;
	ssize_t n;

	while ((n = recv(h->sock, &a, sizeof(a), MSG_DONTWAIT)) == sizeof(a))
		program_add(h, &a);
	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		ending(h);
}

/* Programs that have ended, files that grow too large, and children that do not end. */
static void watch(struct helper *h)
{
	for (unsigned int i = 0; i < h->n; i++) {
		struct program *p = &h->all[i];
		struct heard heard = {.pid = p->job.pid};

		if (p->from >= 0 && clock_boot_ns() > p->begun_ns + OVERDUE_NS)
			job_take(h, p, true);
		if (p->state != WRITES || p->from >= 0 || p->waits)
			continue;
		if (!runs(p)) {
			p->state = STOPPED;
			if (p->ours_root)
				ask_end(p, DOTNET_REMOVE);
			continue;
		}
		if (dotnettalk_size(p->job.pid, &p->job.its) <= DOTNETASK_FILE_MAX)
			continue;
		heard.told.rc = -EFBIG;
		snprintf(heard.told.why, sizeof(heard.told.why),
			 "its list of functions grew above %llu MiB, and was ended",
			 DOTNETASK_FILE_MAX >> 20);
		(void)send(h->sock, &heard, sizeof(heard), MSG_NOSIGNAL | MSG_DONTWAIT);
		ask_end(p, DOTNET_END);
	}
}

/* Begins what waits. Is anything left to be done? */
static bool jobs_begin(struct helper *h)
{
	bool any = false;

	for (unsigned int i = 0; i < h->n; i++) {
		struct program *p = &h->all[i];

		if (p->waits && p->from < 0 && h->children < CHILDREN_MAX) {
			if (p->job.op == DOTNET_END && !runs(p))
				p->job.op = p->ours_root ? DOTNET_REMOVE : DOTNET_END;
			job_begin(h, p);
		}
		any |= p->waits || p->from >= 0;
	}
	return any;
}

static void turn(struct helper *h)
{
	struct pollfd fds[CHILDREN_MAX + 1];
	struct program *of[CHILDREN_MAX + 1];
	nfds_t n = 0;

	if (!h->ending) {
		fds[n] = (struct pollfd){.fd = h->sock, .events = POLLIN};
		of[n++] = NULL;
	}
	for (unsigned int i = 0; i < h->n && n < ARRAY_SIZE(fds); i++)
		if (h->all[i].from >= 0) {
			fds[n] = (struct pollfd){.fd = h->all[i].from, .events = POLLIN};
			of[n++] = &h->all[i];
		}
	if (poll(fds, n, h->ending ? 100 : (int)(WATCH_NS / 1000000)) < 0)
		return;
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents && of[i])
			job_take(h, of[i], false);
		else if (fds[i].revents)
			asks_take(h);
}

static _Noreturn void serve(struct helper *h)
{
	for (;;) {
		const bool busy = jobs_begin(h);

		if (h->ending && (!busy || clock_boot_ns() > h->until_ns))
			_exit(0);
		turn(h);
		if (clock_boot_ns() >= h->watch_ns) {
			watch(h);
			h->watch_ns = clock_boot_ns() + WATCH_NS;
		}
	}
}

static _Noreturn void become(int sock)
{
	static struct helper h;

	outlive_begin("sonde-dotnet");
	if (sock != 3 && dup2(sock, 3) != 3)
		_exit(1);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	close_range(4, ~0u, 0);
	sandbox_powers_keep(1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SYS_PTRACE |
			    1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_SETPCAP);
	if (confine(CONFINE_USERS, NULL))
		_exit(1);
	h.sock = 3;
	serve(&h);
}

/* ---- sonde-maps' side ---- */

struct dotnetask *dotnetask_open(void)
{
	struct dotnetask *d;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return NULL;
	pid = fork();
	if (!pid)
		become(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return NULL;
	}
	d = mem_alloc(sizeof(*d));
	*d = (struct dotnetask){.sock = pair[0], .pid = pid};
	return d;
}

void dotnetask_want(struct dotnetask *d, uint32_t pid, uint64_t start_ticks)
{
	const struct ask a = {.pid = pid, .start_ticks = start_ticks};

	if (d)
		(void)send(d->sock, &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void dotnetask_tick(struct dotnetask *d)
{
	struct heard heard;

	while (d && recv(d->sock, &heard, sizeof(heard), MSG_DONTWAIT) == sizeof(heard))
		if (heard.told.rc)
			log_warn("process %u: .NET's functions have no names: %s", heard.pid,
				 heard.told.why);
		else
			log_info(
				"process %u writes the names of .NET's functions while sonde records",
				heard.pid);
}

void dotnetask_close(struct dotnetask *d)
{
	int64_t until = clock_boot_ns() + CLOSE_NS;

	if (!d)
		return;
	dotnetask_tick(d);
	close(d->sock);
	while (!waitpid(d->pid, NULL, WNOHANG) && clock_boot_ns() < until)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	free(d);
}
