/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/maps/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/file/owner.h"
#include "schema/base/file/place.h"
#include "schema/image/image.h"

#define NAME_MAX_ 256
#define TMP_OLD_S 600

struct cache {
	int dir, by_stat; /* -1: nothing is kept */
	char *store_dir;  /* NULL: nowhere */
	struct place store;
	uint64_t max_bytes, bytes;
	unsigned int n_tmp;
	struct idmap sound; /* inode -> its modification time after our last use */
};

static void sweep(struct cache *c, uint64_t target);

static int make_dir(int at, const char *name)
{
	if (!mkdirat(at, name, 0750))
		owner_inherit_at(at, name);
	else if (errno != EEXIST)
		return -errno;
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* How much the indexes may take now: they must leave room for samples. */
static uint64_t bound(const struct cache *c)
{
	struct statvfs fs;
	uint64_t share;

	if (fstatvfs(c->dir, &fs))
		return c->max_bytes;
	share = (c->bytes + (uint64_t)fs.f_bavail * fs.f_frsize) / CACHE_DISK_SHARE;
	return share < c->max_bytes ? share : c->max_bytes;
}

static void sweep_to_bound(struct cache *c)
{
	uint64_t most = bound(c);

	if (c->bytes > most)
		sweep(c, most - most / 10);
}

static void folders_close(struct cache *c)
{
	if (c->dir >= 0)
		close(c->dir);
	if (c->by_stat >= 0)
		close(c->by_stat);
	c->dir = c->by_stat = -1;
}

/* The folders for indexes in the store, which is there. */
static int folders_open(struct cache *c)
{
	cleanup_fd int store = open(c->store_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (store >= 0)
		c->dir = make_dir(store, "images");
	if (c->dir >= 0)
		c->by_stat = make_dir(c->dir, "by-stat");
	if (c->by_stat < 0) {
		folders_close(c);
		return -ENOENT;
	}
	(void)place_open(&c->store, c->store_dir); /* without it a rename is not seen */
	sweep(c, c->max_bytes);
	sweep_to_bound(c);
	return 0;
}

struct cache *cache_open(const char *store_dir, uint64_t max_bytes)
{
	struct cache *c = mem_alloc(sizeof(*c));

	c->dir = c->by_stat = c->store.fd = -1;
	c->max_bytes = max_bytes;
	if (!store_dir)
		return c;
	c->store_dir = mem_strdup(store_dir);
	if (mkdir(store_dir, 0750) && errno != EEXIST)
		log_debug("cannot make %s: %s", store_dir, strerror(errno));
	if (folders_open(c))
		log_warn("indexes are not kept: cannot use %s/images", store_dir);
	return c;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	folders_close(c);
	place_close(&c->store);
	idmap_release(&c->sound);
	free(c->store_dir);
	free(c);
}

/* Was the folder of this descriptor removed? */
static bool is_removed(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && !st.st_nlink;
}

void cache_look(struct cache *c)
{
	char now[PATH_MAX];
	enum place_state at = c->store_dir ? place_look(&c->store, c->store_dir, now) : PLACE_SAME;

	if (at == PLACE_MOVED) { /* its descriptors went with it */
		log_warn("the store's folder %s is now %s: indexes are kept there", c->store_dir,
			 now);
		free(c->store_dir);
		c->store_dir = mem_strdup(now);
	}
	if (at != PLACE_GONE && !is_removed(c->dir) && !is_removed(c->by_stat))
		return;
	folders_close(c);
	if (folders_open(c))
		return;
	idmap_clear(&c->sound);
	log_warn("the folder %s/images was removed: indexes are kept in a new one", c->store_dir);
}

bool cache_key_ok(const char *key)
{
	static const char none[] = "nobuildid";
	const char *p = key;

	if (!strncmp(p, none, sizeof(none) - 1))
		p += sizeof(none) - 1;
	return *key && strlen(key) < IMAGE_KEY_MAX && p[strspn(p, "0123456789abcdef-~")] == 0;
}

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000ull + (uint64_t)st->st_mtim.tv_nsec;
}

static void stat_name(const struct stat *st, char *out, size_t size)
{
	snprintf(out, size, "%llx-%llx-%llx-%llx-%llx", (unsigned long long)st->st_dev,
		 (unsigned long long)st->st_ino, (unsigned long long)st->st_size,
		 (unsigned long long)mtime_ns(st),
		 (unsigned long long)st->st_ctim.tv_sec * 1000000000ull +
			 (unsigned long long)st->st_ctim.tv_nsec);
}

uint64_t cache_file_id(const struct stat *st)
{
	char name[NAME_MAX_];
	uint64_t id;

	stat_name(st, name, sizeof(name));
	id = hash_bytes(HASH_SEED, name, strlen(name));
	return id ? id : 1;
}

enum cache_answer cache_find(struct cache *c, const struct stat *st, char **text)
{
	char name[NAME_MAX_], target[1024];
	ssize_t n;

	if (c->by_stat < 0)
		return CACHE_UNKNOWN;
	stat_name(st, name, sizeof(name));
	n = readlinkat(c->by_stat, name, target, sizeof(target) - 1);
	if (n <= 0)
		return CACHE_UNKNOWN;
	target[n] = 0;
	if (!strncmp(target, "!" CACHE_VERSION ":", sizeof("!" CACHE_VERSION ":") - 1)) {
		*text = mem_strdup(target + sizeof("!" CACHE_VERSION ":") - 1);
		return CACHE_REFUSED;
	}
	if (strncmp(target, "../", 3) || !cache_key_ok(target + 3) ||
	    faccessat(c->dir, target + 3, R_OK, 0)) {
		unlinkat(c->by_stat, name, 0);
		return CACHE_UNKNOWN;
	}
	*text = mem_strdup(target + 3);
	return CACHE_KNOWN;
}

bool cache_debug_path(const char *key, char *path, size_t size)
{
	size_t len = strspn(key, "0123456789abcdef");

	if (len < 4 || len % 2 || key[len] != '-')
		return false;
	return (size_t)snprintf(path, size, "/usr/lib/debug/.build-id/%.2s/%.*s.debug", key,
				(int)len - 2, key + 2) < size;
}

/* The link is created with the index, and again with each later index. */
bool cache_is_older(struct cache *c, const struct stat *st, const struct stat *debug)
{
	char name[NAME_MAX_];
	struct stat link;

	stat_name(st, name, sizeof(name));
	if (c->by_stat < 0 || fstatat(c->by_stat, name, &link, AT_SYMLINK_NOFOLLOW))
		return false;
	return link.st_mtim.tv_sec != debug->st_ctim.tv_sec ?
		       link.st_mtim.tv_sec < debug->st_ctim.tv_sec :
		       link.st_mtim.tv_nsec < debug->st_ctim.tv_nsec;
}

bool cache_is_sound(const struct cache *c, int fd)
{
	struct stat st;
	uint64_t then;

	return !fstat(fd, &st) && idmap_get(&c->sound, st.st_ino, &then) && then == mtime_ns(&st);
}

void cache_set_sound(struct cache *c, int fd)
{
	struct stat st;

	if (!fstat(fd, &st))
		idmap_set(&c->sound, st.st_ino, mtime_ns(&st));
}

int cache_get(struct cache *c, const char *key)
{
	struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}};
	bool sound;
	int fd;

	if (c->dir < 0 || !cache_key_ok(key))
		return -ENOENT;
	fd = openat(c->dir, key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	sound = cache_is_sound(c, fd);
	clock_gettime(CLOCK_REALTIME, &now[1]); /* with nanoseconds: a write sets the kernel's
						   coarser time, which differs */
	futimens(fd, now);
	if (sound)
		cache_set_sound(c, fd);
	return fd;
}

