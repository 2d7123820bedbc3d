/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jhelper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loaders/java/jtalk.h"
#include "loaders/java/onrecord.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/lib/host/talk/outlive.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/mem.h"

#define CHILD_S  200 /* of one command: it waits a minute for each answer */
#define WAIT_MS  500
#define PATH_LEN 64

/* 1; 0: none now; -EPIPE: no more will come. */
static int packet_take(int sock, void *data, size_t size, int *fd)
{
	const ssize_t n = fdpass_take(sock, data, size, fd, 1, MSG_DONTWAIT);

	return n == -EAGAIN ? 0 : n == (ssize_t)size ? 1 : -EPIPE;
}

static int packet_send(int sock, const void *data, size_t size, int fd)
{
	return fdpass_send(sock, data, size, &fd, fd >= 0, MSG_DONTWAIT);
}

/* ---- the helper ---- */

struct machine {              /* that records, or that a child talks to */
	struct jtalk_job job; /* at work, or the last one */
	struct jhelper_ask next;
	bool has_next;
	uint32_t recording, major, nspid, uid;
	bool ours_root; /* its root is ours: what it leaves in /tmp can be removed */
	int kept;       /* onrecord */
	int from;       /* the child's report; -1: no child */
	struct machine *after;
};

struct helper {
	int sock, dirfd;
	bool ending, tls;
	struct machine *all;
};

static struct machine *machine_find(struct helper *h, uint32_t pid, uint64_t start)
{
	struct machine *m = h->all;

	while (m && (m->job.ask.pid != pid || m->job.ask.start_ticks != start))
		m = m->after;
	return m;
}

static void machine_drop(struct helper *h, struct machine *m)
{
	struct machine **at = &h->all;

	while (*at && *at != m)
		at = &(*at)->after;
	if (*at)
		*at = m->after;
	if (m->kept >= 0)
		onrecord_drop(h->dirfd, m->job.ask.pid, m->job.ask.start_ticks, m->kept);
	free(m);
}

static bool runs(const struct machine *m)
{
	struct proc_stat ps;

	return !proc_read_stat(m->job.ask.pid, &ps) && ps.start_ticks == m->job.ask.start_ticks;
}

/* Can be read only while it lives. */
static void place_note(struct machine *m)
{
	char path[PATH_LEN];
	struct stat its, ours;
	cleanup_free char *text = NULL;
	struct proc_status st;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%u/root", m->job.ask.pid);
	m->ours_root = !stat(path, &its) && !stat("/", &ours) && its.st_dev == ours.st_dev &&
		       its.st_ino == ours.st_ino;
	if (!proc_read(m->job.ask.pid, "status", 65536, &text, &len) &&
	    !proc_parse_status(text, len, &st)) {
		m->nspid = st.nspid;
		m->uid = st.euid;
	}
}

