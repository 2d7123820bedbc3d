/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/fillers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"

#define DEPTH       40
#define IOPRIO_IDLE (3 << 13)
#define STAT_FLAGS  (AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT)
#define STAT_WANTS  (STATX_TYPE | STATX_NLINK | STATX_MTIME | STATX_INO | STATX_BLOCKS)

/* ---- the child ---- */

struct raw_entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

struct level {
	int fd;
	size_t path_len; /* of the folder itself */
	uint64_t bytes;  /* of files right in it that were written to lately */
	ssize_t n, at;
	_Alignas(8) char buf[4096];
};

struct looking {
	struct fillers_found *out;
	struct level level[DEPTH];
	char path[PATH_MAX];
	uint32_t major, minor;
	int64_t until_ns, since_s;
};

static void one_put(struct fillers_one *list, uint32_t *n, uint64_t bytes, const char *path,
		    size_t len)
{
	uint32_t i = *n;
	const char *from = path;

	while (i && list[i - 1].bytes < bytes)
		i--;
	if (i == FILLERS_TOLD || bytes < FILLERS_LEAST)
		return;
	if (*n < FILLERS_TOLD)
		++*n;
	memmove(&list[i + 1], &list[i], (*n - i - 1) * sizeof(*list));
	if (len >= sizeof(list[i].path)) {
		from += len - (sizeof(list[i].path) - 1);
		len = sizeof(list[i].path) - 1;
	}
	list[i] = (struct fillers_one){.bytes = bytes};
	memcpy(list[i].path, from, len);
}

static bool on_it(const struct looking *l, const struct statx *st)
{
	return st->stx_dev_major == l->major && st->stx_dev_minor == l->minor;
}

static bool spent(struct looking *l)
{
	bool over = l->out->seen >= FILLERS_ENTRIES || clock_mono_ns() > l->until_ns;

	if (over)
		l->out->whole = false;
	return over;
}

static int begin(struct looking *l, int depth, int fd, size_t path_len)
{
	l->level[depth].fd = fd;
	l->level[depth].path_len = path_len;
	l->level[depth].bytes = 0;
	l->level[depth].n = l->level[depth].at = 0;
	return depth;
}

