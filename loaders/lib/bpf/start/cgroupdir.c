/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroupdir: /proc/self/mountinfo, see proc_pid_mountinfo(5):
 *   36 35 98:0 /root /mount/point rw,noatime master:1 - FSTYPE SOURCE rw,memory
 */
#include "loaders/lib/bpf/start/cgroupdir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/cleanup.h"

/* Is `word` one of the comma-separated options? */
static bool option_has(const char *options, const char *word)
{
	size_t len = strlen(word);

	while (*options) {
		size_t n = strcspn(options, ",\n");

		if (n == len && !memcmp(options, word, len))
			return true;
		options += n;
		options += *options != '\0';
	}
	return false;
}

bool cgroupdir_mount(const char *line, char *point, size_t size, enum family_hierarchy *hierarchy)
{
	const char *rest = strstr(line, " - ");
	char mount[PATH_MAX], type[32], options[512];

	if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", mount) != 1 ||
	    sscanf(rest, " - %31s %*s %511s", type, options) != 2 || strlen(mount) >= size)
		return false;
	if (!strcmp(type, "cgroup2"))
		*hierarchy = FAMILY_CGROUP_V2;
	else if (!strcmp(type, "cgroup") && option_has(options, "memory"))
		*hierarchy = FAMILY_CGROUP_V1_MEMORY;
	else if (!strcmp(type, "cgroup") && option_has(options, "pids"))
		*hierarchy = FAMILY_CGROUP_V1_PIDS;
	else
		return false;
	memcpy(point, mount, strlen(mount) + 1);
	return true;
}

/* The cgroup in the hierarchy mounted at `point`: `path` lies below it, or is relative to it. */
static int mount_find(const char *point, const char *path, struct stat *st)
{
	char full[2 * PATH_MAX];
	size_t len = strlen(point);

	if (!strncmp(path, point, len) && (path[len] == '/' || !path[len]))
		snprintf(full, sizeof(full), "%s", path);
	else if (!strncmp(path, "/sys/fs/cgroup/", 15))
		return -ENOENT;
	else
		snprintf(full, sizeof(full), "%s/%s", point, path);
	if (stat(full, st))
		return -errno;
	return S_ISDIR(st->st_mode) ? 0 : -ENOTDIR;
}

int cgroupdir_find(const char *path, int (*found)(void *ctx, const struct family_cgroup *cgroup),
		   void *ctx)
{
	cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX], point[PATH_MAX];
	enum family_hierarchy hierarchy;
	struct stat st;
	int err = 0;

	if (!f)
		return -errno;
	while (!err && fgets(line, sizeof(line), f)) {
		if (!cgroupdir_mount(line, point, sizeof(point), &hierarchy) ||
		    mount_find(point, path, &st))
			continue;
		err = found(ctx, &(struct family_cgroup){.id = st.st_ino, .hierarchy = hierarchy});
	}
	return err;
}
