/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/usage.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "schema/base/mem.h"
#include "schema/store/files/folder.h"

#define BLOCK 512ull /* unit of st_blocks */

int usage_disk(const char *dir, struct usage *out)
{
	struct statvfs vfs;

	if (statvfs(dir, &vfs) < 0)
		return -errno;
	out->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	out->disk_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize;
	return 0;
}

/* Below images/? Paths come from fts, all beginning with `dir`. */
static bool in_images(const char *path, size_t dir_len)
{
	return !strncmp(path + dir_len, "/images/", 8) || !strcmp(path + dir_len, "/images");
}

static bool is_log(const FTSENT *f)
{
	return f->fts_level == 1 && f->fts_namelen > 4 &&
	       !strcmp(f->fts_name + f->fts_namelen - 4, "-wal");
}

/* `known`: how much images/ takes; NULL: to be found out. */
static int measure(const char *dir, const uint64_t *known, struct usage *out)
{
	char *roots[] = {(char *)dir, NULL};
	struct usage u = {.images_bytes = known ? *known : 0, .bytes = known ? *known : 0};
	size_t len = strlen(dir);
	int rc = usage_disk(dir, &u);
	FTSENT *f;
	FTS *fts;

	if (rc)
		return rc;
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	if (!fts)
		return -errno;
	while ((f = fts_read(fts))) {
		if (f->fts_info == FTS_DP || f->fts_info == FTS_NS || f->fts_info == FTS_ERR)
			continue; /* a folder's second visit; gone meanwhile */
		if (known && in_images(f->fts_path, len)) {
			fts_set(fts, f, FTS_SKIP);
			continue;
		}
		u.bytes += (uint64_t)f->fts_statp->st_blocks * BLOCK;
		u.images_bytes +=
			in_images(f->fts_path, len) ? (uint64_t)f->fts_statp->st_blocks * BLOCK : 0;
		u.wal_bytes += is_log(f) ? (uint64_t)f->fts_statp->st_blocks * BLOCK : 0;
		u.segments += f->fts_level == 1 && folder_is_segment_name(f->fts_name);
	}
	fts_close(fts);
	*out = u;
	return 0;
}

int usage_measure(const char *dir, struct usage *out)
{
	return measure(dir, NULL, out);
}

int usage_measure_again(const char *dir, struct usage *u)
{
	uint64_t images = u->images_bytes;

	return measure(dir, &images, u);
}

struct kept {
	char *path;
	int64_t used_ns;
	uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

uint64_t usage_trim_images(const char *dir, uint64_t max_bytes)
{
	char images[PATH_MAX];
	char *roots[] = {images, NULL};
	struct kept *files = NULL;
	size_t n = 0, cap = 0;
	uint64_t sum = 0, freed = 0;
	FTSENT *f;
	FTS *fts;

	snprintf(images, sizeof(images), "%s/images", dir);
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	while (fts && (f = fts_read(fts))) {
		if (f->fts_info != FTS_F)
			continue;
		mem_grow(files, n, cap);
		files[n++] = (struct kept){
			.path = mem_strdup(f->fts_path),
			.used_ns = (int64_t)f->fts_statp->st_mtim.tv_sec * 1000000000 +
				   f->fts_statp->st_mtim.tv_nsec,
			.bytes = (uint64_t)f->fts_statp->st_blocks * BLOCK,
		};
		sum += files[n - 1].bytes;
	}
	if (fts)
		fts_close(fts);
	if (n)
		qsort(files, n, sizeof(*files), by_use);
	for (size_t i = 0; i < n; i++) {
		if (sum - freed > max_bytes && unlink(files[i].path) == 0)
			freed += files[i].bytes;
		free(files[i].path);
	}
	free(files);
	return freed;
}
