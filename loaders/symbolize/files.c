/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/symbolize/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/host/budget/weight.h"
#include "loaders/lib/host/maps/cache.h"
#include "loaders/lib/host/maps/indexchild.h"
#include "loaders/lib/host/proc/openin.h"
#include "loaders/symbolize/debuginfod.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"

#define ROOTS_MAX   32
#define DEADLINE_NS (120 * NSEC_PER_SEC)
#define NICE        WEIGHT_RECORD /* as its parent: a person waits */

struct known {
	char *name; /* path, NUL-free separators, build-id, key */
	struct image *image;
	char *reason;
	UT_hash_handle hh;
};

struct files {
	struct cache *cache;
	char *program;
	struct debuginfod *server;
	int roots[ROOTS_MAX]; /* distinct; our own first */
	size_t n_roots;
	struct known *known;
};

/* --- roots --- */

static void root_add(struct files *f, int fd)
{
	struct stat new, old;

	if (fd < 0)
		return;
	if (f->n_roots == ROOTS_MAX || fstat(fd, &new)) {
		close(fd);
		return;
	}
	for (size_t i = 0; i < f->n_roots; i++)
		if (!fstat(f->roots[i], &old) && old.st_ino == new.st_ino &&
		    old.st_dev == new.st_dev) {
			close(fd);
			return;
		}
	f->roots[f->n_roots++] = fd;
}

static void roots_find(struct files *f)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;

	root_add(f, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	while (proc && (d = readdir(proc))) {
		unsigned long pid = strtoul(d->d_name, NULL, 10);

		if (pid)
			root_add(f, openin_root((uint32_t)pid));
	}
	if (proc)
		closedir(proc);
}

struct files *files_open(const char *store_dir, const char *program, struct debuginfod *server)
{
	struct files *f = mem_alloc(sizeof(*f));

	f->cache = cache_open(store_dir, CACHE_MAX_BYTES);
	f->program = mem_strdup(program);
	f->server = server;
	roots_find(f);
	return f;
}

void files_close(struct files *f)
{
	struct known *k, *tmp;

	if (!f)
		return;
	HASH_ITER (hh, f->known, k, tmp) {
		HASH_DEL(f->known, k);
		image_close(k->image);
		free(k->name);
		free(k->reason);
		free(k);
	}
	for (size_t i = 0; i < f->n_roots; i++)
		close(f->roots[i]);
	cache_close(f->cache);
	free(f->program);
	free(f);
}

/* --- one file --- */

struct wanted {
	const char *path, *build_id, *key;
	uint64_t file; /* cache_file_id of a file whose index was never reported; 0: unknown */
};

/* Of a key of a file whose index was not made in time: "pending-GENERATION-IMAGE-FILE"
 * (naming_user.c), FILE in hex. */
static uint64_t pending_file(const char *key)
{
	const char *last = strrchr(key, '-');

	return !strncmp(key, "pending-", 8) && last && strlen(last + 1) == 16 ?
		       strtoull(last + 1, NULL, 16) :
		       0;
}

/* May it be the file? Without a build-id, and if its index was never reported, its state on disk
 * decides. */
static bool may_be(const struct wanted *w, const struct stat *st)
{
	return !w->file || *w->build_id || cache_file_id(st) == w->file;
}

static bool is_it(const struct wanted *w, const char *key)
{
	size_t n = strlen(w->build_id);

	if (!n)
		return w->file || !strcmp(key, w->key);
	return !strncmp(key, w->build_id, n) && key[n] == '-';
}

static struct image *image_of(int fd)
{
	struct image *img = NULL;

	return fd >= 0 && !image_open_fd(fd, &img, NULL) ? img : NULL;
}

/* Has the new one more? A known name or line is never replaced by less. */
static bool is_better(const struct image *new, const struct image *old)
{
	if (!old || image_has_lines(new) != image_has_lines(old))
		return !old || image_has_lines(new);
	return image_symbol_count(new) > image_symbol_count(old);
}

static int fetch_debug(void *ctx, const uint8_t *build_id, size_t len)
{
	return debuginfod_debug(ctx, build_id, len);
}

/* Run sonde-index over it. 0, or -errno with the reason. */
static int child_run(struct files *f, struct indexchild *c, char *reason, size_t size)
{
	int64_t until = clock_boot_ns() + DEADLINE_NS;
	bool heard = false, late = false;
	int rc = indexchild_start(c, f->program, "--all-lines", NICE);

	if (rc) {
		snprintf(reason, size, "cannot start %s: %s", f->program, strerror(-rc));
		return rc;
	}
	while (!heard && !late) {
		struct pollfd p = {.fd = c->sock, .events = POLLIN};

		poll(&p, 1, 1000);
		heard = p.revents && indexchild_hear(c);
		late = clock_boot_ns() > until;
	}
	return indexchild_end(c, late, reason, size) == INDEXCHILD_MADE ? 0 : -EBADMSG;
}

