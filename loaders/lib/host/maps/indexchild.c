/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/maps/indexchild.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/host/maps/indexproto.h"
#include "loaders/lib/host/proc/openin.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/image/image.h"

#define ANSWERS_MAX 64

extern char **environ;

void indexchild_init(struct indexchild *c)
{
	*c = (struct indexchild){.sock = -1, .out = -1, .elf = -1, .root_fd = -1};
}

void indexchild_clear(struct indexchild *c)
{
	int fds[] = {c->sock, c->out, c->elf, c->root_fd};

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(c->path);
	free(c->debug_dir);
	indexchild_init(c);
}

/* ---- starting ---- */

static int to_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	return high < 0 ? -errno : high;
}

static int spawn(const char *program, const char *option, int sock, int elf, int out, pid_t *pid)
{
	char *argv[] = {(char *)"sonde-index", (char *)option, NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, sock, INDEX_FD_SOCKET);
	posix_spawn_file_actions_adddup2(&fa, elf, INDEX_FD_ELF);
	posix_spawn_file_actions_adddup2(&fa, out, INDEX_FD_OUT);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(pid, program, &fa, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

int indexchild_start(struct indexchild *c, const char *program, const char *option, int nice)
{
	cleanup_fd int theirs = -1, elf = -1, out = -1;
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	c->sock = pair[0];
	theirs = to_high(pair[1]);
	close(pair[1]);
	c->out = memfd_create("index", MFD_CLOEXEC);
	out = to_high(c->out);
	elf = to_high(c->elf);
	if (theirs < 0 || out < 0 || elf < 0)
		return -EMFILE;
	rc = spawn(program, option, theirs, elf, out, &c->pid);
	if (rc) {
		c->pid = 0;
		return rc;
	}
	setpriority(PRIO_PROCESS, (id_t)c->pid, nice);
	return 0;
}

/* ---- debug files ---- */

static int try_debug(struct indexchild *c, int root_fd, const char *path)
{
	struct stat st;
	int fd = root_fd < 0 ? -ENOENT : openin(root_fd, path, OPENIN_MAX_BYTES, &st);
	const char *slash;

	if (fd == -ETIMEDOUT)
		c->answers = ANSWERS_MAX; /* answer no more requests */

	if (fd >= 0 && c->have_st && st.st_ino == c->st.st_ino && st.st_dev == c->st.st_dev) {
		close(fd); /* the file itself */
		return -ENOENT;
	}
	if (fd >= 0 && (slash = strrchr(path, '/'))) {
		free(c->debug_dir);
		c->debug_dir = mem_strndup(path, (size_t)(slash - path));
	}
	return fd;
}

static int try_both(struct indexchild *c, int own, const char *path)
{
	int fd = try_debug(c, c->root_fd, path);

	return fd >= 0 ? fd : try_debug(c, own, path);
}

static int find_by_build_id(struct indexchild *c, int own, const struct index_msg *m)
{
	struct strbuf path = STRBUF_INIT;
	int fd;

	if (m->build_id_len < 2 || m->build_id_len > sizeof(m->build_id))
		return -EINVAL;
	strbuf_addf(&path, "/usr/lib/debug/.build-id/%02x/", m->build_id[0]);
	for (uint32_t i = 1; i < m->build_id_len; i++)
		strbuf_addf(&path, "%02x", m->build_id[i]);
	strbuf_addstr(&path, ".debug");
	fd = try_both(c, own, path.buf);
	strbuf_release(&path);
	return fd;
}

static int fetch(const struct indexchild *c, const struct index_msg *m)
{
	if (!c->fetch || m->build_id_len < 2 || m->build_id_len > sizeof(m->build_id))
		return -ENOENT;
	return c->fetch(c->fetch_ctx, m->build_id, m->build_id_len);
}

/* The n-th existing file of: next to the file, in .debug/, below /usr/lib/debug; each in the file's
 * root, then in ours. */
static int find_by_link(struct indexchild *c, int own, const char *name, uint32_t n)
{
	const char *slash = c->path ? strrchr(c->path, '/') : NULL;
	int dir_len = slash ? (int)(slash - c->path) : 0;
	char paths[3][4608];
	int roots[2] = {c->root_fd, own};

	if (!*name || strchr(name, '/') || !slash)
		return -EINVAL;
	snprintf(paths[0], sizeof(paths[0]), "%.*s/%s", dir_len, c->path, name);
	snprintf(paths[1], sizeof(paths[1]), "%.*s/.debug/%s", dir_len, c->path, name);
	snprintf(paths[2], sizeof(paths[2]), "/usr/lib/debug%.*s/%s", dir_len, c->path, name);
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < 3; i++) {
			int fd = try_debug(c, roots[r], paths[i]);

			if (fd < 0)
				continue;
			if (!n--)
				return fd;
			close(fd);
		}
	return -ENOENT;
}

static int find_alt(struct indexchild *c, int own, const struct index_msg *m)
{
	char path[8192];
	const char *slash = strrchr(m->name, '/');
	int fd = find_by_build_id(c, own, m);

	if (fd >= 0 || !*m->name)
		return fd;
	if (m->name[0] == '/')
		fd = try_both(c, own, m->name);
	else if (c->debug_dir &&
		 snprintf(path, sizeof(path), "%s/%s", c->debug_dir, m->name) < (int)sizeof(path))
		fd = try_both(c, own, path);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/usr/lib/debug/.dwz/%s", slash ? slash + 1 : m->name);
	return try_both(c, own, path);
}

static int find(struct indexchild *c, const struct index_msg *m)
{
	cleanup_fd int own = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (c->answers++ >= ANSWERS_MAX)
		return -ENOENT;
	if (m->type == INDEX_MSG_WANT_DEBUGLINK)
		return find_by_link(c, own, m->name, m->n);
	fd = m->type == INDEX_MSG_WANT_ALT ? find_alt(c, own, m) : find_by_build_id(c, own, m);
	return fd >= 0 ? fd : fetch(c, m);
}

static void answer(struct indexchild *c, const struct index_msg *m)
{
	cleanup_fd int fd = find(c, m);
	const struct index_msg reply = {.type = INDEX_MSG_FILE, .status = fd >= 0};

	(void)fdpass_send(c->sock, &reply, sizeof(reply), &fd, fd >= 0, MSG_DONTWAIT);
}

/* ---- hearing, and the end ---- */

bool indexchild_hear(struct indexchild *c)
{
	struct index_msg m;
	ssize_t n = recv(c->sock, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n != sizeof(m))
		return true;
	m.name[sizeof(m.name) - 1] = 0;
	if (m.type >= INDEX_MSG_WANT_BUILD_ID && m.type <= INDEX_MSG_WANT_ALT)
		answer(c, &m);
	if (m.type == INDEX_MSG_ROWS) {
		c->rows = true;
		snprintf(c->text, sizeof(c->text), "%s", m.name);
	}
	if (m.type != INDEX_MSG_DONE)
		return false;
	c->done = true;
	c->status = m.status;
	c->flags = m.n;
	snprintf(c->text, sizeof(c->text), "%s", m.name);
	return true;
}

bool indexchild_speaks(const struct indexchild *c)
{
	struct pollfd p = {.fd = c->sock, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

void indexchild_go(struct indexchild *c, bool lines)
{
	const struct index_msg m = {.type = INDEX_MSG_GO, .status = lines};

	c->rows = false;
	(void)!send(c->sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

uint64_t indexchild_cpu_ns(const struct indexchild *c)
{
	struct timespec ts = {0};
	clockid_t clock;

	if (c->ended)
		return c->cpu_ns;
	if (!c->pid || clock_getcpuclockid(c->pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t indexchild_cpu_more(struct indexchild *c)
{
	uint64_t now = indexchild_cpu_ns(c), more = now > c->counted_ns ? now - c->counted_ns : 0;

	c->counted_ns += more;
	return more;
}

uint64_t indexchild_pause(struct indexchild *c, bool stop)
{
	int64_t now = clock_boot_ns();
	uint64_t stood = c->stopped ? (uint64_t)(now - c->stopped_ns) : 0;

	if (!c->pid || c->ended)
		return 0;
	if (stop != c->stopped)
		kill(c->pid, stop ? SIGSTOP : SIGCONT);
	c->stopped = stop;
	c->stopped_ns = now;
	return stood;
}

static uint64_t time_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000000 + (uint64_t)tv->tv_usec * 1000;
}

enum indexchild_end indexchild_end(struct indexchild *c, bool late, char *reason, size_t size)
{
	struct rusage use = {0};
	int status = 0;

	kill(c->pid, SIGKILL); /* it has sent all that it may */
	wait4(c->pid, &status, 0, &use);
	c->ended = true;
	c->cpu_ns = time_ns(&use.ru_utime) + time_ns(&use.ru_stime);
	if (late) {
		snprintf(reason, size, "reading it took too long");
		return INDEXCHILD_REFUSED;
	}
	/* its own limits end it with other signals */
	if (!c->done && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		snprintf(reason, size,
			 "sonde-index was killed while reading it (is memory short?)");
		return INDEXCHILD_FAILED;
	}
	if (!c->done) {
		snprintf(reason, size,
			 WIFSIGNALED(status) ?
				 "sonde-index was ended by signal %d while reading it" :
				 "sonde-index ended with code %d while reading it",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		return INDEXCHILD_REFUSED;
	}
	if (!c->status)
		return INDEXCHILD_MADE;
	snprintf(reason, size, "%s", *c->text ? c->text : strerror(-c->status));
	return c->status == -ENOSPC || c->status == -ENOMEM || c->status == -EIO ?
		       INDEXCHILD_FAILED :
		       INDEXCHILD_REFUSED;
}

/* A copy: the child may still write. */
static int copy_out(const struct indexchild *c)
{
	cleanup_fd int fd = memfd_create("image-index", MFD_CLOEXEC);
	char buf[65536];
	off_t at = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = pread(c->out, buf, sizeof(buf), at)) > 0) {
		if (write(fd, buf, (size_t)n) != n)
			return -ENOSPC;
		at += n;
	}
	return take_fd(&fd);
}

int indexchild_take(const struct indexchild *c, int *out)
{
	cleanup_fd int fd = c->ended ? to_high(c->out) : copy_out(c);
	struct image *check = NULL;
	int rc;

	if (fd < 0)
		return fd;
	rc = image_open_fd(fd, &check, NULL);
	if (rc)
		return rc;
	image_close(check);
	*out = take_fd(&fd);
	return 0;
}