/* One name of the folder. The depth at which to go on. */
static int entry(struct looking *l, int depth, const char *name)
{
	struct level *v = &l->level[depth];
	size_t n = strlen(name), len = v->path_len + 1 + n;
	struct statx st;
	uint64_t bytes;
	int fd;

	l->out->seen++;
	if (len >= sizeof(l->path) ||
	    statx(v->fd, name, STAT_FLAGS | AT_SYMLINK_NOFOLLOW, STAT_WANTS, &st) || !on_it(l, &st))
		return depth;
	l->path[v->path_len] = '/';
	memcpy(l->path + v->path_len + 1, name, n + 1);
	if (S_ISDIR(st.stx_mode)) {
		if (depth + 1 == DEPTH) {
			l->out->whole = false;
			return depth;
		}
		fd = openat(v->fd, name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
		return fd < 0 ? depth : begin(l, depth + 1, fd, len);
	}
	if (!S_ISREG(st.stx_mode) || st.stx_mtime.tv_sec < l->since_s)
		return depth;
	bytes = st.stx_blocks * 512;
	v->bytes += bytes;
	one_put(l->out->files, &l->out->n_files, bytes, l->path, len);
	return depth;
}

/* Leaves the folder: what was written right in it. */
static int leave(struct looking *l, int depth)
{
	struct level *v = &l->level[depth];

	close(v->fd);
	l->path[v->path_len] = '\0';
	one_put(l->out->folders, &l->out->n_folders, v->bytes, v->path_len ? l->path : "/",
		v->path_len ? v->path_len : 1);
	return depth - 1;
}

static void walk(struct looking *l, int root)
{
	int depth = begin(l, 0, root, 0);

	while (depth >= 0) {
		struct level *v = &l->level[depth];
		const struct raw_entry *d;

		if (v->at >= v->n) {
			v->n = spent(l) ? 0 :
					  syscall(SYS_getdents64, v->fd, v->buf, sizeof(v->buf));
			v->at = 0;
		}
		if (v->n <= 0) {
			depth = leave(l, depth);
			continue;
		}
		d = (const struct raw_entry *)(v->buf + v->at);
		v->at += d->len;
		if (strcmp(d->name, ".") && strcmp(d->name, ".."))
			depth = entry(l, depth, d->name);
	}
}

static bool is_listed(const struct fillers_found *f, uint64_t ino)
{
	for (uint32_t i = 0; i < f->n_deleted; i++)
		if (f->deleted[i].ino == ino)
			return true;
	return false;
}

static void open_file(struct looking *l, int fds, const char *name, uint32_t pid)
{
	static const char deleted[] = " (deleted)";
	struct fillers_found *out = l->out;
	char path[PATH_MAX];
	struct statx st;
	ssize_t n;

	l->out->seen++;
	if (statx(fds, name, STAT_FLAGS, STAT_WANTS, &st) || !S_ISREG(st.stx_mode) ||
	    st.stx_nlink || !on_it(l, &st) || is_listed(out, st.stx_ino))
		return;
	n = readlinkat(fds, name, path, sizeof(path) - 1);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(deleted) &&
	    !memcmp(path + n - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
		n -= sizeof(deleted) - 1;
	one_put(out->deleted, &out->n_deleted, st.stx_blocks * 512, path, (size_t)n);
	for (uint32_t i = 0; i < out->n_deleted; i++)
		if (!out->deleted[i].pid) {
			out->deleted[i].pid = pid;
			out->deleted[i].ino = st.stx_ino;
		}
}

static uint32_t number(const char *s)
{
	uint32_t n = 0;

	for (; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (uint32_t)(*s - '0');
	return *s ? 0 : n;
}

/* Each name of an open folder that is a number. */
static void numbers(struct looking *l, int dir, struct level *v, uint32_t pid,
		    void (*each)(struct looking *l, int dir, const char *name, uint32_t pid))
{
	while (!spent(l) && (v->n = syscall(SYS_getdents64, dir, v->buf, sizeof(v->buf))) > 0)
		for (v->at = 0; v->at < v->n;) {
			const struct raw_entry *d = (const struct raw_entry *)(v->buf + v->at);

			v->at += d->len;
			if (d->name[0] >= '0' && d->name[0] <= '9')
				each(l, dir, d->name, pid);
		}
}

static void process(struct looking *l, int proc, const char *name, uint32_t pid)
{
	char path[40];
	int fds;

	(void)pid;
	if (!number(name) || strlen(name) > 20)
		return;
	memcpy(path, name, strlen(name));
	memcpy(path + strlen(name), "/fd", 4);
	fds = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fds < 0)
		return;
	numbers(l, fds, &l->level[1], number(name), open_file);
	close(fds);
}

void fillers_look(const char *root, const char *proc, int64_t now_s, struct fillers_found *out)
{
	static struct looking l;
	int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), procs;
	struct statx st;

	memset(&l, 0, sizeof(l));
	memset(out, 0, sizeof(*out));
	l.out = out;
	l.since_s = now_s - FILLERS_LATELY_S;
	if (dir < 0 || statx(dir, "", STAT_FLAGS | AT_EMPTY_PATH, STATX_TYPE, &st)) {
		if (dir >= 0)
			close(dir);
		return;
	}
	out->whole = true;
	l.major = st.stx_dev_major;
	l.minor = st.stx_dev_minor;
	l.until_ns = clock_mono_ns() + FILLERS_WALK_NS / 2;
	procs = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (procs >= 0) {
		numbers(&l, procs, &l.level[0], 0, process);
		close(procs);
	}
	out->seen = 0;
	l.until_ns = clock_mono_ns() + FILLERS_WALK_NS / 2;
	walk(&l, dir);
}

static void child_main(int fd, const char *root, int64_t now_s)
{
	static struct fillers_found found;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpriority(PRIO_PROCESS, 0, 19);
	(void)syscall(SYS_ioprio_set, 1, 0, IOPRIO_IDLE);
	syscall(SYS_close_range, 0, (unsigned int)fd - 1, 0);
	syscall(SYS_close_range, (unsigned int)fd + 1, ~0u, 0);
	fillers_look(root, "/proc", now_s, &found);
	(void)send(fd, &found, sizeof(found), MSG_NOSIGNAL);
	_exit(0);
}

/* ---- when ---- */

bool fillers_due(const struct fillers_of *of, uint64_t size, uint64_t available, int64_t now_ns)
{
	uint64_t fell = of->known && of->available > available ? of->available - available : 0;

	if (of->looked_ns && now_ns - of->looked_ns < FILLERS_EVERY_NS)
		return false;
	return available < size / 5 || fell >= size / 10 || fell >= FILLERS_FELL;
}

void fillers_init(struct fillers *f)
{
	*f = (struct fillers){.fd = -1};
}

static void child_end(struct fillers *f)
{
	if (!f->child)
		return;
	kill(f->child, SIGKILL);
	close(f->fd);
	f->ending = f->child;
	free(f->point);
	f->point = NULL;
	f->child = 0;
}

void fillers_release(struct fillers *f)
{
	child_end(f);
}

static bool child_start(struct fillers *f, const char *point)
{
	struct strbuf path cleanup_strbuf = STRBUF_INIT;
	int fds[2];

	if (f->ending && waitpid(f->ending, NULL, WNOHANG) == 0)
		return false; /* the kernel holds it, and may hold another one */
	f->ending = 0;
	strbuf_addf(&path, "/proc/1/root%s", point);
	if (access("/proc/1/root/", F_OK)) {
		strbuf_reset(&path);
		strbuf_addstr(&path, point);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return false;
	f->child = fork();
	if (f->child == 0)
		child_main(fds[1], strbuf_str(&path), clock_utc_ns() / NSEC_PER_SEC);
	close(fds[1]);
	if (f->child < 0) {
		close(fds[0]);
		f->child = 0;
		return false;
	}
	f->fd = fds[0];
	f->point = mem_strdup(point);
	return true;
}

void fillers_reading(struct fillers *f, struct fillers_of *of, const char *point, uint64_t size,
		     uint64_t available, int64_t now_ns)
{
	bool due = fillers_due(of, size, available, now_ns);

	if (!of->known || available > of->available)
		of->available = available;
	of->known = true;
	if (f->off || f->child || !due || !child_start(f, point))
		return;
	f->until_ns = now_ns + FILLERS_WAIT_NS;
	of->looked_ns = now_ns;
	of->available = available;
}

/* ---- what was found ---- */

static void tell(struct fillers *f, struct family_host *h, struct hostmaps_process *p,
		 const char *detail)
{
	struct event e = {.kind = "fills",
			  .subject = "file system",
			  .name = f->point,
			  .detail = detail,
			  .process = p,
			  .utc_ns = clock_utc_ns()};

	event_put(h, &e);
}

/* A mount's path and one below it. */
static void full_path(const struct fillers *f, const char *below, struct strbuf *out)
{
	const char *mount = strcmp(f->point, "/") ? f->point : "";

	if (*below != '/') /* cut */
		strbuf_addf(out, "...%s", below);
	else
		strbuf_addf(out, "%s%s", mount, below[1] || !*mount ? below : "");
}

static void tell_written(struct fillers *f, struct family_host *h, const struct fillers_one *x,
			 const char *what)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char bytes[UNITS_MAX];

	strbuf_addf(&text, "%s ", what);
	full_path(f, x->path, &text);
	strbuf_addf(&text, ": %s, written to in the last hour",
		    units_bytes(x->bytes, bytes, sizeof(bytes)));
	tell(f, h, NULL, strbuf_str(&text));
}

static void tell_deleted(struct fillers *f, struct family_host *h, const struct fillers_one *x)
{
	struct hostmaps_process *p = hostmaps_running(h->maps, x->pid);
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char bytes[UNITS_MAX];

	strbuf_addf(&text, "deleted file %s: %s, open in %s (%u)", x->path,
		    units_bytes(x->bytes, bytes, sizeof(bytes)), p ? p->comm : "process", x->pid);
	tell(f, h, p, strbuf_str(&text));
}

static void tell_all(struct fillers *f, struct family_host *h, struct fillers_found *x)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	for (uint32_t i = 0; i < FILLERS_TOLD; i++) {
		x->files[i].path[sizeof(x->files[i].path) - 1] = '\0';
		x->folders[i].path[sizeof(x->folders[i].path) - 1] = '\0';
		x->deleted[i].path[sizeof(x->deleted[i].path) - 1] = '\0';
	}
	for (uint32_t i = 0; i < x->n_deleted && i < FILLERS_TOLD; i++)
		tell_deleted(f, h, &x->deleted[i]);
	for (uint32_t i = 0; i < x->n_files && i < FILLERS_TOLD; i++)
		tell_written(f, h, &x->files[i], "file");
	for (uint32_t i = 0; i < x->n_folders && i < FILLERS_TOLD; i++)
		tell_written(f, h, &x->folders[i], "folder");
	if (!x->whole) {
		strbuf_addf(&text, "only %u files were looked at: others may fill it, too",
			    x->seen);
		tell(f, h, NULL, strbuf_str(&text));
	}
}

bool fillers_poll(struct fillers *f, struct family_host *h, int64_t now_ns)
{
	struct fillers_found found;
	ssize_t n;

	if (!f->child)
		return false;
	n = recv(f->fd, &found, sizeof(found), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && now_ns < f->until_ns)
		return true;
	if (n == sizeof(found) && h)
		tell_all(f, h, &found);
	child_end(f);
	return false;
}
