/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/logs/dockerfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/proc/engines.h"
#include "loaders/lib/host/proc/openin.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define KNOWN_MAX  4096
#define FILE_MAX   (4u << 20)
#define ID_LEN     64
#define ENGINES_NS (60 * NSEC_PER_SEC)
#define WRITTEN_NS (10 * NSEC_PER_SEC)

struct dockerfile_known {
	char id[ID_LEN + 1];
	uint64_t round, ino, folder;
	int64_t size, mtime_s, mtime_ns;
	bool read;
	char *where; /* the folder that it is in */
	struct container_state state;
	UT_hash_handle hh;
};

struct dockerfile_name {
	char image[256];
	UT_hash_handle hh;
	char name[];
};

struct look {
	struct dockerfiles *d;
	void (*changed)(void *ctx, const struct dockerfile *f);
	void *ctx;
	int64_t since_ns;
	uint64_t folders[ENGINES_MAX + 2]; /* that were listed: what they are, hashed */
	size_t n_folders;
};

static void drop(struct dockerfiles *d, struct dockerfile_known *k)
{
	HASH_DEL(d->all, k);
	free(k->where);
	free(k);
}

void dockerfiles_release(struct dockerfiles *d)
{
	struct dockerfile_known *k, *next;
	struct dockerfile_name *m, *next_name;

	HASH_ITER (hh, d->all, k, next)
		drop(d, k);
	HASH_ITER (hh, d->names, m, next_name) {
		HASH_DEL(d->names, m);
		free(m);
	}
}

/* Which image the container of this name had; true and `was`: another one than now. */
static bool image_note(struct dockerfiles *d, const struct container_state *s, char was[256])
{
	struct dockerfile_name *m;
	size_t len = strlen(s->name);
	bool another;

	if (!len || !s->image[0])
		return false;
	HASH_FIND_STR(d->names, s->name, m);
	if (!m && HASH_COUNT(d->names) < KNOWN_MAX) {
		m = mem_alloc(sizeof(*m) + len + 1);
		memcpy(m->name, s->name, len + 1);
		HASH_ADD_STR(d->names, name, m);
	}
	if (!m)
		return false;
	another = m->image[0] && strcmp(m->image, s->image) != 0;
	memcpy(was, m->image, sizeof(m->image));
	memcpy(m->image, s->image, sizeof(m->image));
	return another;
}

static bool is_id(const char *name)
{
	return strlen(name) == ID_LEN && strspn(name, "0123456789abcdef") == ID_LEN;
}

static bool is_as_read(const struct dockerfile_known *k, const struct stat *st)
{
	return k->read && k->ino == st->st_ino && k->size == st->st_size &&
	       k->mtime_s == st->st_mtim.tv_sec && k->mtime_ns == st->st_mtim.tv_nsec;
}

/* Docker writes a new file and renames it: whole, or the one before. */
static bool state_read(int dir, const char *path, struct dockerfile_known *k,
		       struct container_state *out)
{
	cleanup_fd int fd =
		openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	cleanup_free char *json = NULL;
	struct stat st;
	size_t len;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MAX ||
	    openin_read(fd, (size_t)st.st_size, &json, &len) || containerfile_state(json, len, out))
		return false;
	k->ino = st.st_ino;
	k->size = st.st_size;
	k->mtime_s = st.st_mtim.tv_sec;
	k->mtime_ns = st.st_mtim.tv_nsec;
	return true;
}

static void take(struct look *l, int dir, const char *where, uint64_t folder, const char *id)
{
	struct dockerfiles *d = l->d;
	struct container_state was;
	struct dockerfile f = {.id = id, .since_ns = l->since_ns};
	struct dockerfile_known *k;
	char path[ID_LEN + 32], old_image[256];
	struct stat st;
	bool known;

	snprintf(path, sizeof(path), "%s/config.v2.json", id);
	HASH_FIND_STR(d->all, id, k);
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW)) {
		if (k && errno != ENOENT)
			k->round = d->round;
		return;
	}
	if (!k && HASH_COUNT(d->all) < KNOWN_MAX) {
		k = mem_alloc(sizeof(*k));
		memcpy(k->id, id, ID_LEN + 1);
		HASH_ADD_STR(d->all, id, k);
	}
	if (!k)
		return;
	k->round = d->round;
	if (k->folder != folder || !k->where) {
		free(k->where);
		k->where = mem_strdup(where);
	}
	k->folder = folder;
	if (is_as_read(k, &st))
		return;
	known = k->read;
	was = k->state;
	if (!state_read(dir, path, k, &k->state))
		return;
	k->read = true;
	f.state = &k->state;
	f.was = known ? &was : NULL;
	f.old_image = image_note(d, &k->state, old_image) ? old_image : NULL;
	if (d->begun)
		l->changed(l->ctx, &f);
}

