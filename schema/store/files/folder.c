/* SPDX-License-Identifier: Apache-2.0 */
/* folder: names, modes, group and lock of the store's folder. */
#include "schema/store/files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/file/owner.h"

#define DIR_MODE  0750
#define FILE_MODE 0640

/* The group that may read the store; (gid_t)-1: leave it as it is. */
static gid_t folder_group(void)
{
	const struct group *gr = getgrnam("sonde");
	const char *sudo = getenv("SUDO_GID");
	char *end;
	unsigned long v;

	if (gr)
		return gr->gr_gid;
	if (geteuid() != 0 || !sudo || !*sudo)
		return (gid_t)-1;
	v = strtoul(sudo, &end, 10);
	return *end || v >= UINT32_MAX ? (gid_t)-1 : (gid_t)v;
}

static void folder_share(int fd, mode_t mode)
{
	gid_t group = folder_group();

	/* if the files cannot be given to the group, only this user can read them: no reason to
	 * stop */
	if (group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) < 0)
		log_debug("cannot give the store's file to group %u: %s", group, strerror(errno));
	if (fchmod(fd, mode) < 0)
		log_debug("cannot set the mode of the store's file: %s", strerror(errno));
}

void folder_own(int fd, const char *path, mode_t mode)
{
	owner_inherit(fd, path);
	folder_share(fd, mode);
}

void folder_own_at(int dir, int fd, const char *name, mode_t mode)
{
	owner_inherit_at(dir, name);
	folder_share(fd, mode);
}

int folder_open(const char *dir)
{
	cleanup_fd int fd = open(dir, O_PATH | O_NOFOLLOW | O_CLOEXEC), target = -1;
	struct stat st, link;

	if (fd < 0 || fstat(fd, &link) < 0)
		return -errno;
	if (S_ISDIR(link.st_mode))
		return take_fd(&fd);
	if (!S_ISLNK(link.st_mode))
		return -ENOTDIR;
	target = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (target < 0 || fstat(target, &st) < 0)
		return -errno;
	if (geteuid() == 0 && link.st_uid != 0 && link.st_uid != st.st_uid)
		return -EPERM;
	return take_fd(&target);
}

int folder_sync(const char *dir)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int folder_refuse(const char *dir, int error, struct err *e)
{
	if (error == ENOSPC || error == EDQUOT)
		return folder_full(dir, e);
	if (error == EROFS) {
		err_set(e, -error, EXIT_STORE, "cannot write to the store's folder %s: %s", dir,
			strerror(error));
		err_fix(e, FOLDER_READ_ONLY_FIX);
		return -error;
	}
	if (error == EACCES || error == EPERM) {
		err_set(e, -error, EXIT_PERMISSION, "cannot write to the store's folder %s: %s",
			dir, strerror(error));
		err_fix(e, "run it with sudo, or choose a folder of your own: --store DIR");
		return -error;
	}
	err_set(e, -error, EXIT_STORE, "cannot make the store's folder %s: %s", dir,
		strerror(error));
	err_fix(e, "choose another folder: --store DIR");
	return -error;
}

static int folder_make(const char *dir, mode_t mode)
{
	cleanup_fd int fd = -1;

	if (mkdir(dir, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	folder_share(fd, mode);
	return 0;
}

/* A link of that name leads out of the store: it is taken away, its target is left alone. */
static void folder_remove_link(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) ||
	    lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
		return;
	if (unlink(path) == 0)
		log_warn("store: %s was a link and is removed: it must be a folder of the store",
			 path);
}

/* Make the parents, as `mkdir -p` would: theirs is the umask's mode. */
static void folder_make_parents(const char *dir)
{
	char part[PATH_MAX];
	char *slash;

	snprintf(part, sizeof(part), "%s", dir);
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(part, 0755); /* the last mkdir says what is wrong */
		*slash = '/';
	}
}

static void folder_give(const char *path)
{
	cleanup_fd int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		owner_inherit(fd, path);
}

