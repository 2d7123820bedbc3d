/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/syncfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void syncfile_names(const struct disk_sync *s, char out[SYNCFILE_PATH])
{
	filename_join(s->names[0], DISK_NAMES, DISK_NAME, out);
}

void syncfile_path(const struct disk_sync_key *key, const struct disk_sync *s,
		   char out[SYNCFILE_PATH])
{
	char link[64], path[PATH_MAX];
	struct statx st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/fd/%u", key->who.tgid, s->fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	if (n <= 0 || *path != '/' || statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_INO, &st) ||
	    st.stx_ino != key->ino || !filename_ends(path, s->names[0], DISK_NAME)) {
		syncfile_names(s, out);
		return;
	}
	filename_cut(path, (size_t)n, out);
}
