/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/blockdev.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define DEVICES_MAX 4096

static bool has_entries(const char *path)
{
	cleanup_dir DIR *dir = opendir(path);
	struct dirent *de;

	while (dir && (de = readdir(dir)))
		if (de->d_name[0] != '.')
			return true;
	return false;
}

const struct blockdev *blockdev_of(struct blockdev **all, uint32_t major, uint32_t minor)
{
	uint64_t number = (uint64_t)major << 32 | minor;
	char path[128], target[512];
	struct blockdev *d;
	const char *slash;
	ssize_t n;

	HASH_FIND(hh, *all, &number, sizeof(number), d);
	if (d || HASH_COUNT(*all) >= DEVICES_MAX)
		return d;
	d = mem_alloc(sizeof(*d));
	d->number = number;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	slash = strrchr(target, '/');
	if (slash)
		snprintf(d->name, sizeof(d->name), "%.63s", slash + 1);
	else
		snprintf(d->name, sizeof(d->name), "%u:%u", major, minor);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves", major, minor);
	d->stacked = has_entries(path) || !strncmp(d->name, "loop", 4) ||
		     !strncmp(d->name, "zram", 4) || !strncmp(d->name, "ram", 3);
	HASH_ADD(hh, *all, number, sizeof(number), d);
	return d;
}

void blockdevs_release(struct blockdev **all)
{
	struct blockdev *d, *next;

	HASH_ITER (hh, *all, d, next) {
		HASH_DEL(*all, d);
		free(d);
	}
}