int folder_prepare(const char *dir, struct err *e)
{
	char writers[PATH_MAX];
	struct stat st;
	int rc;

	folder_make_parents(dir);
	rc = folder_make(dir, DIR_MODE);
	if (!rc && stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	if (!rc) {
		folder_remove_link(dir, "writers");
		folder_remove_link(dir, "images");
		folder_remove_link(dir, "days");
	}
	if (!rc && (size_t)snprintf(writers, sizeof(writers), "%s/writers", dir) >= sizeof(writers))
		rc = -ENAMETOOLONG;
	if (!rc)
		rc = folder_make(writers, 0700);
	if (!rc)
		folder_give(writers);
	if (!rc && access(dir, R_OK | W_OK | X_OK) < 0)
		rc = -errno;
	return rc ? folder_refuse(dir, -rc, e) : 0;
}

int folder_lock(const char *dir)
{
	char path[PATH_MAX];
	cleanup_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return -errno;
	owner_inherit(fd, path);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return take_fd(&fd);
}

int folder_lock_refuse(const char *dir, int rc, struct err *e)
{
	bool rights = rc == -EACCES || rc == -EPERM, disk = rc == -EROFS || rc == -EIO;
	const struct passwd *pw = getpwuid(geteuid());
	struct stat st;

	if (rc == -ENOSPC)
		return folder_full(dir, e);
	err_set(e, rc, rights ? EXIT_PERMISSION : EXIT_STORE, "cannot %s the store %s: %s",
		disk ? "write to" : "lock", dir, strerror(-rc));
	if (rc == -EROFS)
		err_fix(e, FOLDER_READ_ONLY_FIX);
	else if (disk)
		err_fix(e,
			"sudo dmesg | tail    says what ails its disk; another folder: --store DIR");
	else if (rights && pw && stat(dir, &st) == 0 && st.st_uid == geteuid())
		err_fix(e, "sudo chown -R %s %s    gives its files to %s, who owns the folder",
			pw->pw_name, dir, pw->pw_name);
	else if (rights)
		err_fix(e, "run it with sudo, or choose a folder of your own: --store DIR");
	return rc;
}

static bool has_shape(const char *name, const char *shape)
{
	if (strlen(name) != strlen(shape))
		return false;
	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
			return false;
	return true;
}

bool folder_is_kept_name(const char *name)
{
	return folder_is_segment_name(name) && atoi(name + 17) >= FOLDER_KEPT;
}

int64_t folder_begun_ns(const char *name)
{
	struct tm tm = {0};

	if (sscanf(name, "%4d%2d%2dT%2d%2d%2dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		   &tm.tm_min, &tm.tm_sec) != 6)
		return INT64_MAX;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return (int64_t)timegm(&tm) * NSEC_PER_SEC;
}

bool folder_is_segment_name(const char *name)
{
	return has_shape(name, "00000000T000000Z-0000.db");
}

static int folder_by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

struct folder_name {
	ino_t ino;
	char name[SEGMENT_NAME_MAX];
};

/* Of one file the first name first. */
static int folder_by_inode(const void *a, const void *b)
{
	const struct folder_name *x = a, *y = b;

	return x->ino != y->ino ? (x->ino > y->ino) - (x->ino < y->ino) : strcmp(x->name, y->name);
}

enum folder_kind { FOLDER_FILES, FOLDER_OTHERS, FOLDER_ALL };

/* A FIFO, a device, a link or a folder of that name is not a file of ours. */
static bool folder_has_kind(int dirfd, const struct dirent *de, enum folder_kind kind)
{
	struct stat st;
	bool file = de->d_type == DT_REG;

	if (kind == FOLDER_ALL)
		return true;
	if (de->d_type == DT_UNKNOWN) {
		if (fstatat(dirfd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
		file = S_ISREG(st.st_mode);
	}
	return file == (kind == FOLDER_FILES);
}

/* Two names of one file? Its rows would count twice. */
static bool folder_is_same(int dirfd, const char *a, const char *b)
{
	struct stat x, y;

	return fstatat(dirfd, a, &x, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dirfd, b, &y, AT_SYMLINK_NOFOLLOW) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Those that are such names, in order. */
static int folder_names(const char *dir, bool (*is_one)(const char *name), enum folder_kind kind,
			char (**out)[SEGMENT_NAME_MAX], size_t *n)
{
	cleanup_dir DIR *d = opendir(dir);
	struct folder_name *found = NULL;
	const struct dirent *de;
	size_t count = 0, cap = 0, kept = 0;

	if (!d)
		return -errno;
	while ((de = readdir(d))) {
		if (!is_one(de->d_name) || !folder_has_kind(dirfd(d), de, kind))
			continue;
		mem_grow(found, count, cap);
		found[count].ino = de->d_ino;
		memcpy(found[count++].name, de->d_name, strlen(de->d_name) + 1);
	}
	if (count)
		qsort(found, count, sizeof(*found), folder_by_inode);
	for (size_t i = 0; i < count; i++)
		if (!kept || found[i].ino != found[kept - 1].ino ||
		    !folder_is_same(dirfd(d), found[i].name, found[kept - 1].name))
			found[kept++] = found[i];
	*out = kept ? mem_array(kept, sizeof(**out)) : NULL;
	for (size_t i = 0; i < kept; i++)
		memcpy((*out)[i], found[i].name, SEGMENT_NAME_MAX);
	free(found);
	if (kept)
		qsort(*out, kept, sizeof(**out), folder_by_name);
	*n = kept;
	return 0;
}

int folder_segments(const char *dir, char (**out)[SEGMENT_NAME_MAX], size_t *n)
{
	return folder_names(dir, folder_is_segment_name, FOLDER_FILES, out, n);
}

int folder_strange(const char *dir, char (**out)[SEGMENT_NAME_MAX], size_t *n)
{
	return folder_names(dir, folder_is_segment_name, FOLDER_OTHERS, out, n);
}

/* NAME.db.bad, NAME.db.bad.2 */
bool folder_is_aside_name(const char *name)
{
	char segment[SEGMENT_NAME_MAX];
	const char *bad = strstr(name, ".bad");

	if (!bad || strlen(name) >= SEGMENT_NAME_MAX || strchr(bad, '-'))
		return false;
	snprintf(segment, sizeof(segment), "%.*s", (int)(bad - name), name);
	return folder_is_segment_name(segment);
}

int folder_aside(const char *dir, char (**out)[SEGMENT_NAME_MAX], size_t *n)
{
	return folder_names(dir, folder_is_aside_name, FOLDER_FILES, out, n);
}

/* A clock that went back for good leaves all names to one second, which has 9999 of them. */
static void folder_next_second(char stamp[17])
{
	struct tm tm = {0};
	time_t at;

	if (!strptime(stamp, "%Y%m%dT%H%M%SZ", &tm))
		return;
	at = timegm(&tm) + 1;
	gmtime_r(&at, &tm);
	strftime(stamp, 17, "%Y%m%dT%H%M%SZ", &tm);
}

/* The stamp and number that come after all that are there. */
static int folder_next_name(const char *dir, char stamp[17], int *number)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	time_t now = time(NULL);
	struct tm tm;
	size_t n;
	int rc = folder_segments(dir, &names, &n);

	if (rc)
		return rc;
	gmtime_r(&now, &tm);
	strftime(stamp, 17, "%Y%m%dT%H%M%SZ", &tm);
	*number = 1;
	if (n && strncmp(names[n - 1], stamp, 16) >= 0) {
		memcpy(stamp, names[n - 1], 16);
		stamp[16] = '\0';
		*number = atoi(names[n - 1] + 17) + 1;
	}
	if (*number > 9999) {
		folder_next_second(stamp);
		*number = 1;
	}
	free(names);
	return 0;
}

int folder_new_segment(const char *dir, char path[PATH_MAX], struct err *e)
{
	cleanup_fd int at = folder_open(dir);
	char stamp[17], name[SEGMENT_NAME_MAX];
	int number;
	int rc = at < 0 ? at : folder_next_name(dir, stamp, &number);

	for (; !rc && number < 10000; number++) {
		cleanup_fd int fd = -1;

		snprintf(name, sizeof(name), "%s-%04d.db", stamp, number);
		if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
			return folder_refuse(dir, ENAMETOOLONG, e);
		fd = openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
		if (fd >= 0) {
			folder_own_at(at, fd, name, FILE_MODE);
			return 0;
		}
		if (errno != EEXIST)
			rc = -errno;
	}
	return folder_refuse(dir, rc ? -rc : EEXIST, e);
}

/* --- ending one on demand --- */

static int folder_newest(const char *dir, char name[SEGMENT_NAME_MAX], struct err *e)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	size_t n = 0;
	int rc = folder_segments(dir, &names, &n);

	if (rc)
		return err_set(e, rc, rc == -EACCES ? EXIT_PERMISSION : EXIT_STORE,
			       "cannot read the store's folder %s: %s", dir, strerror(-rc));
	if (n)
		memcpy(name, names[n - 1], SEGMENT_NAME_MAX);
	else
		rc = err_set(e, -ENOENT, EXIT_NOTHING, "no file of the store %s is being written",
			     dir);
	free(names);
	return rc;
}

/* Under another name first, so that no reader sees half of it. */
int folder_turn(const char *dir, char name[SEGMENT_NAME_MAX], struct err *e)
{
	cleanup_fd int at = folder_open(dir), fd = -1;
	int rc = folder_newest(dir, name, e);

	if (rc)
		return rc;
	if (at < 0)
		return folder_refuse(dir, -at, e);
	(void)unlinkat(at, "turn.new", 0); /* of another one, or a link */
	fd = openat(at, "turn.new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return folder_refuse(dir, errno, e);
	folder_own_at(at, fd, "turn.new", FILE_MODE);
	errno = ENOSPC; /* what a short write means */
	if (write(fd, name, strlen(name)) != (ssize_t)strlen(name) ||
	    renameat(at, "turn.new", at, "turn") < 0)
		return folder_refuse(dir, errno, e);
	return 0;
}

/* A name without a file says nothing about others: after the clock went back, or in an emptied
 * folder, all files would come before it. */
bool folder_is_turned(const char *dir, const char *name)
{
	char path[PATH_MAX], turned[SEGMENT_NAME_MAX];
	cleanup_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/turn", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	n = fd < 0 ? -1 : read(fd, turned, sizeof(turned) - 1);
	if (n <= 0)
		return false;
	turned[n] = '\0';
	if (strcmp(name, turned) >= 0)
		return !strcmp(name, turned);
	return folder_is_segment_name(turned) &&
	       (size_t)snprintf(path, sizeof(path), "%s/%s", dir, turned) < sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* To the first free name, which `to` gets. */
static int set_aside_in(int at, const char *name, char to[NAME_MAX + 1])
{
	int rc = -1;

	for (int i = 1; i < 1000; i++) {
		if (i == 1)
			snprintf(to, NAME_MAX + 1, "%.200s.bad", name);
		else
			snprintf(to, NAME_MAX + 1, "%.200s.bad.%d", name, i);
		rc = linkat(at, name, at, to, 0); /* unlike rename, never replaces */
		if (rc == 0 || errno != EEXIST)
			break;
	}
	if (rc < 0)
		rc = renameat(at, name, at, to); /* a file system without hard links */
	else
		rc = unlinkat(at, name, 0);
	return rc < 0 ? -errno : 0;
}

int folder_set_aside(const char *path, char aside[PATH_MAX])
{
	static const char *const suffix[] = {"-wal", "-shm"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char dir[PATH_MAX], from[NAME_MAX + 8], bad[NAME_MAX + 1], to[NAME_MAX + 8];
	cleanup_fd int at = -1;
	int rc;

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + (slash == path) : 1,
		 slash ? path : ".");
	at = folder_open(dir);
	if (at < 0)
		return at;
	rc = set_aside_in(at, name, bad);
	if (rc)
		return rc;
	snprintf(aside, PATH_MAX, "%.*s%s", (int)(name - path), path, bad);
	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
		snprintf(from, sizeof(from), "%s%s", name, suffix[i]);
		snprintf(to, sizeof(to), "%s%s", bad, suffix[i]);
		(void)renameat(at, from, at, to); /* there may be none */
	}
	return 0;
}

bool folder_has_no_inode(const char *path)
{
	struct statvfs vfs;

	return statvfs(path, &vfs) == 0 && vfs.f_files && !vfs.f_favail;
}

int folder_full(const char *dir, struct err *e)
{
	struct statvfs vfs;
	unsigned long long free_kb = 0;

	if (folder_has_no_inode(dir)) {
		err_set(e, -ENOSPC, EXIT_STORE,
			"store full: the disk that holds %s has no room for another file (all its inodes are in use); nothing stored is hurt",
			dir);
		err_fix(e,
			"remove files there (df -i %s shows how many), or choose another folder: --store DIR",
			dir);
		return -ENOSPC;
	}
	if (statvfs(dir, &vfs) == 0)
		free_kb = (unsigned long long)vfs.f_bavail * vfs.f_frsize / 1024;
	err_set(e, -ENOSPC, EXIT_STORE,
		"store full: the disk that holds %s has %llu KiB left; nothing stored is hurt", dir,
		free_kb);
	err_fix(e, "free some space there, or choose another folder: --store DIR");
	return -ENOSPC;
}

int folder_copy(const char *from, int to)
{
	cleanup_fd int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;
	off_t left;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	for (left = st.st_size; left > 0;) {
		ssize_t n = copy_file_range(fd, NULL, to, NULL, (size_t)left, 0);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		left -= n;
	}
	return 0;
}

bool folder_is_archived(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t id[4];

	return fd >= 0 && pread(fd, id, sizeof(id), 68) == sizeof(id) &&
	       ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) ==
		       FOLDER_ARCHIVED;
}