/* The empty folder that its recorder leaves, and its dead socket. */
static void left_remove(const struct machine *m)
{
	cleanup_fd int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = NULL;
	const struct dirent *at;
	char name[64], end[24];
	struct stat st;

	if (tmp < 0 || !m->ours_root || !m->nspid || runs(m))
		return;
	snprintf(name, sizeof(name), ".java_pid%u", m->nspid);
	if (!fstatat(tmp, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
	    st.st_uid == m->uid)
		(void)unlinkat(tmp, name, 0);
	snprintf(end, sizeof(end), "_%u", m->nspid);
	d = fdopendir(take_fd(&tmp));
	while (d && (at = readdir(d))) {
		const size_t n = strlen(at->d_name), k = strlen(end);

		/* YYYY_MM_DD_hh_mm_ss_PID */
		if (n == 19 + k && strspn(at->d_name, "0123456789_") == n &&
		    !strcmp(at->d_name + 19, end) &&
		    !fstatat(dirfd(d), at->d_name, &st, AT_SYMLINK_NOFOLLOW) && st.st_uid == m->uid)
			(void)unlinkat(dirfd(d), at->d_name, AT_REMOVEDIR);
	}
}

/* ---- children ---- */

static void child(const struct machine *m, int to)
{
	struct jhelper_told told;
	int fd;

	prctl(PR_SET_NAME, "sonde-jattach");
	alarm(CHILD_S);
	jtalk(&m->job, &told, &fd);
	_exit(packet_send(to, &told, sizeof(told), fd) ? 1 : 0);
}

static void tell_failed(struct helper *h, const struct jhelper_ask *ask, int rc, const char *why)
{
	struct jhelper_told told = {
		.what = ask->what, .pid = ask->pid, .start_ticks = ask->start_ticks, .status = rc};

	snprintf(told.why, sizeof(told.why), "%s", why);
	if (!h->ending)
		(void)packet_send(h->sock, &told, sizeof(told), -1);
}

static bool child_start(struct helper *h, struct machine *m, const struct jhelper_ask *ask)
{
	int pair[2];
	pid_t pid;

	m->job.ask = *ask;
	m->job.recording = m->recording;
	m->job.major = m->major;
	m->job.kept = m->kept;
	m->job.tls = h->tls;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	pid = fork();
	if (!pid) {
		close(h->sock);
		child(m, pair[1]);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return false;
	}
	m->from = pair[0];
	return true;
}

static void job_begin(struct helper *h, struct machine *m, const struct jhelper_ask *ask)
{
	if (child_start(h, m, ask))
		return;
	tell_failed(h, ask, -EAGAIN, "cannot start a process to attach to it");
	if (!m->recording)
		machine_drop(h, m);
}

static void forget(struct helper *h, struct machine *m)
{
	left_remove(m);
	machine_drop(h, m);
}

/* The child has told, or has died: what now holds of the machine. */
static void job_done(struct helper *h, struct machine *m, struct jhelper_told *told, int fd)
{
	const bool started = told->what == JHELPER_START && !told->status;

	if (!h->ending)
		(void)packet_send(h->sock, told, sizeof(*told), fd);
	if (started) {
		m->recording = told->recording;
		m->major = told->major;
	}
	m->job.left = told->status && told->status != -EEXIST && told->what == JHELPER_START &&
		      runs(m) && onrecord_begun(m->kept);
	if (m->job.left) { /* it failed when the recording may have begun: no answer in time */
		struct jhelper_ask stop = m->job.ask;

		stop.what = JHELPER_STOP;
		job_begin(h, m, &stop);
		return;
	}
	if (told->what == JHELPER_STOP || (told->what == JHELPER_START && !started)) {
		/* one that does not stop stays on record, for the next helper */
		if (told->what == JHELPER_STOP && told->status && runs(m) && m->kept >= 0)
			close(take_fd(&m->kept));
		m->recording = 0;
	}
	if (m->has_next) {
		const struct jhelper_ask next = m->next;

		m->has_next = false;
		if (next.what == JHELPER_START || m->recording) {
			job_begin(h, m, &next);
			return;
		}
		/* nothing of ours: a recording named sonde that runs there is another one's */
		tell_failed(h, &next, 0, "");
		forget(h, m);
	} else if (!m->recording || !runs(m)) {
		forget(h, m);
	} else if (h->ending) {
		struct jhelper_ask stop = m->job.ask;

		stop.what = JHELPER_STOP;
		job_begin(h, m, &stop);
	}
}

static void child_take(struct helper *h, struct machine *m)
{
	struct jhelper_told told;
	int fd, rc = packet_take(m->from, &told, sizeof(told), &fd);

	if (!rc)
		return;
	if (rc < 0) {
		told = (struct jhelper_told){.what = m->job.ask.what,
					     .pid = m->job.ask.pid,
					     .start_ticks = m->job.ask.start_ticks,
					     .status = -ECHILD};
		snprintf(told.why, sizeof(told.why), "the process that attached to it ended");
	}
	close(m->from);
	m->from = -1;
	job_done(h, m, &told, fd);
	if (fd >= 0)
		close(fd);
}

/* ---- what the loader asks ---- */

static struct machine *machine_add(struct helper *h, const struct jhelper_ask *ask)
{
	struct machine *m = mem_alloc(sizeof(*m));

	*m = (struct machine){.job.ask = *ask, .kept = -1, .from = -1, .after = h->all};
	h->all = m;
	place_note(m);
	return m;
}

static void machine_start(struct helper *h, const struct jhelper_ask *ask)
{
	struct machine *m = machine_add(h, ask);

	m->kept = onrecord_keep(h->dirfd, ask->pid, ask->start_ticks, &m->job.left);
	if (m->kept < 0) {
		tell_failed(h, ask, m->kept,
			    m->kept == -EBUSY ? "another sonde records it" :
						"cannot note that it is recorded");
		m->kept = -1;
		machine_drop(h, m);
		return;
	}
	job_begin(h, m, ask);
}

static void asked(struct helper *h, const struct jhelper_ask *ask)
{
	struct machine *m = machine_find(h, ask->pid, ask->start_ticks);

	if (m && m->from >= 0) {
		m->next = *ask;
		m->has_next = ask->what != JHELPER_FORGET;
	} else if (m && ask->what == JHELPER_FORGET) {
		forget(h, m);
	} else if (m) {
		job_begin(h, m, ask);
	} else if (ask->what == JHELPER_START) {
		machine_start(h, ask);
	} else if (ask->what != JHELPER_FORGET) {
		tell_failed(h, ask, -ENOENT, "it is not recorded");
	}
}

/* A killed helper's recording. */
static void left_stop(void *ctx, uint32_t pid, uint64_t start)
{
	struct helper *h = ctx;
	const struct jhelper_ask ask = {.what = JHELPER_STOP, .pid = pid, .start_ticks = start};
	struct machine *m = machine_add(h, &ask);

	m->kept = onrecord_keep(h->dirfd, pid, start, &m->job.left);
	if (m->kept < 0 || !m->job.left || !runs(m)) {
		m->kept = m->kept < 0 ? -1 : m->kept;
		forget(h, m);
		return;
	}
	job_begin(h, m, &ask);
}

/* The loader is gone: all that records is stopped. */
static void ending(struct helper *h)
{
	struct machine *next;

	h->ending = true;
	close(h->sock);
	h->sock = -1;
	for (struct machine *m = h->all; m; m = next) {
		struct jhelper_ask stop = m->job.ask;

		next = m->after;
		stop.what = JHELPER_STOP;
		m->has_next = false;
		if (m->from < 0)
			job_begin(h, m, &stop);
	}
}

/* Those for which no child could be started. */
static void end_again(struct helper *h)
{
	struct machine *next;

	for (struct machine *m = h->all; m; m = next) {
		struct jhelper_ask stop = m->job.ask;

		next = m->after;
		stop.what = JHELPER_STOP;
		if (m->from >= 0)
			continue;
		if (runs(m))
			job_begin(h, m, &stop);
		else
			forget(h, m);
	}
}

#define MACHINES_MAX 256

static void turn(struct helper *h)
{
	struct pollfd fds[MACHINES_MAX + 1] = {{.fd = h->sock, .events = POLLIN}};
	struct machine *of[MACHINES_MAX + 1], *m = h->all;
	struct jhelper_ask ask;
	nfds_t n = 1;
	int fd, rc;

	for (; m && n <= MACHINES_MAX; m = m->after)
		if (m->from >= 0) {
			of[n] = m;
			fds[n++] = (struct pollfd){.fd = m->from, .events = POLLIN};
		}
	if (poll(fds, n, WAIT_MS) <= 0)
		return;
	/* a machine that is dropped is only ever the one whose child told */
	for (nfds_t i = 1; i < n; i++)
		if (fds[i].revents)
			child_take(h, of[i]);
	if (h->ending || !fds[0].revents)
		return;
	while ((rc = packet_take(h->sock, &ask, sizeof(ask), &fd)) > 0) {
		if (fd >= 0)
			close(fd);
		asked(h, &ask);
	}
	if (rc < 0)
		ending(h);
}

static _Noreturn void become(int sock, int dirfd, bool tls)
{
	struct helper h = {.sock = 3, .dirfd = 4, .tls = tls};

	outlive_begin("sonde-jvm");
	sock = fcntl(sock, F_DUPFD, 32);
	dirfd = fcntl(dirfd, F_DUPFD, 32);
	if (dup2(sock, 3) != 3 || dup2(dirfd, 4) != 4)
		_exit(1);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	fcntl(4, F_SETFD, FD_CLOEXEC);
	close_range(5, ~0u, 0);
	sandbox_powers_keep(1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SYS_PTRACE |
			    1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_DAC_OVERRIDE |
			    1ull << CAP_FOWNER | 1ull << CAP_SETPCAP);
	onrecord_each_left(h.dirfd, left_stop, &h);
	while (!h.ending || h.all) {
		turn(&h);
		if (h.ending)
			end_again(&h);
	}
	_exit(0);
}

/* ---- the loader's side ---- */

int jhelper_open(struct jhelper *h, const char *dir, bool tls, struct err *e)
{
	cleanup_fd int dirfd = -1;
	int pair[2], rc = onrecord_open(dir, &dirfd, e);

	*h = (struct jhelper){.fd = -1};
	if (rc)
		return rc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a socket: %s",
			       strerror(errno));
	h->pid = fork();
	if (!h->pid)
		become(pair[1], dirfd, tls);
	close(pair[1]);
	if (h->pid < 0) {
		close(pair[0]);
		return err_set(e, -errno, EXIT_RUNTIME, "cannot start a process: %s",
			       strerror(errno));
	}
	h->fd = pair[0];
	return 0;
}

int jhelper_send(const struct jhelper *h, const struct jhelper_ask *ask)
{
	return h->fd < 0 ? -EPIPE : packet_send(h->fd, ask, sizeof(*ask), -1);
}

int jhelper_take(const struct jhelper *h, struct jhelper_told *told, int *fd)
{
	int rc;

	*fd = -1;
	if (h->fd < 0)
		return -EPIPE;
	rc = packet_take(h->fd, told, sizeof(*told), fd);
	if (rc > 0) {
		told->why[sizeof(told->why) - 1] = '\0';
		told->version[sizeof(told->version) - 1] = '\0';
	}
	return rc;
}

uint64_t jhelper_cpu_ns(const struct jhelper *h)
{
	struct proc_stat ps;

	return h->pid > 0 && !proc_read_stat((uint32_t)h->pid, &ps) ?
		       proc_ticks_ns(ps.utime + ps.stime) :
		       0;
}

void jhelper_close(struct jhelper *h)
{
	if (h->fd >= 0)
		close(h->fd);
	*h = (struct jhelper){.fd = -1};
}