/* The open file's index, made again; the cached one if that is as good. */
static struct image *index_make(struct files *f, const struct wanted *w, struct indexchild *c,
				struct image *cached, char *reason, size_t size)
{
	cleanup_fd int fd = -1;
	cleanup_free char *stored = NULL;
	struct image *made = NULL;

	if (f->server) {
		c->fetch = fetch_debug;
		c->fetch_ctx = f->server;
	}
	if (!child_run(f, c, reason, size) && is_it(w, c->text) && !indexchild_take(c, &fd))
		made = image_of(fd);
	if (!made)
		return cached;
	if (!is_better(made, cached)) {
		image_close(made);
		return cached;
	}
	cache_put(f->cache, c->text, fd, c->have_st ? &c->st : NULL,
		  &stored); /* without a folder it serves this once */
	image_close(cached);
	return made;
}

/* `fd` is taken; `root`: where it was found, -1: nowhere. NULL: another file, or none can be made
 * of it. */
static struct image *index_of(struct files *f, const struct wanted *w, int fd, int root,
			      char *reason, size_t size)
{
	struct image *cached = NULL, *img;
	struct indexchild c;
	char *text = NULL;

	indexchild_init(&c);
	c.elf = fd;
	c.have_st = !fstat(fd, &c.st);
	c.path = mem_strdup(w->path);
	c.root_fd = root >= 0 ? fcntl(root, F_DUPFD_CLOEXEC, 3) : -1;
	if (c.have_st && cache_find(f->cache, &c.st, &text) == CACHE_KNOWN) {
		if (!is_it(w, text)) {
			snprintf(reason, size, "another file is at its path now");
			free(text);
			indexchild_clear(&c);
			return NULL;
		}
		fd = cache_get(f->cache, text);
		cached = image_of(fd);
		if (fd >= 0)
			close(fd);
	}
	free(text);
	img = cached && image_has_lines(cached) ? cached :
						  index_make(f, w, &c, cached, reason, size);
	if (!img && c.done && !c.status)
		snprintf(reason, size, "another file is at its path now");
	indexchild_clear(&c);
	return img;
}

static struct image *find_index(struct files *f, const struct wanted *w, char *reason, size_t size)
{
	struct image *img = NULL;
	struct stat st;

	snprintf(reason, size, "it no longer exists");
	for (size_t i = 0; i < f->n_roots && !img && w->path[0] == '/'; i++) {
		int fd = openin(f->roots[i], w->path, OPENIN_MAX_BYTES, &st);

		if (fd >= 0 && !may_be(w, &st)) {
			snprintf(reason, size, "another file is at its path now");
			close(fd);
		} else if (fd >= 0)
			img = index_of(f, w, fd, f->roots[i], reason, size);
		else if (fd != -ENOENT && !i)
			snprintf(reason, size, "%s", openin_reason(fd));
	}
	if (!img && f->server && *w->build_id) {
		int fd = debuginfod_executable(f->server, w->build_id);

		if (fd >= 0)
			img = index_of(f, w, fd, -1, reason, size);
	}
	return img;
}

const struct image *files_index(struct files *f, const char *path, const char *build_id,
				const char *key, const char **reason)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	const struct wanted w = {
		.path = path, .build_id = build_id, .key = key, .file = pending_file(key)};
	struct known *k;
	char why[320];

	strbuf_addf(&name, "%s\n%s\n%s", path, build_id, *build_id ? "" : key);
	HASH_FIND_STR(f->known, strbuf_str(&name), k);
	if (!k) {
		k = mem_alloc(sizeof(*k));
		k->name = strbuf_take(&name);
		if (!*build_id && !w.file && (!*key || !strncmp(key, "pending-", 8)))
			snprintf(
				why, sizeof(why),
				"it has no build-id to identify it, and was not opened while it ran");
		else
			k->image = find_index(f, &w, why, sizeof(why));
		if (k->image && !image_has_lines(k->image))
			snprintf(why, sizeof(why), "%s",
				 image_lines_note(k->image) ?
					 image_lines_note(k->image) :
					 "no debug information was found for it");
		k->reason = mem_strdup(k->image && image_has_lines(k->image) ? "" : why);
		HASH_ADD_KEYPTR(hh, f->known, k->name, strlen(k->name), k);
	}
	*reason = k->reason;
	return k->image;
}
