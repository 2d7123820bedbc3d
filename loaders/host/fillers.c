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

#include "loaders/host/parse.h"
#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/run/meter.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "schema/facts/host.h"

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
	size_t path_len;        /* of the folder itself */
	struct fillers_one sum; /* of the files right in it */
	ssize_t n, at;
	_Alignas(8) char buf[4096];
};

/* A container's upper layer: what is written in it lies there. */
struct layer {
	uint64_t mount; /* the overlay's id: it is the container's root */
	uint32_t pid;   /* of a process in it */
	bool here;      /* it lies on the file system that is looked at */
	size_t len;
	char upper[256]; /* a path of the host */
};

struct looking {
	struct fillers_found *out;
	const char *host;  /* before a path of the host: /proc/1/root, or nothing */
	const char *point; /* of the file system */
	struct layer layers[FILLERS_LAYERS];
	size_t n_layers;
	uint64_t spaces[4 * FILLERS_LAYERS]; /* mount namespaces that were looked at */
	size_t n_spaces;
	struct level level[DEPTH];
	char path[PATH_MAX];
	uint32_t major, minor;
	int64_t until_ns, now_s;
};

static const int64_t spans_s[FILLERS_SPANS] = {3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600};

static uint64_t rank(const struct fillers_one *x, int span)
{
	return span < 0 ? x->bytes : x->lately[span];
}

/* Keeps it if it is one of the largest; by all bytes with span -1. */
static struct fillers_one *one_put(struct fillers_list *l, const struct fillers_one *x, int span,
				   const char *path, size_t len)
{
	uint32_t i = l->n;
	struct fillers_one *to;

	while (i && rank(&l->one[i - 1], span) < rank(x, span))
		i--;
	if (i == FILLERS_TOLD || rank(x, span) < FILLERS_LEAST)
		return NULL;
	if (l->n < FILLERS_TOLD)
		l->n++;
	to = &l->one[i];
	memmove(to + 1, to, (l->n - i - 1) * sizeof(*to));
	*to = *x;
	memset(to->path, 0, sizeof(to->path));
	if (len >= sizeof(to->path)) {
		path += len - (sizeof(to->path) - 1);
		len = sizeof(to->path) - 1;
	}
	memcpy(to->path, path, len);
	return to;
}

/* In which container's layer a path below the mount lies; *cut: the length of the layer's own path.
 */
static const struct layer *layer_of(const struct looking *l, const char *path, size_t len,
				    size_t *cut)
{
	size_t mount = strcmp(l->point, "/") ? strlen(l->point) : 0;

	for (size_t i = 0; i < l->n_layers; i++) {
		const struct layer *y = &l->layers[i];

		if (!y->here || y->len <= mount || memcmp(y->upper, l->point, mount) != 0)
			continue;
		*cut = y->len - mount;
		if (len >= *cut && !memcmp(path, y->upper + mount, *cut) &&
		    (len == *cut || path[*cut] == '/'))
			return y;
	}
	return NULL;
}

/* A file or folder, by each span. */
static void spans_put(struct looking *l, struct fillers_list lists[FILLERS_SPANS],
		      const struct fillers_one *x, const char *path, size_t len)
{
	struct fillers_one own = *x;
	const struct layer *y;
	size_t cut;

	if (x->lately[FILLERS_7D] < FILLERS_LEAST)
		return;
	y = layer_of(l, path, len, &cut);
	if (y) {
		path = len == cut ? "/" : path + cut;
		len = len == cut ? 1 : len - cut;
		own.pid = y->pid;
		own.inside = true;
	}
	for (int i = 0; i < FILLERS_SPANS; i++)
		one_put(&lists[i], &own, i, path, len);
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
	l->level[depth].sum = (struct fillers_one){0};
	l->level[depth].n = l->level[depth].at = 0;
	return depth;
}

/* One name of the folder. The depth at which to go on. */
static int entry(struct looking *l, int depth, const char *name)
{
	struct level *v = &l->level[depth];
	size_t n = strlen(name), len = v->path_len + 1 + n;
	struct fillers_one x = {0};
	struct statx st;
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
	if (!S_ISREG(st.stx_mode))
		return depth;
	x.bytes = st.stx_blocks * 512;
	v->sum.bytes += x.bytes;
	for (int i = 0; i < FILLERS_SPANS; i++) {
		x.lately[i] = st.stx_mtime.tv_sec >= l->now_s - spans_s[i] ? x.bytes : 0;
		v->sum.lately[i] += x.lately[i];
	}
	spans_put(l, l->out->files, &x, l->path, len);
	return depth;
}

