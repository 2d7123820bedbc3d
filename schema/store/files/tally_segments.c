/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/tally_segments.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/file/subdir.h"
#include "schema/store/files/segment.h"
#include "schema/store/files/tally.h"

static void need(struct tally_segments *l, const char name[SEGMENT_NAME_MAX])
{
	if (!name[0] || !memchr(name, 0, SEGMENT_NAME_MAX))
		return;
	mem_grow(l->names, l->n, l->cap);
	memcpy(l->names[l->n++], name, SEGMENT_NAME_MAX);
}

static void read_tally(struct tally_segments *l, int dirfd, const char *name)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct tally_data t;

	if (fd < 0 || pread(fd, &t, sizeof(t), 0) != sizeof(t))
		return;
	need(l, t.segment);
	need(l, t.before);
	need(l, t.booked);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		l->killed = true;
}

void tally_segments_read(const char *dir, struct tally_segments *l)
{
	int fd = subdir_open(dir, "writers");
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;

	l->n = 0;
	l->killed = false;
	while (d && (de = readdir(d)))
		if (strlen(de->d_name) > 6 &&
		    !strcmp(de->d_name + strlen(de->d_name) - 6, ".tally"))
			read_tally(l, dirfd(d), de->d_name);
}

void tally_segments_release(struct tally_segments *l)
{
	free(l->names);
	*l = (struct tally_segments){0};
}

bool tally_segments_has(const struct tally_segments *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->names[i], name))
			return true;
	return false;
}

void tally_segments_settle(const char *dir, const char *path, struct tally_segments *l)
{
	cleanup_fd int lock = folder_lock(dir);
	struct segment *s;

	if (lock < 0 || segment_open(path, &s, NULL))
		return;
	tally_recover(dir, s);
	segment_leave(s);
	tally_segments_read(dir, l);
}
