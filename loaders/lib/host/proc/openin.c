/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/openin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/host/proc/localfs.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

int openin_root(uint32_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* `path_fd` (O_PATH, closed here) -> a descriptor to read from, if it is a file that we read at
 * all. */
static int reopen(int path_fd, uint64_t max_bytes, struct stat *out)
{
	cleanup_fd int p = path_fd;
	cleanup_fd int fd = -1;
	struct stat st, again;
	char self[64];

	if (fstat(p, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if ((uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", p);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &again))
		return -errno;
	if (!S_ISREG(again.st_mode) || again.st_ino != st.st_ino || again.st_dev != st.st_dev)
		return -ESTALE;
	if (out)
		*out = again;
	return take_fd(&fd);
}

/* ---- without waiting ---- */

/*
 * Opens at once what the kernel has in its caches (RESOLVE_CACHED: 5.12) on a local file system: a
 * thread for each of several hundred files would cost wake-ups, on a busy host a scheduler tick
 * each. -EAGAIN: use a thread.
 */
static int open_cached(int root_fd, const char *path, bool no_link, uint64_t max_bytes,
		       struct stat *st)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | (no_link ? O_NOFOLLOW : 0u),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	struct statx known;

	if (fd < 0)
		return -EAGAIN;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &known) ||
	    !localfs_has(makedev(known.stx_dev_major, known.stx_dev_minor))) {
		close(fd);
		return -EAGAIN;
	}
	return reopen(fd, max_bytes, st);
}

/* ---- one opening, in its thread ---- */

struct job {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool done, left; /* done: the thread has the result; left: the caller has given up */
	int root_fd;     /* -1: `path` is one of /proc, links followed */
	bool no_link;    /* the last part of the path may be no link */
	char *path;
	uint64_t max_bytes;
	int result;
	struct stat st;
};

static atomic_int stuck; /* threads that were given up and have not finished */

static void job_free(struct job *j)
{
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->ended);
	if (j->root_fd >= 0)
		close(j->root_fd);
	free(j->path);
	free(j);
}

static int job_run(struct job *j)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | (j->no_link ? O_NOFOLLOW : 0u)};
	int fd;

	if (j->root_fd >= 0)
		how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
	fd = (int)syscall(SYS_openat2, j->root_fd >= 0 ? j->root_fd : AT_FDCWD, j->path, &how,
			  sizeof(how));
	return fd < 0 ? -errno : reopen(fd, j->max_bytes, &j->st);
}

static void *job_main(void *arg)
{
	struct job *j = arg;
	int result = job_run(j);
	bool left;

	pthread_mutex_lock(&j->lock);
	j->result = result;
	j->done = true;
	left = j->left;
	pthread_cond_signal(&j->ended);
	pthread_mutex_unlock(&j->lock);
	if (left) { /* the caller has given up */
		if (result >= 0)
			close(result);
		job_free(j);
		atomic_fetch_sub(&stuck, 1);
	}
	return NULL;
}

static int job_start(struct job *j)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 128 << 10);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	rc = pthread_create(&thread, &attr, job_main, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

static int job_wait(struct job *j, struct stat *st)
{
	struct timespec until;
	int rc = 0, result;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += OPENIN_WAIT_MS * 1000000l;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&j->lock);
	while (!j->done && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&j->ended, &j->lock, &until);
	if (!j->done) {
		j->left = true;
		atomic_fetch_add(&stuck, 1);
		pthread_mutex_unlock(&j->lock);
		return -ETIMEDOUT;
	}
	pthread_mutex_unlock(&j->lock);
	result = j->result;
	if (result >= 0 && st)
		*st = j->st;
	job_free(j);
	return result;
}

/* The caller keeps root_fd. */
static int open_guarded(int root_fd, const char *path, bool no_link, uint64_t max_bytes,
			struct stat *st)
{
	pthread_condattr_t attr;
	struct job *j;
	int rc;

