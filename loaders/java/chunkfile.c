/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/chunkfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

#define DESCRIPTORS_MAX 200000
#define BEGAN_AT        32 /* in a chunk's header */

static bool ends_in_jfr(const char *path, size_t len)
{
	static const char deleted[] = " (deleted)";

	if (len > sizeof(deleted) - 1 &&
	    !memcmp(path + len - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
		len -= sizeof(deleted) - 1;
	return len > 4 && !memcmp(path + len - 4, ".jfr", 4);
}

/* Its descriptor, if it is a chunk; *began: when that began. */
static int chunk_open(int dir, const char *name, uint64_t *began, struct stat *st)
{
	unsigned char head[BEGAN_AT + 8];
	cleanup_fd int fd = -1;

	/* before it is opened: no FIFO, no device */
	if (fstatat(dir, name, st, 0) || !S_ISREG(st->st_mode))
		return -ENOENT;
	fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode) ||
	    pread(fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, "FLR", 4) != 0)
		return -ENOENT;
	*began = 0;
	for (int i = 0; i < 8; i++)
		*began = *began << 8 | head[BEGAN_AT + i];
	return take_fd(&fd);
}

static void consider(DIR *d, const char *name, uint64_t *newest, struct chunkfile *out)
{
	struct stat st;
	uint64_t began = 0;
	int fd = chunk_open(dirfd(d), name, &began, &st);

	if (fd < 0)
		return;
	if (out->fd >= 0 && began <= *newest) {
		close(fd);
		return;
	}
	chunkfile_close(out);
	*newest = began;
	*out = (struct chunkfile){
		.fd = fd, .theirs = atoi(name), .dev = st.st_dev, .ino = st.st_ino};
}

int chunkfile_find(uint32_t pid, struct chunkfile *out)
{
	char path[64], link[4096];
	cleanup_dir DIR *d = NULL;
	const struct dirent *at;
	uint64_t newest = 0;
	ssize_t n;

	*out = CHUNKFILE_NONE;
	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	d = opendir(path);
	if (!d)
		return -errno;
	for (int i = 0; i < DESCRIPTORS_MAX && (at = readdir(d)); i++) {
		n = at->d_name[0] == '.' ? -1 :
					   readlinkat(dirfd(d), at->d_name, link, sizeof(link));
		if (n > 0 && ends_in_jfr(link, (size_t)n))
			consider(d, at->d_name, &newest, out);
	}
	return out->fd < 0 ? -ENOENT : 0;
}

bool chunkfile_is_current(uint32_t pid, const struct chunkfile *c)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, c->theirs);
	return c->fd >= 0 && !stat(path, &st) && st.st_dev == c->dev && st.st_ino == c->ino;
}

void chunkfile_close(struct chunkfile *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = CHUNKFILE_NONE;
}
