/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/force.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/ownfolder.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define NAME_LEN   64
#define RECORD_LEN 192
#define HEAD       "sonde-goheap 1"
#define AUXV_MAX   4096

struct force {
	struct force_record record;
	char name[NAME_LEN];
	int memory; /* /proc/PID/mem */
	int kept;   /* the record, locked; -1: no record */
	int dirfd;  /* borrowed */
};

/* ---- a record ---- */

static bool number(const char **at, uint64_t *out)
{
	char *end;

	if (**at != ' ' || (*at)[1] < '0' || (*at)[1] > '9')
		return false;
	errno = 0;
	*out = strtoull(*at + 1, &end, 10);
	*at = end;
	return !errno;
}

int force_record_parse(const char *data, size_t len, struct force_record *out)
{
	char text[RECORD_LEN];
	const char *at = text + strlen(HEAD);
	struct force_record r;
	uint64_t pid;

	if (len >= sizeof(text))
		return -EBADMSG;
	memcpy(text, data, len);
	text[len] = '\0';
	if (strncmp(text, HEAD, strlen(HEAD)) != 0)
		return -EBADMSG;
	if (!number(&at, &pid) || !number(&at, &r.start_ticks) || !number(&at, &r.exe_dev) ||
	    !number(&at, &r.exe_ino) || !number(&at, &r.mark) || !number(&at, &r.addr) ||
	    !number(&at, &r.rate))
		return -EBADMSG;
	if (at[0] != '\n' || at + 1 != text + len || !pid || pid > INT32_MAX || !r.addr ||
	    r.addr & 7 || !r.rate)
		return -EBADMSG;
	r.pid = (uint32_t)pid;
	*out = r;
	return 0;
}

static int record_write(int fd, const struct force_record *r)
{
	char text[RECORD_LEN];
	int len =
		snprintf(text, sizeof(text),
			 HEAD " %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			      " %" PRIu64 "\n",
			 r->pid, r->start_ticks, r->exe_dev, r->exe_ino, r->mark, r->addr, r->rate);
	ssize_t n = write(fd, text, (size_t)len);

	if (n != len)
		return n < 0 ? -errno : -ENOSPC;
	return fsync(fd) ? -errno : 0;
}

static void record_name(const struct force_record *r, char *out)
{
	snprintf(out, NAME_LEN, "%u-%" PRIu64, r->pid, r->start_ticks);
}

/* The file has no name until it is whole and locked; then it has its own at once. */
static int record_keep(struct force *f)
{
	char path[32];
	cleanup_fd int fd = openat(f->dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int err;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
		return -errno;
	err = record_write(fd, &f->record);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, f->dirfd, f->name, AT_SYMLINK_FOLLOW))
		return errno == EEXIST ? -EBUSY : -errno;
	if (fsync(f->dirfd)) {
		err = -errno;
		unlinkat(f->dirfd, f->name, 0);
		return err;
	}
	f->kept = take_fd(&fd);
	return 0;
}

/* ---- a process ---- */

/* Its identity, without addr and rate. */
static int identity_read(uint32_t pid, struct force_record *out)
{
	cleanup_free char *auxv = NULL;
	char path[32];
	struct proc_stat ps;
	struct stat st;
	size_t len;
	int err = proc_read_stat(pid, &ps);

	if (!err)
		err = proc_read(pid, "auxv", AUXV_MAX, &auxv, &len);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	if (stat(path, &st))
		return -errno;
	*out = (struct force_record){.pid = pid,
				     .start_ticks = ps.start_ticks,
				     .exe_dev = st.st_dev,
				     .exe_ino = st.st_ino,
				     .mark = hash_bytes(HASH_SEED, auxv, len)};
	return 0;
}

static bool identity_same(const struct force_record *a, const struct force_record *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks && a->exe_dev == b->exe_dev &&
	       a->exe_ino == b->exe_ino && a->mark == b->mark;
}

/* Opened first, then identified (1). */
static int memory_open(uint32_t pid, int *out, struct force_record *who)
{
	char path[32];
	cleanup_fd int fd = -1;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = identity_read(pid, who);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	*out = take_fd(&fd);
	return 0;
}

