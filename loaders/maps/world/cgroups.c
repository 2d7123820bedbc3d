/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/world/cgroups.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define ENTRIES_MAX   8192
#define HANDLE_KERNFS 0xfe /* FILEID_KERNFS of <linux/exportfs.h>: 64-bit id */

struct entry {
	uint64_t key; /* id << 1 | v1 */
	char *path;
	UT_hash_handle hh;
};

struct mount {
	int fd; /* of its root directory, -1 */
	char path[256];
};

struct cgroups {
	struct entry *entries;
	struct mount v2, memory;
	bool other_v1;   /* there are v1 hierarchies, but none for memory */
	bool perf_is_v2; /* ids of the side-band are those of the v2 hierarchy */
	char proc_path[4096];
};

/* A line of /proc/self/mountinfo: "... MOUNTPOINT options - TYPE SOURCE SUPER". */
static void read_mount(struct cgroups *c, char *line)
{
	char *dash = strstr(line, " - "), *at = line, point[256];
	struct mount *m = NULL;

	if (!dash)
		return;
	if (!strncmp(dash + 3, "cgroup2 ", 8))
		m = &c->v2;
	else if (!strncmp(dash + 3, "cgroup ", 7) && strstr(dash, "memory"))
		m = &c->memory;
	for (int i = 0; i < 4 && at; i++)
		at = strchr(at + 1, ' ');
	if (!m || m->fd >= 0 || !at || sscanf(at + 1, "%255s", point) != 1)
		return;
	m->fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(m->path, sizeof(m->path), "%s", point);
}

static bool perf_on_v2(void)
{
	cleanup_file FILE *f = fopen("/proc/cgroups", "re");
	char line[256], name[64];
	int hierarchy;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %d", name, &hierarchy) == 2 && !strcmp(name, "perf_event"))
			return hierarchy == 0;
	return false;
}

struct cgroups *cgroups_new(void)
{
	struct cgroups *c = mem_alloc(sizeof(*c));
	cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
	cleanup_free char *line = NULL;
	size_t cap = 0;

	c->v2.fd = c->memory.fd = -1;
	c->perf_is_v2 = perf_on_v2();
	while (f && getline(&line, &cap, f) > 0) {
		c->other_v1 |= strstr(line, " - cgroup ") && strstr(line, "pids");
		read_mount(c, line);
	}
	c->other_v1 &= c->memory.fd < 0;
	return c;
}

static void entries_clear(struct cgroups *c)
{
	struct entry *e, *next;

	HASH_ITER (hh, c->entries, e, next) {
		HASH_DEL(c->entries, e);
		free(e->path);
		free(e);
	}
}

void cgroups_free(struct cgroups *c)
{
	if (!c)
		return;
	entries_clear(c);
	if (c->v2.fd >= 0)
		close(c->v2.fd);
	if (c->memory.fd >= 0)
		close(c->memory.fd);
	free(c);
}

static const char *remember(struct cgroups *c, uint64_t key, const char *path)
{
	struct entry *e;

	HASH_FIND(hh, c->entries, &key, sizeof(key), e);
	if (e)
		return e->path;
	e = mem_alloc(sizeof(*e));
	e->key = key;
	e->path = mem_strdup(path);
	HASH_ADD(hh, c->entries, key, sizeof(e->key), e);
	return e->path;
}

/* For all that one call adds: what it borrows must not go meanwhile. */
static void make_room(struct cgroups *c)
{
	if (HASH_COUNT(c->entries) + 2 > ENTRIES_MAX)
		entries_clear(c);
}

void cgroups_learn(struct cgroups *c, uint64_t id, const char *path)
{
	make_room(c);
	if (c->perf_is_v2)
		remember(c, id << 1, path);
}

/* The directory with this id, by its file handle. */
static bool path_by_handle(const struct mount *m, uint64_t id, char *out, size_t size)
{
	struct {
		struct file_handle h;
		uint64_t id;
	} handle = {.h = {.handle_bytes = sizeof(uint64_t), .handle_type = HANDLE_KERNFS}};
	cleanup_fd int fd = -1;
	char link[64], path[4096];
	size_t n = strlen(m->path);
	ssize_t len;

	if (m->fd < 0)
		return false;
	memcpy(handle.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(m->fd, &handle.h, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return false;
	path[len] = 0;
	if (strncmp(path, m->path, n))
		return false;
	snprintf(out, size, "%s", path[n] ? path + n : "/");
	return true;
}

static const char *path_of(struct cgroups *c, const struct mount *m, uint64_t id, uint64_t key)
{
	struct entry *e;
	char path[4096];

	if (!id)
		return NULL;
	HASH_FIND(hh, c->entries, &key, sizeof(key), e);
	if (e)
		return e->path;
	return path_by_handle(m, id, path, sizeof(path)) ? remember(c, key, path) : NULL;
}

const char *cgroups_path(struct cgroups *c, uint64_t id, uint64_t id1, uint32_t tgid)
{
	const char *paths[2];
	size_t lens[2], i;
	bool told;

	make_room(c);
	paths[0] = path_of(c, &c->v2, id, id << 1);
	paths[1] = path_of(c, &c->memory, id1, id1 << 1 | 1);
	for (i = 0; i < 2; i++)
		lens[i] = paths[i] ? strlen(paths[i]) : 0;
	told = paths[1] || (paths[0] && !id1 && !c->other_v1);
	if (!told && !proc_read_cgroup(tgid, c->proc_path, sizeof(c->proc_path)))
		return c->proc_path;
	i = container_choose(paths, lens, 2);
	return i < 2 ? paths[i] : "";
}
