/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostmaps_images: the files in sonde-maps' messages, and their indexes.
 *
 * Each sonde-maps assigns its own ids. One that takes over the tables of its predecessor continues
 * after its ids; one that starts afresh does not, so an id is looked up in the generation in which
 * the tables were made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/lib/host/maps/private.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"

#define HAS_FILES_MAX 512 /* files that are looked at */

#define UNUSED_NS (60 * NSEC_PER_SEC) /* after this an image that nothing maps is dropped */

static struct image_entry *find(const struct hostmaps *hm, uint64_t generation, uint32_t id)
{
	uint64_t key = generation << 32 | id;
	struct image_entry *img;

	HASH_FIND(hh, hm->images, &key, sizeof(key), img);
	return img;
}

struct image_entry *hostmaps_image_told(const struct hostmaps *hm, uint32_t id)
{
	return find(hm, hm->generation, id);
}

struct image_entry *hostmaps_image_of(const struct hostmaps *hm, uint32_t id, uint64_t tables_ns)
{
	uint64_t oldest = hm->generation > GENERATIONS ? hm->generation - GENERATIONS : 0;
	struct image_entry *img = NULL;

	for (uint64_t g = hm->generation; g > oldest && !img; g--)
		if (hm->generation_ns[g % GENERATIONS] <= tables_ns)
			img = find(hm, g, id);
	for (uint64_t g = hm->generation; g > oldest && !img;
	     g--) /* the end of a generation is noticed late */
		img = find(hm, g, id);
	return img;
}

struct hostmaps_image *hostmaps_image(const struct hostmaps *hm, uint32_t id)
{
	struct image_entry *img = hostmaps_image_of(hm, id, UINT64_MAX);

	return img ? &img->pub : NULL;
}

/* As two instances of sonde-maps reported it; files read from /proc have no generation. */
static bool same_inode(const struct mp_image *a, const struct mp_image *b)
{
	return a->ino == b->ino && a->major == b->major && a->minor == b->minor &&
	       (a->generation == b->generation || !a->generation || !b->generation);
}

bool hostmaps_same_file(const struct image_entry *a, const struct image_entry *b)
{
	if (a == b)
		return true;
	if (!a || !b || a->pub.generation == b->pub.generation ||
	    strcmp(a->pub.path, b->pub.path) || !same_inode(&a->file, &b->file))
		return false;
	return !*a->pub.build_id || !*b->pub.build_id || !strcmp(a->pub.build_id, b->pub.build_id);
}

size_t hostmaps_files(const struct hostmaps_process *pub, const char **paths, size_t max,
		      const struct hostmaps_image **exe)
{
	const struct process *p = (const struct process *)pub;
	size_t n = 0;

	*exe = NULL;
	for (size_t i = 0; i < p->maps.n_now && n < max; i++) {
		const struct image_entry *img = p->maps.now[i].image;

		if (!img || !img->pub.path)
			continue;
		paths[n++] = img->pub.path;
		if (!*exe && !strcmp(img->pub.path, pub->exe))
			*exe = &img->pub;
	}
	return n;
}

bool hostmaps_has_file(const struct hostmaps_process *p, const char *name)
{
	const char *paths[HAS_FILES_MAX];
	const struct hostmaps_image *exe;
	size_t n = hostmaps_files(p, paths, HAS_FILES_MAX, &exe);

	for (size_t i = 0; i < n && i < HAS_FILES_MAX; i++) {
		const char *slash = strrchr(paths[i], '/');

		if (slash && !strcmp(slash + 1, name))
			return true;
	}
	return false;
}

static void image_queue(struct hostmaps *hm, struct image_entry *img)
{
	if (img->reported)
		return;
	img->reported = true;
	img->next_ready = NULL;
	*hm->ready_tail = img;
	hm->ready_tail = &img->next_ready;
}

void hostmaps_image_free(struct hostmaps *hm, struct image_entry *img)
{
	HASH_DEL(hm->images, img);
	image_close(img->index);
	free((char *)(uintptr_t)img->pub.path);
	free((char *)(uintptr_t)img->pub.build_id);
	free((char *)(uintptr_t)img->pub.key);
	free((char *)(uintptr_t)img->pub.reason);
	free(img->pub.user);
	free(img);
}