/* Leaves the folder: what was written right in it. */
static int leave(struct looking *l, int depth)
{
	struct level *v = &l->level[depth];

	close(v->fd);
	l->path[v->path_len] = '\0';
	spans_put(l, l->out->folders, &v->sum, v->path_len ? l->path : "/",
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

static bool is_listed(const struct fillers_list *f, uint64_t ino)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->one[i].ino == ino)
			return true;
	return false;
}

/* Does an open file lie on this file system, in a container's layer? By its mount: overlayfs may
 * report another device for each file. */
static bool in_layer(const struct looking *l, int fds, const char *name)
{
	static const char key[] = "mnt_id:\t";
	char path[40], text[256];
	const char *at;
	uint64_t id;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "../fdinfo/%.20s", name);
	fd = openat(fds, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	at = n > 0 ? memmem(text, (size_t)n, key, sizeof(key) - 1) : NULL;
	if (!at)
		return false;
	at += sizeof(key) - 1;
	if (!parse_number(at, (size_t)(text + n - at), &id))
		return false;
	for (size_t i = 0; i < l->n_layers; i++)
		if (l->layers[i].here && l->layers[i].mount == id)
			return true;
	return false;
}

static void open_file(struct looking *l, int fds, const char *name, uint32_t pid)
{
	static const char deleted[] = " (deleted)";
	struct fillers_list *out = &l->out->deleted;
	struct fillers_one x = {.pid = pid};
	char path[PATH_MAX];
	struct statx st;
	ssize_t n;

	l->out->seen++;
	if (statx(fds, name, STAT_FLAGS, STAT_WANTS, &st) || !S_ISREG(st.stx_mode) || st.stx_nlink)
		return;
	x.inside = !on_it(l, &st);
	if ((x.inside && !in_layer(l, fds, name)) || is_listed(out, st.stx_ino))
		return;
	n = readlinkat(fds, name, path, sizeof(path) - 1);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(deleted) &&
	    !memcmp(path + n - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
		n -= sizeof(deleted) - 1;
	x.bytes = st.stx_blocks * 512;
	x.ino = st.stx_ino;
	one_put(out, &x, -1, path, (size_t)n);
}

/* ---- layers of containers ---- */

/* upperdir=PATH of an overlay's options, without escapes. False: it has none, or it is too long. */
static bool upper_of(const struct parse_mount *m, struct layer *out)
{
	static const char key[] = "upperdir=";
	const char *at = memmem(m->super, m->super_len, key, sizeof(key) - 1);
	size_t n;

	if (!at)
		return false;
	at += sizeof(key) - 1;
	for (n = 0; at + n < m->super + m->super_len && at[n] != ',' && at[n] != '\\';)
		n++;
	if (!n || n >= sizeof(out->upper) || (at + n < m->super + m->super_len && at[n] != ','))
		return false;
	memcpy(out->upper, at, n);
	out->upper[n] = '\0';
	out->len = n;
	return true;
}

static void layer_note(struct looking *l, const struct parse_mount *m, uint32_t pid)
{
	struct layer *y = &l->layers[l->n_layers];
	char path[PATH_MAX];
	struct statx st;

	if (l->n_layers == FILLERS_LAYERS || m->type_len != 7 ||
	    memcmp(m->type, "overlay", 7) != 0 || m->point_len != 1 || !upper_of(m, y))
		return;
	y->mount = m->id;
	y->pid = pid;
	snprintf(path, sizeof(path), "%s%s", l->host, y->upper);
	y->here = !statx(AT_FDCWD, path, STAT_FLAGS, STATX_TYPE, &st) && on_it(l, &st);
	l->n_layers++;
}

/* The root of the process, if its mounts were not looked at before. */
static void layers_meet(struct looking *l, int proc, const char *name, uint32_t pid)
{
	static char text[16384]; /* a container's root is among its first mounts */
	struct parse_mount m;
	char path[64];
	struct stat st;
	size_t pos = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%.20s/ns/mnt", name);
	if (l->n_spaces == sizeof(l->spaces) / sizeof(*l->spaces) || fstatat(proc, path, &st, 0))
		return;
	for (size_t i = 0; i < l->n_spaces; i++)
		if (l->spaces[i] == st.st_ino)
			return;
	l->spaces[l->n_spaces++] = st.st_ino;
	snprintf(path, sizeof(path), "%.20s/mountinfo", name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	while (n > 0 && parse_next_mount(text, (size_t)n, &pos, &m))
		layer_note(l, &m, pid);
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
	layers_meet(l, proc, name, number(name));
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
	static const char init[] = "/proc/1/root";
	static struct looking l;
	bool by_init = !strncmp(root, init, sizeof(init) - 1);
	int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), procs;
	struct statx st;

	memset(&l, 0, sizeof(l));
	memset(out, 0, sizeof(*out));
	l.out = out;
	l.now_s = now_s;
	l.host = by_init ? init : "";
	l.point = root + strlen(l.host);
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
	if (available < size / 5 || fell >= size / 10 || fell >= FILLERS_FELL)
		return true;
	return of->looked_ns && now_ns - of->looked_ns >= FILLERS_HOUR_NS &&
	       (fell >= size / 50 || fell >= FILLERS_FELL_3);
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

/* A mount's path and one below it; of a container what it sees. */
static void full_path(const struct fillers *f, const struct fillers_one *x, struct strbuf *out)
{
	const char *mount = strcmp(f->point, "/") ? f->point : "", *below = x->path;

	if (*below != '/') /* cut */
		strbuf_addf(out, "...%s", below);
	else if (x->inside)
		strbuf_addstr(out, below);
	else
		strbuf_addf(out, "%s%s", mount, below[1] || !*mount ? below : "");
}

static void tell_written(struct fillers *f, struct family_host *h, const struct fillers_one *x,
			 const char *what)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char bytes[UNITS_MAX];

	strbuf_addf(&text, "%s ", what);
	full_path(f, x, &text);
	strbuf_addf(&text, "%s: %s, written to in the last hour",
		    x->inside ? " of a container" : "",
		    units_bytes(x->lately[FILLERS_1H], bytes, sizeof(bytes)));
	tell(f, h, x->inside ? hostmaps_running(h->maps, x->pid) : NULL, strbuf_str(&text));
}

static void tell_deleted(struct fillers *f, struct family_host *h, const struct fillers_one *x)
{
	struct hostmaps_process *p = hostmaps_running(h->maps, x->pid);
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char bytes[UNITS_MAX];

	strbuf_addf(&text, "deleted file %s%s: %s, open in %s (%u)", x->path,
		    x->inside ? " of a container" : "", units_bytes(x->bytes, bytes, sizeof(bytes)),
		    p ? p->comm : "process", x->pid);
	tell(f, h, p, strbuf_str(&text));
}

struct fill_names {
	struct family_host *h;
	struct hostmaps_process *p; /* NULL: none */
	const char *mount, *kind, *path;
	bool inside, holds; /* p is of the container; p has it open */
};

static bool fill_names(void *ctx, struct fact_row *row)
{
	const struct fill_names *n = ctx;

	fact_put_text(row, FILL_MOUNT, n->mount);
	fact_put_text(row, FILL_KIND, n->kind);
	fact_put_text(row, FILL_PATH, n->path);
	fact_put(row, FILL_CONTAINER, n->p && n->inside ? naming_container(n->h->naming, n->p) : 0);
	fact_put(row, FILL_PROCESS, n->p && n->holds ? naming_row(n->h->naming, n->p) : 0);
	return true;
}

static void row_put(struct fillers *f, struct family_host *h, const struct fillers_one *x,
		    const char *kind)
{
	struct strbuf path cleanup_strbuf = STRBUF_INIT;
	struct fill_names n = {.h = h,
			       .p = x->pid ? hostmaps_running(h->maps, x->pid) : NULL,
			       .mount = f->point,
			       .kind = kind,
			       .inside = x->inside,
			       .holds = !strcmp(kind, "deleted")};
	struct meter_round r = {h, clock_boot_ns(), clock_utc_ns()};
	struct fact_row row = {0};

	if (n.holds)
		strbuf_addstr(&path, x->path);
	else
		full_path(f, x, &path);
	n.path = strbuf_str(&path);
	fact_put(&row, FILL_BYTES, x->bytes);
	for (int i = 0; !n.holds && i < FILLERS_SPANS; i++)
		fact_put(&row, FILL_HOUR + i, x->lately[i]);
	meter_put(&FILL_FACT, &r, &row, fill_names, &n);
}

/* It comes from the child. */
static bool list_is_sane(struct fillers_list *l)
{
	for (uint32_t i = 0; i < FILLERS_TOLD; i++)
		l->one[i].path[sizeof(l->one[i].path) - 1] = '\0';
	return l->n <= FILLERS_TOLD;
}

static void tell_all(struct fillers *f, struct family_host *h, struct fillers_found *x)
{
	static const char *const kinds[] = {"file", "folder"};
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	for (uint32_t i = 0; list_is_sane(&x->deleted) && i < x->deleted.n; i++) {
		tell_deleted(f, h, &x->deleted.one[i]);
		row_put(f, h, &x->deleted.one[i], "deleted");
	}
	for (int kind = 0; kind < 2; kind++)
		for (int span = 0; span < FILLERS_SPANS; span++) {
			struct fillers_list *l = kind ? &x->folders[span] : &x->files[span];

			for (uint32_t i = 0; list_is_sane(l) && i < l->n; i++) {
				if (span == FILLERS_1H)
					tell_written(f, h, &l->one[i], kinds[kind]);
				row_put(f, h, &l->one[i], kinds[kind]);
			}
		}
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