/* Writes `to` over `from`. -ESRCH: the process has ended; -EALREADY: the word has another value. */
static int word_change(int memory, uint64_t addr, uint64_t from, uint64_t to)
{
	uint64_t now;
	ssize_t n = pread(memory, &now, sizeof(now), (off_t)addr);

	if (n != sizeof(now))
		return n < 0 && errno != EIO ? -errno : -ESRCH;
	if (now != from)
		return -EALREADY;
	n = pwrite(memory, &to, sizeof(to), (off_t)addr);
	if (n != sizeof(to))
		return n < 0 ? -errno : -ESRCH;
	return 0;
}

int force_open(uint32_t pid, uint64_t start_ns, struct force **out)
{
	const uint64_t tick = proc_ticks_ns(1);
	struct force *f = mem_alloc(sizeof(*f));
	int err = memory_open(pid, &f->memory, &f->record);

	if (err) {
		free(f);
		return err;
	}
	f->kept = f->dirfd = -1;
	if (f->record.start_ticks != start_ns / tick) {
		force_close(f);
		return -ESRCH;
	}
	*out = f;
	return 0;
}

int force_write(struct force *f, int dirfd, uint64_t addr, uint64_t rate)
{
	int err;

	f->record.addr = addr;
	f->record.rate = rate;
	f->dirfd = dirfd;
	record_name(&f->record, f->name);
	err = record_keep(f);
	if (err)
		return err;
	err = word_change(f->memory, addr, 0, rate);
	if (err) {
		unlinkat(dirfd, f->name, 0);
		close(take_fd(&f->kept));
	}
	return err;
}

/* Says how it ended; true: there is nothing left to be put back. */
static bool put_back(int memory, const struct force_record *r)
{
	int err = word_change(memory, r->addr, r->rate, 0);

	if (!err)
		log_info("process %u: MemProfileRate is 0 again", r->pid);
	else if (err == -EALREADY)
		log_info("process %u: it has set its own MemProfileRate, which stays", r->pid);
	else if (err != -ESRCH)
		log_warn("process %u: cannot restore its MemProfileRate to 0: %s", r->pid,
			 strerror(-err));
	return !err || err == -EALREADY || err == -ESRCH;
}

void force_close(struct force *f)
{
	if (!f)
		return;
	if (f->kept >= 0) {
		if (put_back(f->memory, &f->record))
			unlinkat(f->dirfd, f->name, 0);
		close(f->kept);
	}
	close(f->memory);
	free(f);
}

/* ---- the folder ---- */

int force_dir_open(const char *path, int *out, struct err *e)
{
	int err = ownfolder_open(path, out);

	if (!err)
		return 0;
	err_set(e, err, EXIT_PERMISSION, "cannot record in %s what --mode force changes: %s", path,
		err == -EPERM ? "it belongs to another user, or other users may write to it" :
				strerror(-err));
	err_fix(e, "--record-dir DIR: use a folder that you own");
	return err;
}

static int record_read(int dirfd, const char *name, struct force_record *out, int *locked)
{
	char text[RECORD_LEN];
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	if (!ownfolder_is_ours(fd, S_IFREG))
		return -EPERM;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return -EBUSY;
	if (!ownfolder_is_ours(fd, S_IFREG)) /* its owner has removed it meanwhile */
		return -ENOENT;
	n = read(fd, text, sizeof(text));
	err = n < 0 ? -errno : force_record_parse(text, (size_t)n, out);
	if (err)
		return err;
	*locked = take_fd(&fd);
	return 0;
}

static void left_put_back(int dirfd, const char *name)
{
	struct force_record r, now;
	cleanup_fd int locked = -1, memory = -1;
	bool done;
	int err = record_read(dirfd, name, &r, &locked);

	if (err == -EBUSY || err == -ENOENT)
		return;
	if (err) {
		log_warn("the record %s of a changed process is not trusted: %s", name,
			 strerror(-err));
		return;
	}
	err = memory_open(r.pid, &memory, &now);
	if (err && err != -ESRCH) {
		log_warn("process %u: cannot restore what a killed sonde-goheap changed: %s", r.pid,
			 strerror(-err));
		return;
	}
	done = err || !identity_same(&r, &now) || put_back(memory, &r);
	if (done)
		unlinkat(dirfd, name, 0);
}

void force_put_back_left(const char *path)
{
	cleanup_dir DIR *d = NULL;
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	const struct dirent *at;

	if (fd < 0 || !ownfolder_is_ours(fd, S_IFDIR))
		return;
	d = fdopendir(fd);
	if (!d)
		return;
	take_fd(&fd);
	while ((at = readdir(d)))
		if (at->d_name[0] != '.')
			left_put_back(dirfd(d), at->d_name);
}