static void link_stat(struct cache *c, const struct stat *st, const char *target)
{
	char name[NAME_MAX_];

	if (!st || c->by_stat < 0)
		return;
	stat_name(st, name, sizeof(name));
	unlinkat(c->by_stat, name, 0);
	if (symlinkat(target, c->by_stat, name))
		log_debug("cannot remember an index: %s", strerror(errno));
	else
		owner_inherit_at(c->by_stat, name);
}

void cache_refuse(struct cache *c, const struct stat *st, const char *reason)
{
	char target[512];

	snprintf(target, sizeof(target), "!" CACHE_VERSION ":%s", reason);
	link_stat(c, st, target);
}

void cache_remove(struct cache *c, const char *key)
{
	if (c->dir >= 0 && cache_key_ok(key))
		unlinkat(c->dir, key, 0);
}

/* Copy and check: the stored file is our copy, which its writer can no longer change. */
static int write_tmp(struct cache *c, int fd, char *tmp, size_t size, uint64_t *bytes)
{
	cleanup_fd int out = -1;
	char buf[65536];
	off_t at = 0;
	ssize_t n;

	snprintf(tmp, size, ".tmp-%d-%u", (int)getpid(), c->n_tmp++);
	out = openat(c->dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (out < 0)
		return -errno;
	fchmod(out, 0640);
	owner_inherit_at(c->dir, tmp);
	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		if (write(out, buf, (size_t)n) != n) {
			unlinkat(c->dir, tmp, 0);
			return -ENOSPC;
		}
		at += n;
	}
	*bytes = (uint64_t)at;
	return n < 0 ? -errno : 0;
}

