/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/mounts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define MINOR_BITS 20

/* The kernel writes blanks and backslashes as \ooo. In place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

/* By what follows " - " in the line. */
static bool waits(const char *line)
{
	static const char *const types[] = {"nfs",  "nfs4",     "cifs",      "smb3",    "ceph",
					    "9p",   "virtiofs", "fuse",      "fuseblk", "afs",
					    "coda", "lustre",   "glusterfs", "orangefs"};
	const char *type = strstr(line, " - ");
	size_t len;

	if (!type)
		return false;
	type += 3;
	len = strcspn(type, " .\n"); /* fuse.sshfs */
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i]) == len && !memcmp(type, types[i], len))
			return true;
	return false;
}

/* The value of an option, as long as its '=' and the next comma that no backslash escapes leave it.
 * NULL: the line does not have it. */
static char *option_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);
	size_t len = 0;
	char *value;

	if (!at)
		return NULL;
	at += strlen(key);
	while (at[len] && at[len] != ',' && at[len] != '\n' && at[len] != ' ')
		len++;
	value = mem_alloc(len + 1);
	memcpy(value, at, len);
	value[len] = 0;
	unescape(value);
	return value;
}

/* Of an overlay's line. */
static char *layers_of(const char *line)
{
	cleanup_free char *upper = option_of(line, ",upperdir="),
			  *lower = option_of(line, ",lowerdir=");
	char *all = NULL;

	if (!strstr(line, " - overlay ") || !lower)
		return NULL;
	if (asprintf(&all, "%s%s%s", upper ? upper : "", upper ? ":" : "", lower) < 0)
		return NULL;
	return all;
}

bool mounts_parse(const char *line, struct mounts_one *out)
{
	char root[4 * MOUNTS_PATH], point[4 * MOUNTS_PATH];
	uint32_t major, minor;

	if (sscanf(line, "%*u %*u %" SCNu32 ":%" SCNu32 " %1023s %1023s", &major, &minor, root,
		   point) != 4)
		return false;
	unescape(root);
	unescape(point);
	if (*root != '/' || *point != '/' || strlen(root) >= MOUNTS_PATH ||
	    strlen(point) >= MOUNTS_PATH)
		return false;
	*out = (struct mounts_one){.dev = major << MINOR_BITS | minor,
				   .waits = waits(line),
				   .layers = layers_of(line)};
	memcpy(out->root, root, strlen(root));
	memcpy(out->point, point, strlen(point));
	return true;
}

static void list_clear(struct mounts *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->list[i].layers);
	m->n = 0;
}

static void list_read(struct mounts *m, FILE *f)
{
	cleanup_free char *line = NULL;
	struct mounts_one one;
	size_t cap = 0;

	list_clear(m);
	while (getline(&line, &cap, f) > 0)
		if (mounts_parse(line, &one)) {
			mem_grow(m->list, m->n, m->cap);
			m->list[m->n++] = one;
		}
}

void mounts_read(struct mounts *m)
{
	cleanup_file FILE *f = fopen("/proc/1/mountinfo", "re");

	f = f ? f : fopen("/proc/self/mountinfo", "re");
	if (f)
		list_read(m, f);
}

void mounts_read_of(struct mounts *m, uint32_t pid)
{
	cleanup_file FILE *f = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
	f = fopen(path, "re");
	if (f)
		list_read(m, f);
}

void mounts_release(struct mounts *m)
{
	list_clear(m);
	free(m->list);
	*m = (struct mounts){0};
}

/* How long the mounted folder's path is in the other one; -1: it does not lie below it. */
static int below_of(const struct mounts_one *x, const char *path)
{
	size_t len = x->root[1] ? strlen(x->root) : 0;

	return strncmp(path, x->root, len) || (path[len] != '/' && path[len]) ? -1 : (int)len;
}

const struct mounts_one *mounts_find(const struct mounts *m, uint32_t dev, const char *path)
{
	const struct mounts_one *first = NULL;

	for (size_t i = 0; i < m->n; i++) {
		const struct mounts_one *x = &m->list[i];

		if (x->dev != dev || below_of(x, path) < 0)
			continue;
		if (!x->root[1])
			return x;
		first = first ? first : x;
	}
	return first;
}

bool mounts_path(const struct mounts *m, uint32_t dev, const char *below, char *out, size_t size)
{
	const struct mounts_one *x = mounts_find(m, dev, below);
	int n;

	*out = 0;
	if (!x)
		return false;
	n = snprintf(out, size, "%s%s", x->point[1] ? x->point : "", below + below_of(x, below));
	if (n > 0 && (size_t)n < size)
		return true;
	*out = 0;
	return false;
}

const char *mounts_point(const struct mounts *m, uint32_t dev)
{
	const struct mounts_one *x = mounts_find(m, dev, "/");

	for (size_t i = 0; !x && i < m->n; i++)
		if (m->list[i].dev == dev)
			x = &m->list[i];
	return x ? x->point : "";
}

bool mounts_has(const struct mounts *m, uint32_t dev)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->list[i].dev == dev)
			return true;
	return false;
}

bool mounts_waits(const struct mounts *m, uint32_t dev)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->list[i].dev == dev && m->list[i].waits)
			return true;
	return false;
}
