/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/files.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"

/* Is this what that process has under the path? Through /proc/PID/root an absolute link leads to a
 * file of this process's own root. */
static bool is_its(uint32_t pid, const char *path, const struct stat *st)
{
	cleanup_fd int root = openin_root(pid), fd = -1;
	struct stat own, of;

	if (root >= 0 && !fstat(root, &of) && !stat("/", &own) && own.st_dev == of.st_dev &&
	    own.st_ino == of.st_ino)
		return true; /* it has the same root */
	fd = root < 0 ? root : openin(root, path, OPENIN_MAX_BYTES, &own);
	return fd >= 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino;
}

static void file_put(struct files *out, const char *path, const struct stat *st)
{
	struct file *f = &out->v[out->n];

	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].dev == st->st_dev && out->v[i].ino == st->st_ino)
			return;
	if (out->n == FILES_MOST || strlen(path) >= sizeof(f->path) || strpbrk(path, ":\n"))
		return;
	memcpy(f->path, path, strlen(path) + 1);
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	out->n++;
}

/* As this process's own root has it, if that is the same file. false: that path leads to no file.
 */
static bool file_add(struct files *out, uint32_t pid, const char *path)
{
	char there[PATH_MAX];
	struct stat st, own;

	snprintf(there, sizeof(there), "/proc/%u/root%s", pid, path);
	if (stat(there, &st) || !S_ISREG(st.st_mode) || !is_its(pid, path, &st))
		return false;
	if (!stat(path, &own) && own.st_dev == st.st_dev && own.st_ino == st.st_ino)
		snprintf(there, sizeof(there), "%s", path);
	file_put(out, there, &st);
	return true;
}

/* By one of its mappings: of a process with another root the kernel writes a path that leads
 * nowhere from there, and a replaced file has no path. */
static void mapping_add(struct files *out, uint32_t pid, const struct proc_map *m)
{
	char there[64];
	struct stat st;

	snprintf(there, sizeof(there), "/proc/%u/map_files/%llx-%llx", pid,
		 (unsigned long long)m->start, (unsigned long long)m->end);
	if (!stat(there, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode)
		file_put(out, there, &st);
}

/* A library is asked for by its soname, libstdc++.so.6, and lies in a file with more of the version
 * behind it, libstdc++.so.6.0.30. */
static bool is_called(const char *name, const char *glob)
{
	const size_t len = strlen(glob);

	return !fnmatch(glob, name, 0) ||
	       (strstr(glob, ".so") && !strncmp(name, glob, len) && name[len] == '.');
}

/* `glob` NULL: all that it has mapped. */
static void process_add(struct files *out, uint32_t pid, const char *glob)
{
	cleanup_free char *maps = NULL;
	struct proc_map m;
	size_t len = 0, at = 0;

	if (proc_read(pid, "maps", PROC_FILE_MAX, &maps, &len))
		return;
	while (proc_next_map(maps, len, &at, &m)) {
		char path[PATH_MAX], *name;

		if (!m.exec || !m.path_len || m.path_len >= sizeof(path) || *m.path != '/')
			continue;
		path[proc_unescape(m.path, m.path_len, path)] = 0;
		name = strrchr(path, '/') + 1;
		if ((!glob || is_called(name, glob)) && (m.deleted || !file_add(out, pid, path)))
			mapping_add(out, pid, &m);
	}
}

static void all_processes(struct files *out, const char *glob)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);

		if (pid && !*end)
			process_add(out, (uint32_t)pid, glob);
	}
	if (d)
		closedir(d);
}

/* `path` NULL: all that its processes have mapped. */
static int of_container(struct files *out, const char *name, const char *path, struct err *e)
{
	struct container_found found = {0};
	int rc = container_resolve(name, &found, e);

	for (size_t i = 0; !rc && i < found.n_pids; i++) {
		if (path)
			file_add(out, found.pids[i], path);
		else
			process_add(out, found.pids[i], NULL);
	}
	container_found_release(&found);
	return rc;
}

int files_find(const char *what, struct files *out, struct err *e)
{
	const char *slash = strchr(what, '/');
	char name[PROBESPEC_PATH];
	int rc = 0;

	*out = (struct files){0};
	if (slash == what) {
		snprintf(out->v[0].path, sizeof(out->v[0].path), "%s", what);
		out->n = 1;
		return 0;
	}
	snprintf(name, sizeof(name), "%.255s", what);
	name[strcspn(name, "/")] = 0;
	if (!slash)
		all_processes(out, name);
	if (!out->n && !strchr(name, '*'))
		rc = of_container(out, name, slash, slash ? e : NULL);
	if (out->n)
		return 0;
	if (rc && slash)
		return rc;
	err_set(e, -ENOENT, EXIT_USAGE,
		slash ? "no process of that container has the file of %s" :
			"no process has mapped a file called %s now, and no container is called so",
		what);
	err_fix(e, "name the file by its whole path, or start the program first");
	return -ENOENT;
}
