// SPDX-License-Identifier: Apache-2.0
/* indexer_files: the files that indexes are made of, what the cache knows of them, and where an
 * index is kept. */
#include "loaders/maps/indexing/indexer_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/maps/cache.h"
#include "loaders/lib/host/proc/openin.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define MEMORY_MAX (64ull << 20) /* indexes that could not be stored */

void indexer_drop_fds(struct indexer *ix, struct mimage *img)
{
	if (img->fd >= 0) {
		close(img->fd);
		ix->kept_fds--;
	}
	if (img->root_fd >= 0)
		close(img->root_fd);
	img->fd = img->root_fd = -1;
}

void indexer_set_refused(struct mimage *img, const char *reason)
{
	free(img->reason);
	img->reason = mem_strdup(reason);
	img->state = IMAGE_REFUSED;
	img->rows_only = false;
}

/* Has a debug package been installed since the index was made? As sonde-index's questions are
 * answered: below the file's root, then below ours. */
static bool is_outdated(struct indexer *ix, const struct mimage *img, const struct stat *st,
			int root_fd, const char *key)
{
	const struct root_id *root = &img->file.root, *own = &ix->world->own_root;
	char path[256];
	struct stat debug;

	if (!cache_debug_path(key, path, sizeof(path)))
		return false;
	if (!stat(path, &debug) && cache_is_older(ix->cache, st, &debug))
		return true;
	if (root_fd >= 0 &&
	    (root->ino != own->ino || root->dev != own->dev || root->mntns != own->mntns)) {
		cleanup_fd int fd = openin(root_fd, path, OPENIN_MAX_BYTES, &debug);

		return fd >= 0 && cache_is_older(ix->cache, st, &debug);
	}
	return false;
}

/* What the cache says of an open file. True: the image's state is settled. */
bool indexer_settle(struct indexer *ix, struct mimage *img, const struct stat *st, int root_fd)
{
	char *text = NULL;

	switch (cache_find(ix->cache, st, &text)) {
	case CACHE_KNOWN:
		if (is_outdated(ix, img, st, root_fd, text)) {
			free(text);
			return false;
		}
		indexer_drop_memory(ix, img); /* rows alone, until now */
		free(img->key);
		img->key = text;
		img->state = IMAGE_READY;
		img->rows_only = false;
		return true;
	case CACHE_REFUSED:
		indexer_set_refused(img, text);
		free(text);
		return true;
	default:
		return false;
	}
}

void indexer_see(struct indexer *ix, struct mimage *img, struct proc *p, uint64_t start,
		 uint64_t end)
{
	struct stat st;
	int fd;

	if (img->kind != MP_IMAGE_ELF || ix->kept_fds >= INDEXER_FDS_MAX)
		return;
	fd = opening_through(&ix->opening, img, p, start, end, &st, &img->root_fd);
	if (fd < 0)
		fd = opening_anyhow(&ix->opening, img, &st, &img->root_fd);
	if (fd < 0) {
		ix->world->stats.open_failed++;
		return; /* tried again when it is wanted */
	}
	ix->world->stats.opened++;
	img->file_bytes = (uint64_t)st.st_size;
	img->file_id = cache_file_id(&st);
	if (indexer_settle(ix, img, &st, img->root_fd)) {
		close(fd);
		if (img->root_fd >= 0)
			close(img->root_fd);
		img->root_fd = -1;
		return;
	}
	img->fd = fd;
	img->fd_since_ns = (uint64_t)clock_boot_ns();
	ix->kept_fds++;
}

uint64_t indexer_born(struct indexer *ix, const struct proc *p, const char *path, uint64_t ino,
		      uint64_t time_ns)
{
	return opening_born(&ix->opening, p, path, ino, time_ns);
}

/* ---- indexes ---- */

void indexer_drop_memory(struct indexer *ix, struct mimage *img)
{
	if (img->index_fd < 0)
		return;
	ix->memory_bytes -= img->index_bytes;
	close(img->index_fd);
	img->index_fd = -1;
}

/* `fd` is taken. false: there is no room, and what was kept before stays. */
static bool keep_in_memory(struct indexer *ix, struct mimage *img, int fd)
{
	const uint64_t others = ix->memory_bytes - (img->index_fd >= 0 ? img->index_bytes : 0);
	off_t bytes = lseek(fd, 0, SEEK_END);

	if (bytes < 0 || others + (uint64_t)bytes > MEMORY_MAX) {
		close(fd);
		return false;
	}
	indexer_drop_memory(ix, img);
	img->index_bytes = (uint64_t)bytes;
	ix->memory_bytes += img->index_bytes;
	img->index_fd = fd;
	return true;
}

bool indexer_adopt_rows(struct indexer *ix, struct mimage *img, const char *key, int fd)
{
	if (!keep_in_memory(ix, img, fd))
		return false;
	free(img->key);
	img->key = mem_strdup(key);
	img->state = IMAGE_READY;
	img->rows_only = true;
	return true;
}

/* Keeps an index (`fd` is taken) and takes it for the image's. -ENOSPC: there is no room for it. */
int indexer_adopt(struct indexer *ix, struct mimage *img, const char *key, int fd,
		  const struct stat *st)
{
	cleanup_fd int own = fd;
	char *stored = NULL;

	if (cache_put(ix->cache, key, own, st, &stored)) {
		/* no folder, or a full disk: kept in memory, as much as there may be */
		if (!keep_in_memory(ix, img, take_fd(&own)))
			return -ENOSPC;
		stored = mem_strdup(key);
	} else {
		indexer_drop_memory(ix, img);
	}
	free(img->key);
	img->key = stored;
	img->state = IMAGE_READY;
	img->rows_only = false;
	return 0;
}
