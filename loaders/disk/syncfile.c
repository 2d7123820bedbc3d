/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/syncfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name that fills its place was cut. */
void syncfile_names(const struct disk_sync *s, char out[SYNCFILE_PATH])
{
	size_t len = 0, n = 0;

	while (n < DISK_NAMES && s->names[n][0] && s->names[n][0] != '/')
		n++;
	*out = 0;
	len += (size_t)snprintf(out, SYNCFILE_PATH, "%s", n == DISK_NAMES ? "..." : "");
	while (n--)
		len += (size_t)snprintf(
			out + len, SYNCFILE_PATH - len, "/%.*s%s", DISK_NAME - 1, s->names[n],
			strnlen(s->names[n], DISK_NAME) >= DISK_NAME - 1 ? "..." : "");
}

/* Is the end of the path that name? */
static bool ends_in(const char *path, const char name[DISK_NAME])
{
	const char *last = strrchr(path, '/');

	return last && !strncmp(last + 1, name, DISK_NAME - 1);
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
	    st.stx_ino != key->ino || !ends_in(path, s->names[0])) {
		syncfile_names(s, out);
		return;
	}
	if ((size_t)n >= SYNCFILE_PATH)
		snprintf(out, SYNCFILE_PATH, "...%s", path + n - (SYNCFILE_PATH - 4));
	else
		snprintf(out, SYNCFILE_PATH, "%.*s", (int)n, path);
}
