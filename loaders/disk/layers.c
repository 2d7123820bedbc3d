/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/layers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/disk/filename.h"
#include "schema/base/array.h"

/* As the first process sees it, as sonde may run in a container, else as this one does. */
static const char *const ROOTS[] = {"/proc/1/root", ""};

#define ROOT_MOST 16 /* of their names */

const struct mounts *layers_mounts(struct layers *l, uint32_t pid)
{
	struct layers_space *x = NULL;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	if (stat(path, &st))
		return NULL;
	l->uses++;
	for (size_t i = 0; i < l->n; i++)
		if (l->spaces[i].ino == st.st_ino) {
			l->spaces[i].used = l->uses;
			return &l->spaces[i].mounts;
		}
	if (l->n < LAYERS_SPACES)
		x = &l->spaces[l->n++];
	for (size_t i = 0; i < l->n && !x; i++) /* the one that was not used for longest */
		if (!i || l->spaces[i].used < x->used)
			x = &l->spaces[i];
	x = x ? x : &l->spaces[0];
	mounts_release(&x->mounts);
	x->ino = st.st_ino;
	x->used = l->uses;
	mounts_read_of(&x->mounts, pid);
	return &x->mounts;
}

bool layers_is_hosts(uint32_t pid)
{
	struct stat first, st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	return !stat(path, &st) && (stat("/proc/1/ns/mnt", &first) || first.st_ino == st.st_ino);
}

void layers_forget(struct layers *l)
{
	for (size_t i = 0; i < l->n; i++)
		mounts_release(&l->spaces[i].mounts);
	*l = (struct layers){0};
}

/* Without its last part; 0: it has none. */
static size_t parent(const char *path, size_t len)
{
	while (len && path[len - 1] != '/')
		len--;
	return len ? len - 1 : 0;
}

bool layers_follow(const char *folder, const char *link, char *out, size_t size)
{
	size_t len = parent(folder, strlen(folder));
	int n;

	while (!strncmp(link, "../", 3)) {
		len = parent(folder, len);
		link += 3;
	}
	if (*link == '/')
		n = snprintf(out, size, "%s", link);
	else
		n = snprintf(out, size, "%.*s/%s", (int)len, folder, link);
	return n > 0 && (size_t)n < size;
}

static ssize_t link_read(const char *folder, char *link, size_t size)
{
	char path[FILENAME_PATH + ROOT_MOST];
	ssize_t n = -1;

	for (size_t i = 0; i < ARRAY_SIZE(ROOTS) && n < 0; i++) {
		snprintf(path, sizeof(path), "%s%s", ROOTS[i], folder);
		n = readlink(path, link, size);
	}
	return n;
}

static bool is_there(const char *host_path)
{
	char path[2 * FILENAME_PATH + ROOT_MOST];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(ROOTS); i++) {
		snprintf(path, sizeof(path), "%s%s", ROOTS[i], host_path);
		if (!lstat(path, &st))
			return true;
	}
	return false;
}

/* The folder at `at` of a list, as it is called without links; `at` goes on. false: no more. */
static bool folder_next(const char **at, char out[FILENAME_PATH])
{
	char folder[FILENAME_PATH], link[FILENAME_PATH];
	size_t len;
	ssize_t n;

	do {
		*at += strspn(*at, ":");
		len = strcspn(*at, ":");
		if (!len)
			return false;
		snprintf(folder, sizeof(folder), "%.*s", (int)len, *at);
		*at += len;
	} while (len >= sizeof(folder));
	n = *folder == '/' ? link_read(folder, link, sizeof(link) - 1) : -1;
	if (n > 0) {
		link[n] = 0;
		return layers_follow(folder, link, out, FILENAME_PATH);
	}
	memcpy(out, folder, len + 1);
	return true;
}

bool layers_host(const struct mounts_one *overlay, const char *below, char *out, size_t size)
{
	char folder[FILENAME_PATH], path[2 * FILENAME_PATH];

	for (const char *at = overlay->layers; at && folder_next(&at, folder);) {
		int n;

		snprintf(path, sizeof(path), "%s%s", folder, below);
		if (!is_there(path))
			continue;
		n = snprintf(out, size, "%s", path);
		return n > 0 && (size_t)n < size;
	}
	return false;
}

/* What is left of a path below a folder; NULL: it does not lie there. */
static const char *rest_of(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return !strncmp(path, folder, len) && path[len] == '/' ? path + len : NULL;
}

bool layers_seen(const struct mounts *m, uint32_t dev, const char *below, const char *path,
		 char *out, size_t size)
{
	if (mounts_path(m, dev, below, out, size))
		return true;
	for (size_t i = 0; i < m->n; i++) {
		const struct mounts_one *x = &m->list[i];
		char folder[FILENAME_PATH];

		for (const char *at = x->layers; at && folder_next(&at, folder);) {
			const char *rest = rest_of(path, folder);
			int n;

			if (!rest)
				continue;
			n = snprintf(out, size, "%s%s", x->point[1] ? x->point : "", rest);
			return n > 0 && (size_t)n < size;
		}
	}
	return false;
}