static char *hex(const uint8_t *bytes, size_t n)
{
	char *s = mem_alloc(2 * n + 1);

	for (size_t i = 0; i < n; i++)
		snprintf(s + 2 * i, 3, "%02x", bytes[i]);
	return s;
}

void hostmaps_on_image(struct hostmaps *hm, const struct mapspack_msg *msg)
{
	const struct mp_image *m = &msg->m.image;
	struct image_entry *img = hostmaps_image_told(hm, m->id);
	const char *slash;

	if (img || !m->id)
		return;
	img = mem_alloc(sizeof(*img));
	img->key = hm->generation << 32 | m->id;
	img->pub.id = m->id;
	img->pub.kind = m->kind;
	img->pub.file = m->file;
	img->pub.path = mem_strdup(msg->str[0]);
	slash = strrchr(img->pub.path, '/');
	img->pub.name = slash && slash[1] ? slash + 1 : img->pub.path;
	img->pub.build_id = mem_strdup("");
	img->file = *m;
	img->pub.key = mem_strdup("");
	img->pub.reason = mem_strdup("");
	img->pub.generation = hm->generation;
	HASH_ADD(hh, hm->images, key, sizeof(img->key), img);
}

static void ask(struct hostmaps *hm, struct image_entry *img, uint32_t flags)
{
	struct mp_want m = {.head = {.type = MP_WANT_INDEX, .size = sizeof(m)},
			    .id = img->pub.id,
			    .flags = flags,
			    .uses = img->uses};

	if (img->pub.generation == hm->generation && hm->fd >= 0)
		(void)!send(hm->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Checks the rows once; without rows, frame pointers are followed. */
static void rows_open(struct image_entry *img)
{
	const void *data;
	size_t size;

	img->rows = (struct unwind_section){0};
	if (image_unwind(img->index, &data, &size) && unwind_section_open(&img->rows, data, size))
		log_info("the unwind rows of %s cannot be read: another version, or damaged",
			 img->pub.path);
}

/* A second index of the file, with lines, which take long to read. The first key stays: it names
 * the same file. What another client asked for comes to all: most often it is known. */
static void image_again(struct hostmaps *hm, struct image_entry *img, int fd)
{
	struct image *index = NULL;

	if (fd < 0 || (img->index && image_is_of(img->index, fd)))
		return;
	if (image_open_sound_fd(fd, &index, NULL))
		return;
	image_close(img->index);
	img->index = index;
	img->pub.index = index;
	rows_open(img);
	img->pub.told++;
	if (!img->next_ready && hm->ready_tail != &img->next_ready) { /* not in the queue */
		img->reported = false;
		image_queue(hm, img);
	}
}

static void ident_take(struct image_entry *img, const struct image *index)
{
	const struct image_ident *id = image_ident(index);

	if (*img->pub.build_id || !id->build_id_len)
		return;
	free((char *)(uintptr_t)img->pub.build_id);
	img->pub.build_id = hex(id->build_id, id->build_id_len);
}

/* An index arrived: use it, or report that it cannot be read. */
static void image_ready(struct hostmaps *hm, struct image_entry *img, const char *key, int fd)
{
	struct image *index = NULL;
	struct err e = {0};

	if (fd < 0 || image_open_sound_fd(fd, &index, &e)) {
		log_debug("the index of %s cannot be read: %s", img->pub.path, e.what);
		ask(hm, img, MP_WANT_DAMAGED);
		return;
	}
	image_close(img->index);
	img->index = index;
	img->pub.index = index;
	rows_open(img);
	img->pub.state = MP_INDEX_READY;
	img->pub.told = 1;
	free((char *)(uintptr_t)img->pub.key);
	img->pub.key = mem_strdup(key);
	ident_take(img, index);
}

/* Enough to unwind with, and to identify the file by; names are still missing. */
static void image_rows(struct hostmaps *hm, struct image_entry *img, int fd)
{
	struct image *index = NULL;

	if (fd < 0 || image_open_sound_fd(fd, &index, NULL))
		return;
	image_close(img->index);
	img->index = index;
	rows_open(img);
	ident_take(img, index);
	image_queue(hm, img);
}

void hostmaps_on_index(struct hostmaps *hm, const struct mapspack_msg *msg, int fd)
{
	struct image_entry *img = hostmaps_image_told(hm, msg->m.index.id);

	if (img && img->pub.state == MP_INDEX_READY && msg->m.index.state == MP_INDEX_READY)
		image_again(hm, img, fd);
	if (!img || img->pub.state)
		return;
	if (msg->m.index.state == MP_INDEX_ROWS) {
		image_rows(hm, img, fd);
		return;
	}
	if (msg->m.index.state == MP_INDEX_READY) {
		image_ready(hm, img, msg->str[0], fd);
		if (!img->pub.state)
			return;
	} else {
		free((char *)(uintptr_t)img->pub.reason);
		img->pub.reason = mem_strdup(msg->str[1]);
		img->pub.state = MP_INDEX_REFUSED;
	}
	if (img->asked)
		hm->pending -= hm->pending > 0;
	image_queue(hm, img);
}

struct hostmaps_image *hostmaps_next_ready(struct hostmaps *hm)
{
	struct image_entry *img = hm->ready;

	if (!img)
		return NULL;
	hm->ready = img->next_ready;
	if (!hm->ready)
		hm->ready_tail = &hm->ready;
	img->next_ready = NULL;
	img->reported = img->pub.state != 0; /* its symbols follow its rows */
	return &img->pub;
}

bool hostmaps_awaits(const struct hostmaps *hm, uint64_t pending)
{
	const struct image_entry *img = find(hm, pending >> 32, (uint32_t)pending);

	return img && !img->pub.state && !img->index;
}

uint32_t hostmaps_pending(const struct hostmaps *hm)
{
	return hm->pending;
}

/* sonde-maps makes first what is needed most: it gets the number each time that has become four
 * times as large. */
void hostmaps_image_want(struct hostmaps *hm, struct image_entry *img)
{
	if (img->pub.state)
		return;
	img->uses += img->uses < UINT32_MAX;
	hm->pending += !img->asked;
	if (!img->asked || img->uses == img->uses_told * 4) {
		img->uses_told = img->uses;
		ask(hm, img, 0);
	}
	img->asked = true;
}

void hostmaps_image_hurry(struct hostmaps *hm, struct hostmaps_image *image)
{
	struct image_entry *img = (struct image_entry *)image;

	if (!img->asked || img->hurried || img->pub.state)
		return;
	img->hurried = true;
	ask(hm, img, MP_WANT_NOW);
}

void hostmaps_await_names(struct hostmaps *hm)
{
	for (struct image_entry *img = hm->images; img; img = img->hh.next)
		if (img->asked && !img->pub.state)
			ask(hm, img, MP_WANT_NOW);
}

void hostmaps_images_orphaned(struct hostmaps *hm)
{
	for (struct image_entry *img = hm->images; img; img = img->hh.next)
		if (img->asked && !img->pub.state) { /* its frames stay unnamed */
			img->pub.state = MP_INDEX_REFUSED;
			free((char *)(uintptr_t)img->pub.reason);
			img->pub.reason = mem_strdup("sonde-maps ended before its index was made");
			image_queue(hm, img);
		}
	hm->pending = 0;
}

void hostmaps_images_sweep(struct hostmaps *hm, uint64_t now)
{
	struct image_entry *img, *next;

	for (img = hm->ready; img; img = img->next_ready)
		img->marked = true;
	HASH_ITER (hh, hm->images, img, next) {
		if (img->marked) {
			img->unused_since_ns = 0;
			img->marked = false;
		} else if (!img->unused_since_ns) {
			img->unused_since_ns = now;
		} else if (now - img->unused_since_ns > UNUSED_NS &&
			   (img->pub.generation != hm->generation ||
			    now - img->unused_since_ns > 2 * UNUSED_NS)) {
			/* sonde-maps forgets its images after UNUSED_NS and assigns a new id later;
			 * by then this one is not used */
			hm->pending -= img->asked && !img->pub.state && hm->pending;
			hostmaps_image_free(hm, img);
		}
	}
}
