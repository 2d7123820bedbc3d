/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/file/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int place_open(struct place *p, const char *dir)
{
	struct stat st;
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	place_close(p);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	*p = (struct place){.fd = fd, .dev = st.st_dev, .ino = st.st_ino};
	return 0;
}

static bool is_at(const struct place *p, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino;
}

enum place_state place_look(const struct place *p, const char *dir, char now[PATH_MAX])
{
	char link[64];
	ssize_t n;

	if (p->fd < 0 || is_at(p, dir))
		return PLACE_SAME;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", p->fd);
	n = readlink(link, now, PATH_MAX - 1);
	now[n > 0 ? n : 0] = '\0';
	return *now == '/' && is_at(p, now) ? PLACE_MOVED : PLACE_GONE;
}

void place_close(struct place *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}
