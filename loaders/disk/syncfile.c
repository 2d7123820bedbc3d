/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/syncfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void syncfile_names(const struct disk_sync *s, const struct mounts *mounts, __u32 dev,
		    char out[SYNCFILE_PATH])
{
	char below[FILENAME_PATH];
	bool whole = filename_join(s->names[0], DISK_NAMES, DISK_NAME, below);

	if (*s->names[0] == '/')
		snprintf(out, SYNCFILE_PATH, "%s", mounts ? mounts_point(mounts, dev) : "/");
	else if (!whole || !mounts || !mounts_path(mounts, dev, below, out, SYNCFILE_PATH))
		snprintf(out, SYNCFILE_PATH, "%s%.*s", whole && mounts ? "..." : "",
			 SYNCFILE_PATH - 4, below);
}

void syncfile_path(const struct disk_sync_key *key, __u32 fd, const struct disk_sync *s,
		   const struct mounts *mounts, char out[SYNCFILE_PATH])
{
	char link[64], path[PATH_MAX];
	struct statx st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/fd/%u", key->who.tgid, fd);
	n = fd == SYNCFILE_NONE ? 0 : readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	*out = 0;
	if (n > 0 && *path == '/' && !statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_INO, &st) &&
	    st.stx_ino == key->ino && (!s || filename_ends(path, s->names[0], DISK_NAME)))
		filename_cut(path, (size_t)n, out);
	else if (s)
		syncfile_names(s, mounts, key->dev, out);
}