static uint64_t hash_of(int fd)
{
	uint64_t hash = HASH_SEED;
	char buf[16384];
	off_t at = 0;
	ssize_t n;

	for (; (n = pread(fd, buf, sizeof(buf), at)) > 0; at += n)
		hash = hash_bytes(hash, buf, (size_t)n);
	return hash;
}

/* Do two files have the same bytes? */
static bool same_bytes(int a, int b)
{
	struct stat sa, sb;
	char x[16384], y[16384];

	if (fstat(a, &sa) || fstat(b, &sb) || sa.st_size != sb.st_size)
		return false;
	for (off_t at = 0; at < sa.st_size;) {
		ssize_t n = pread(a, x, sizeof(x), at), m = pread(b, y, sizeof(y), at);

		if (n <= 0 || n != m || memcmp(x, y, (size_t)n))
			return false;
		at += n;
	}
	return true;
}

int cache_put(struct cache *c, const char *key, int fd, const struct stat *st, char **stored)
{
	char tmp[64], name[NAME_MAX_], target[NAME_MAX_ + 4];
	uint64_t bytes = 0;
	struct stat size;
	int rc;

	if (c->dir < 0)
		return -ENOENT;
	if (!cache_key_ok(key) || strchr(key, '~'))
		return -EINVAL;
	sweep_to_bound(c);
	if (fstat(fd, &size) || (uint64_t)size.st_size > bound(c) / 2)
		return -ENOSPC;
	rc = write_tmp(c, fd, tmp, sizeof(tmp), &bytes);
	if (rc)
		return rc;
	snprintf(name, sizeof(name), "%s", key);
	if (linkat(c->dir, tmp, c->dir, name, 0)) { /* the name exists already */
		cleanup_fd int there = openat(c->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (there < 0 || !same_bytes(there, fd)) {
			snprintf(name, sizeof(name), "%s~%08x", key,
				 (unsigned int)(hash_of(fd) >> 32));
			if (renameat(c->dir, tmp, c->dir, name))
				rc = -errno;
		} else {
			bytes = 0;
		}
	}
	unlinkat(c->dir, tmp, 0);
	if (rc || !cache_key_ok(name))
		return rc ? rc : -ENAMETOOLONG;
	snprintf(target, sizeof(target), "../%s", name);
	link_stat(c, st, target);
	*stored = mem_strdup(name);
	c->bytes += bytes;
	sweep_to_bound(c);
	return 0;
}

/* ---- the bound ---- */

struct file {
	char *name;
	uint64_t bytes;
	int64_t used_ns;
};

static int by_use(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

/* Links whose index is gone, and refusals of older versions. */
static void sweep_links(struct cache *c)
{
	cleanup_dir DIR *d = fdopendir(openat(c->by_stat, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char target[1024];
		ssize_t n = readlinkat(c->by_stat, e->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = 0;
		if (target[0] == '!' ? strncmp(target, "!" CACHE_VERSION ":",
					       sizeof("!" CACHE_VERSION ":") - 1) != 0 :
				       faccessat(c->by_stat, target, F_OK, 0) != 0)
			unlinkat(c->by_stat, e->d_name, 0);
	}
}

static void sweep(struct cache *c, uint64_t target)
{
	cleanup_dir DIR *d = fdopendir(openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct file *files = NULL;
	size_t n = 0, cap = 0;
	struct dirent *e;

	c->bytes = 0;
	while (d && (e = readdir(d))) {
		struct stat st;

		if (fstatat(c->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (!strncmp(e->d_name, ".tmp-", 5)) {
			if (time(NULL) - st.st_mtim.tv_sec > TMP_OLD_S)
				unlinkat(c->dir, e->d_name, 0);
			continue;
		}
		mem_grow(files, n, cap);
		files[n++] = (struct file){mem_strdup(e->d_name), (uint64_t)st.st_size,
					   st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec};
		c->bytes += (uint64_t)st.st_size;
	}
	if (c->bytes > target && n)
		qsort(files, n, sizeof(*files), by_use);
	for (size_t i = 0; i < n; i++) {
		if (c->bytes > target && !unlinkat(c->dir, files[i].name, 0))
			c->bytes -= files[i].bytes;
		free(files[i].name);
	}
	free(files);
	sweep_links(c);
}