	if (atomic_load(&stuck) >= OPENIN_STUCK_MAX)
		return -EBUSY;
	j = mem_alloc(sizeof(*j));
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&j->ended, &attr);
	pthread_condattr_destroy(&attr);
	j->root_fd = root_fd >= 0 ? fcntl(root_fd, F_DUPFD_CLOEXEC, 3) : -1;
	j->path = mem_strdup(path);
	j->max_bytes = max_bytes;
	j->no_link = no_link;
	rc = root_fd >= 0 && j->root_fd < 0 ? -errno : job_start(j);
	if (rc) {
		job_free(j);
		return rc;
	}
	return job_wait(j, st);
}

static int open_either(int root_fd, const char *path, bool no_link, uint64_t max_bytes,
		       struct stat *st)
{
	int fd = root_fd < 0 ? -EBADF : open_cached(root_fd, path, no_link, max_bytes, st);

	return fd == -EAGAIN ? open_guarded(root_fd, path, no_link, max_bytes, st) : fd;
}

int openin(int root_fd, const char *path, uint64_t max_bytes, struct stat *st)
{
	return open_either(root_fd, path, false, max_bytes, st);
}

int openin_no_link(int root_fd, const char *path, uint64_t max_bytes, struct stat *st)
{
	return open_either(root_fd, path, true, max_bytes, st);
}

int openin_map_file(uint32_t pid, uint64_t start, uint64_t end, uint64_t max_bytes, struct stat *st)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)start,
		 (unsigned long long)end);
	return open_guarded(-1, path, false, max_bytes, st);
}

int openin_held(int path_fd, uint64_t max_bytes, struct stat *st)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open_guarded(-1, path, false, max_bytes, st);
}

int openin_generation(int fd, const struct stat *st, uint32_t *out)
{
	int generation;

	if (!localfs_has(st->st_dev) || ioctl(fd, FS_IOC_GETVERSION, &generation))
		return -ENOTSUP;
	*out = (uint32_t)generation;
	return 0;
}

static int born_of(const struct statx *st, int64_t *out_ns)
{
	if (!(st->stx_mask & STATX_BTIME))
		return -ENOTSUP;
	*out_ns = st->stx_btime.tv_sec * NSEC_PER_SEC + st->stx_btime.tv_nsec;
	return 0;
}

int openin_born(int fd, int64_t *out_ns)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME, &st))
		return -ENOTSUP;
	return born_of(&st, out_ns);
}

/* A path below a root, if the kernel has it in its caches and it has this inode number. */
static int cached_open(int root_fd, const char *path, uint64_t ino, struct statx *st)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
	cleanup_fd int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	if (fd < 0)
		return -errno;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME | STATX_INO, st))
		return -errno;
	return st->stx_ino == ino ? take_fd(&fd) : -ESTALE;
}

int openin_cached_born(int root_fd, const char *path, uint64_t ino, int64_t *out_ns)
{
	struct statx st;
	cleanup_fd int fd = cached_open(root_fd, path, ino, &st);

	return fd < 0 ? fd : born_of(&st, out_ns);
}

int openin_cached_pin(int root_fd, const char *path, uint64_t ino, int64_t *out_ns, int *pin)
{
	struct statx st, root;
	cleanup_fd int fd = cached_open(root_fd, path, ino, &st);
	int rc = fd < 0 ? fd : born_of(&st, out_ns);

	*pin = -1;
	if (!rc && !statx(root_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &root) &&
	    root.stx_dev_major == st.stx_dev_major && root.stx_dev_minor == st.stx_dev_minor)
		*pin = take_fd(&fd);
	return rc;
}

const char *openin_reason(int code)
{
	switch (code) {
	case -ENOTSUP:
		return "not a regular file";
	case -EFBIG:
		return "larger than 4 GiB";
	case -ESTALE:
		return "the file at that path is another one now";
	case -ENOENT:
		return "the file is gone";
	case -ETIMEDOUT:
		return "its file system does not answer";
	default:
		return strerror(-code);
	}
}

int openin_read(int fd, size_t size, char **out, size_t *len)
{
	cleanup_free char *buf = mem_alloc(size + 1);
	size_t n = 0;

	while (n < size) {
		ssize_t got = pread(fd, buf + n, size - n, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		n += (size_t)got;
	}
	*out = take_ptr(buf);
	*len = n;
	return 0;
}
