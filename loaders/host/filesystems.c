/* SPDX-License-Identifier: Apache-2.0 */
/* The child does system calls and nothing else, since it is forked of
 * a program with threads. */
#include "loaders/host/filesystems.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/host/textfile.h"
#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"

#define MOUNTS_MAX 512

struct answer {
	int err;
	struct statfs fs;
};

/* ---- which ---- */

static bool is_one_of(const char *word, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && !memcmp(*list, word, len))
			return true;
	return false;
}

static bool contains(const char *text, size_t len, const char *part)
{
	return memmem(text, len, part, strlen(part)) != NULL;
}

bool filesystems_wanted(const struct parse_mount *m)
{
	static const char *const none[] = {
		"proc",        "sysfs",         "cgroup",      "cgroup2",    "devpts",
		"devtmpfs",    "debugfs",       "tracefs",     "securityfs", "bpf",
		"pstore",      "mqueue",        "hugetlbfs",   "configfs",   "fusectl",
		"autofs",      "nsfs",          "binfmt_misc", "rpc_pipefs", "selinuxfs",
		"efivarfs",    "squashfs",      "ramfs",       "fuse.lxcfs", "fuse.gvfsd-fuse",
		"fuse.portal", "fuse.snapfuse", NULL};
	static const char *const runtimes[] = {"/overlay2/", "/containers/storage/",
					       "/io.containerd.", "/overlay-containers/", NULL};

	if (is_one_of(m->type, m->type_len, none))
		return false;
	for (size_t i = 0; m->type_len == 7 && !memcmp(m->type, "overlay", 7) && runtimes[i]; i++)
		if (contains(m->point, m->point_len, runtimes[i]))
			return false;
	return true;
}

/* Such come and go with sessions and containers. */
static bool is_in_memory(const struct parse_mount *m)
{
	static const char *const types[] = {"tmpfs", "ramfs", "overlay", NULL};

	return is_one_of(m->type, m->type_len, types);
}

static char *unescaped(const char *text, size_t len)
{
	char *out = mem_alloc(len + 1);

	proc_unescape(text, len, out);
	return out;
}

static void forget(struct filesystem *x)
{
	free(x->point);
	free(x->source);
	free(x->type);
}

/* The state of the file system that was mounted here before. */
static const struct filesystem *before(const struct filesystem *old, size_t n,
				       const struct filesystem *x)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(old[i].point, x->point) && !strcmp(old[i].source, x->source))
			return &old[i];
	return NULL;
}

/* Each device once; where something is mounted over something, what is seen. */
static void add(struct filesystems *f, const struct parse_mount *m, uint64_t *device,
		const struct filesystem *old, size_t n_old)
{
	struct filesystem x = {.point = unescaped(m->point, m->point_len),
			       .type = unescaped(m->type, m->type_len),
			       .source = unescaped(m->source, m->source_len),
			       .read_only = parse_has_option(m->options, m->options_len, "ro") ||
					    parse_has_option(m->super, m->super_len, "ro")};
	const struct filesystem *was = before(old, n_old, &x);
	uint64_t dev = (uint64_t)m->major << 32 | m->minor;
	size_t i = 0;

	if (was) {
		x.hangs = was->hangs;
		x.rest_ns = was->rest_ns;
		x.full = was->full;
		x.no_inodes = was->no_inodes;
		x.locked = was->locked;
		x.fills = was->fills;
	}
	while (i < f->n && strcmp(f->all[i].point, x.point) && device[i] != dev)
		i++;
	if (i == MOUNTS_MAX || (i < f->n && strcmp(f->all[i].point, x.point) != 0)) {
		forget(&x);
		return;
	}
	if (i < f->n) {
		forget(&f->all[i]);
	} else {
		mem_grow(f->all, f->n, f->cap);
		f->n++;
	}
	f->all[i] = x;
	device[i] = dev;
}

/* As the first process sees them; its root is reached below /proc/1/root. */
static bool mounts_look(struct filesystems *f)
{
	uint64_t device[MOUNTS_MAX];
	struct filesystem *old = f->all;
	size_t n_old = f->n, pos = 0;
	struct parse_mount m;

	if (textfile_read(AT_FDCWD, "/proc/1/mountinfo", &f->text) &&
	    textfile_read(AT_FDCWD, "/proc/self/mountinfo", &f->text))
		return false;
	f->all = NULL;
	f->n = f->cap = 0;
	while (parse_next_mount(strbuf_str(&f->text), f->text.len, &pos, &m))
		if (filesystems_wanted(&m))
			add(f, &m, device, old, n_old);
	for (size_t i = 0; i < n_old; i++)
		forget(&old[i]);
	free(old);
	return true;
}