static bool was_listed(const struct look *l, uint64_t folder)
{
	for (size_t i = 0; i < l->n_folders; i++)
		if (l->folders[i] == folder)
			return true;
	return false;
}

static void folder_look(struct look *l, const char *root)
{
	cleanup_dir DIR *dir = NULL;
	struct dirent *de;
	uint64_t folder;
	struct stat st;
	char path[640];

	snprintf(path, sizeof(path), "%.600s/containers", root);
	dir = opendir(path);
	if (!dir || fstat(dirfd(dir), &st))
		return;
	folder = hash_u64(hash_u64(HASH_SEED, st.st_dev), st.st_ino);
	if (was_listed(l, folder))
		return;
	while (errno = 0, (de = readdir(dir)))
		if (is_id(de->d_name))
			take(l, dirfd(dir), path, folder, de->d_name);
	if (!errno && l->n_folders < ARRAY_SIZE(l->folders))
		l->folders[l->n_folders++] = folder;
}

/* Only engines that root runs: other users choose what is at that path. */
static void engines_folders(struct look *l, int64_t now_ns)
{
	struct engine all[ENGINES_MAX];
	size_t n;

	if (!l->d->engines_ns || now_ns - l->d->engines_ns >= ENGINES_NS) {
		l->d->engines_ns = now_ns;
		engines_look_again();
	}
	n = engines_known(all);
	for (size_t i = 0; i < n; i++) {
		char root[600];

		if (all[i].kind != ENGINE_DOCKER || all[i].uid)
			continue;
		snprintf(root, sizeof(root), "/proc/%u/root%.512s", all[i].pid,
			 *all[i].folder ? all[i].folder : "/var/lib/docker");
		folder_look(l, root);
	}
}

static void forget_gone(struct look *l)
{
	struct dockerfile_known *k, *next;

	HASH_ITER (hh, l->d->all, k, next) {
		struct dockerfile f = {
			.id = k->id, .state = &k->state, .gone = true, .since_ns = l->since_ns};

		if (k->round == l->d->round || !was_listed(l, k->folder))
			continue;
		if (l->d->begun && k->read)
			l->changed(l->ctx, &f);
		drop(l->d, k);
	}
}

void dockerfiles_look(struct dockerfiles *d, int64_t now_ns,
		      void (*changed)(void *ctx, const struct dockerfile *f), void *ctx)
{
	/* an engine notes when it began to make a container, and writes its file some time after */
	int64_t before = d->look_ns - WRITTEN_NS;
	struct look l = {.d = d,
			 .changed = changed,
			 .ctx = ctx,
			 .since_ns = before > d->first_ns ? before : d->first_ns};

	d->round++;
	d->look_ns = clock_utc_ns();
	d->first_ns = d->first_ns ? d->first_ns : d->look_ns;
	folder_look(&l, containernames_docker_root());
	folder_look(&l, "/var/snap/docker/common/var-lib-docker");
	engines_folders(&l, now_ns);
	forget_gone(&l);
	d->begun = true;
}

const char *dockerfiles_folder(const struct dockerfiles *d, const char *id)
{
	struct dockerfile_known *k;

	HASH_FIND_STR(d->all, id, k);
	return k ? k->where : NULL;
}

const struct container_state *dockerfiles_state(const struct dockerfiles *d, const char *id)
{
	struct dockerfile_known *k;

	HASH_FIND_STR(d->all, id, k);
	return k && k->read ? &k->state : NULL;
}
