// SPDX-License-Identifier: Apache-2.0
/* world_images: which files there are (world.h says what tells them apart). */
#include "loaders/maps/world/world_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/maps/hub/hub.h"
#include "loaders/maps/publish/publish.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define IMAGE_KEEP_NS (60 * NSEC_PER_SEC)

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Names that are no file: image 0, but for the vDSO. */
bool world_is_anonymous(const char *path)
{
	return !*path || (path[0] == '[' && strcmp(path, "[vdso]")) || has_prefix(path, "//") ||
	       has_prefix(path, "/dev/zero") || has_prefix(path, "/anon_hugepage") ||
	       has_prefix(path, "/SYSV") || has_prefix(path, "anon_inode:");
}

char *world_trim_deleted(const char *path)
{
	static const char suffix[] = " (deleted)";
	size_t len = strlen(path), n = sizeof(suffix) - 1;

	if (len > n && !strcmp(path + len - n, suffix))
		len -= n;
	return mem_strndup(path, len);
}

void world_tell_image(struct world *w, const struct mimage *img)
{
	struct mp_image m = {.id = img->id,
			     .kind = img->kind,
			     .major = img->file.major,
			     .minor = img->file.minor,
			     .ino = img->file.ino,
			     .generation = img->file.generation,
			     .file = img->file_id};
	const char *str[] = {img->path};

	hub_emit(w->hub, MP_IMAGE, &m, str);
}

static struct mimage *image_add(struct world *w, char *key, size_t key_len, const struct file_id *f,
				char *path)
{
	struct mimage *img = mem_alloc(sizeof(*img));

	img->id = ++w->last_image;
	img->kind = strcmp(path, "[vdso]") ? MP_IMAGE_ELF : MP_IMAGE_VDSO;
	img->file = *f;
	img->path = path;
	img->fd = img->root_fd = img->index_fd = -1;
	img->key_bytes = key;
	img->key_len = key_len;
	HASH_ADD_KEYPTR(hh, w->by_file, img->key_bytes, img->key_len, img);
	HASH_ADD(hh_id, w->by_id, id, sizeof(img->id), img);
	w->stats.images++;
	publish_image_new(w->publish, img);
	return img;
}

/* `is_new` says whether it was never seen. `name` may end in " (deleted)". NULL: anonymous. */
struct mimage *world_image_intern(struct world *w, const struct file_id *f, const char *name,
				  uint64_t len, bool *is_new)
{
	struct file_id vdso = {0};
	struct strbuf key = STRBUF_INIT;
	struct mimage *img = NULL;
	char *path;

	*is_new = false;
	if (world_is_anonymous(name))
		return NULL;
	path = world_trim_deleted(name);
	if (!strcmp(path, "[vdso]")) {
		if (len != w->vdso_len) { /* that of 32-bit programs: not ours to read */
			free(path);
			return NULL;
		}
		f = &vdso;
	}
	strbuf_add(&key, f, sizeof(*f));
	strbuf_addstr(&key, path);
	HASH_FIND(hh, w->by_file, key.buf, key.len, img);
	if (img) {
		free(path);
		strbuf_release(&key);
		return img;
	}
	*is_new = true;
	{
		size_t n = key.len;

		return image_add(w, strbuf_take(&key), n, f, path);
	}
}

void world_image_free(struct world *w, struct mimage *img)
{
	if (w->image_gone)
		w->image_gone(w->ctx, img);
	publish_image_gone(w->publish, img);
	HASH_DELETE(hh, w->by_file, img);
	HASH_DELETE(hh_id, w->by_id, img);
	w->stats.images--;
	if (img->fd >= 0)
		close(img->fd);
	if (img->root_fd >= 0)
		close(img->root_fd);
	if (img->index_fd >= 0)
		close(img->index_fd);
	free(img->path);
	free(img->key);
	free(img->reason);
	free(img->key_bytes);
	free(img);
}

struct mimage *world_image(struct world *w, uint32_t id)
{
	struct mimage *img;

	HASH_FIND(hh_id, w->by_id, &id, sizeof(id), img);
	return img;
}

void world_sweep(struct world *w, uint64_t now_ns)
{
	struct mimage *img, *next_img;

	for (struct proc *p = w->procs; p; p = p->hh.next) {
		for (size_t i = 0; i < p->maps.n_now; i++)
			if (p->maps.now[i].image)
				((struct mimage *)p->maps.now[i].image)->marked = true;
	}
	HASH_ITER (hh, w->by_file, img, next_img) {
		if (img->marked || !img->unused_since_ns)
			img->unused_since_ns = img->marked ? 0 : now_ns;
		else if (now_ns - img->unused_since_ns > IMAGE_KEEP_NS)
			world_image_free(w, img);
		if (img->marked)
			img->marked = false;
	}
}