struct telling {
	struct family_host *h;
	int64_t utc_ns;
};

static void mount_tell(void *ctx, const struct mountset_one *x, bool mounted)
{
	const struct telling *t = ctx;
	struct event e = {.kind = mounted ? "mounted" : "unmounted",
			  .subject = "file system",
			  .name = x->point,
			  .detail = x->type,
			  .which = x->source,
			  .utc_ns = t->utc_ns};

	event_put(t->h, &e);
}

/* Of what mounts_look has read: what was mounted and unmounted since the look before. */
static void mounts_compare(struct filesystems *f, const struct meter_round *r)
{
	struct telling t = {.h = r->h, .utc_ns = r->utc_ns};
	struct parse_mount m;
	size_t pos = 0;

	mountset_begin(&f->mounted);
	while (parse_next_mount(strbuf_str(&f->text), f->text.len, &pos, &m)) {
		char *point, *source, *type;

		if (!filesystems_wanted(&m) || is_in_memory(&m))
			continue;
		point = unescaped(m.point, m.point_len);
		source = unescaped(m.source, m.source_len);
		type = unescaped(m.type, m.type_len);
		mountset_see(&f->mounted, point, source, type, mount_tell, &t);
		free(point);
		free(source);
		free(type);
	}
	mountset_end(&f->mounted, mount_tell, &t);
}

/* ---- the child ---- */

static void child_main(int fd)
{
	static char path[PATH_MAX + 16];
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	syscall(SYS_close_range, 0, (unsigned int)fd - 1, 0);
	syscall(SYS_close_range, (unsigned int)fd + 1, ~0u, 0);
	while ((n = recv(fd, path, sizeof(path) - 1, 0)) > 0) {
		struct answer a = {0};

		path[n] = 0;
		a.err = statfs(path, &a.fs) ? errno : 0;
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			break;
	}
	_exit(0);
}

/* A free slot for a killed child; ended ones are reaped. NULL: none. */
static pid_t *stuck_room(struct filesystems *f)
{
	pid_t *room = NULL;

	for (int i = 0; i < FILESYSTEMS_STUCK_MAX; i++) {
		if (f->killed[i] && waitpid(f->killed[i], NULL, WNOHANG))
			f->killed[i] = 0;
		if (!f->killed[i])
			room = &f->killed[i];
	}
	return room;
}

static bool child_start(struct filesystems *f)
{
	int fds[2];

	if (!stuck_room(f) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return false;
	f->child = fork();
	if (f->child == 0)
		child_main(fds[1]);
	close(fds[1]);
	if (f->child < 0) {
		close(fds[0]);
		f->child = 0;
		return false;
	}
	f->fd = fds[0];
	return true;
}

static void child_stop(struct filesystems *f)
{
	if (!f->child)
		return;
	kill(f->child, SIGKILL);
	close(f->fd);
	*stuck_room(f) = f->child; /* there was room as it was started */
	f->child = 0;
}

/* ---- asking ---- */

void filesystems_init(struct filesystems *f, int64_t idle_ns)
{
	*f = (struct filesystems){.meter = {.fact = &FS_FACT, .idle_ns = idle_ns}, .fd = -1};
	fillers_init(&f->fillers);
}

void filesystems_release(struct filesystems *f)
{
	child_stop(f);
	mountset_release(&f->mounted);
	fillers_release(&f->fillers);
	meter_release(&f->meter);
	for (size_t i = 0; i < f->n; i++)
		forget(&f->all[i]);
	free(f->all);
	strbuf_release(&f->text);
}

void filesystems_read(struct filesystems *f, const struct meter_round *r)
{
	if (f->looking || !mounts_look(f))
		return;
	mounts_compare(f, r);
	f->round = *r;
	f->at = 0;
	f->looking = true;
	f->asked_ns = 0;
}

static bool fs_names(void *ctx, struct fact_row *row)
{
	const struct filesystem *x = ctx;

	fact_put_text(row, FS_MOUNT, x->point);
	fact_put_text(row, FS_SOURCE, x->source);
	fact_put_text(row, FS_TYPE, x->type);
	return true;
}

static void tell(struct family_host *h, const struct filesystem *x, int64_t utc_ns,
		 const char *kind, const char *detail)
{
	struct event e = {.kind = kind,
			  .subject = "file system",
			  .name = x->point,
			  .detail = detail,
			  .which = x->source,
			  .utc_ns = utc_ns};

	event_put(h, &e);
}

/* What changed since it was asked last. */
static void changes_find(struct family_host *h, struct filesystem *x, const struct statfs *fs,
			 int64_t utc_ns)
{
	bool full = !x->read_only && change_full(fs->f_blocks, fs->f_bavail, x->full.on);
	bool no_inodes = !x->read_only && change_full(fs->f_files, fs->f_ffree, x->no_inodes.on);
	enum change_change change = change_level(&x->full, full);

	if (change)
		tell(h, x, utc_ns, change == CHANGE_BEGAN ? "full" : "not full", "");
	change = change_level(&x->no_inodes, no_inodes);
	if (change)
		tell(h, x, utc_ns, change == CHANGE_BEGAN ? "full" : "not full", "inodes");
	change = change_level(&x->locked, x->read_only);
	if (change)
		tell(h, x, utc_ns, change == CHANGE_BEGAN ? "read-only" : "writable", "");
}

/* One without a size (a pseudo file system that the list does not know) has no row. */
static void take(struct filesystems *f, struct family_host *h, struct filesystem *x,
		 const struct answer *a)
{
	struct meter_reading m = {.key = x->point};
	uint64_t block = a ? (uint64_t)(a->fs.f_frsize ? a->fs.f_frsize : a->fs.f_bsize) : 0;

	x->hangs = !a;
	if (a && (a->err || !a->fs.f_blocks))
		return;
	fact_put(&m.row, FS_HANGS, !a);
	fact_put(&m.row, FS_READ_ONLY, x->read_only);
	if (a) {
		fact_put(&m.row, FS_SIZE, a->fs.f_blocks * block);
		fact_put(&m.row, FS_FREE, a->fs.f_bfree * block);
		fact_put(&m.row, FS_AVAILABLE, a->fs.f_bavail * block);
		fact_put(&m.row, FS_INODES, a->fs.f_files);
		fact_put(&m.row, FS_INODES_FREE, a->fs.f_ffree);
	}
	f->round.h = h;
	if (a)
		changes_find(h, x, &a->fs, f->round.utc_ns);
	if (a && !x->read_only)
		fillers_reading(&f->fillers, &x->fills, x->point, a->fs.f_blocks * block,
				a->fs.f_bavail * block, clock_boot_ns());
	meter_take(&f->meter, &f->round, &m, fs_names, x);
}

/* True: it is asked, or it hangs. */
static bool ask(struct filesystems *f, struct family_host *h, struct filesystem *x, int64_t now_ns)
{
	struct strbuf path cleanup_strbuf = STRBUF_INIT;

	if (x->rest_ns > now_ns) {
		take(f, h, x, NULL);
		return false;
	}
	strbuf_addf(&path, "/proc/1/root%s", x->point);
	if (access("/proc/1/root/", F_OK)) {
		strbuf_reset(&path);
		strbuf_addstr(&path, x->point);
	}
	if ((!f->child && !child_start(f)) ||
	    send(f->fd, path.buf, path.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)path.len) {
		child_stop(f);
		return false;
	}
	f->asked_ns = now_ns;
	return true;
}

/* True: it answered, or will not. */
static bool answered(struct filesystems *f, struct family_host *h, int64_t now_ns)
{
	struct filesystem *x = &f->all[f->at];
	struct answer a;
	ssize_t n = recv(f->fd, &a, sizeof(a), MSG_DONTWAIT);

	if (n == sizeof(a)) {
		take(f, h, x, &a);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR) &&
	    now_ns - f->asked_ns < FILESYSTEMS_WAIT_NS)
		return false;
	if (n < 0 && errno == EAGAIN) {
		log_warn("the file system at %s does not respond; its size is not recorded",
			 x->point);
		x->rest_ns = now_ns + FILESYSTEMS_REST_NS;
		take(f, h, x, NULL);
	}
	child_stop(f);
	return true;
}

bool filesystems_poll(struct filesystems *f, struct family_host *h, int64_t now_ns)
{
	bool fills = fillers_poll(&f->fillers, h, now_ns);

	while (f->looking && f->at < f->n) {
		if (f->asked_ns || ask(f, h, &f->all[f->at], now_ns)) {
			if (!answered(f, h, now_ns))
				return true;
		}
		f->asked_ns = 0;
		f->at++;
	}
	if (f->looking)
		meter_end(&f->meter);
	f->looking = false;
	return fills;
}
