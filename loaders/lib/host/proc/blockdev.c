/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/blockdev.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define DEVICES_MAX 4096
#define ENTRY       (64 + 16) /* "/sys/dev/block/M:m/" */

/* The device's folder of /sys ends in its name, that of a partition in DISK/NAME. false: it has no
 * folder. */
static bool folder_of(uint32_t major, uint32_t minor, char *target, size_t size)
{
	char path[ENTRY];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	n = readlink(path, target, size - 1);
	target[n > 0 ? n : 0] = 0;
	return n > 0 && strchr(target, '/');
}

static void under_add(struct blockdev *d, const char *name)
{
	size_t len = strlen(d->under);

	snprintf(d->under + len, sizeof(d->under) - len, "%s%.63s", len ? ", " : "", name);
}

/* The disk of a device that may be one of its partitions. */
static void under_add_disk(struct blockdev *d, const char *folder, bool partition)
{
	char name[512];
	char *slash;

	snprintf(name, sizeof(name), "%s", folder);
	slash = strrchr(name, '/');
	if (partition && slash) {
		*slash = 0;
		slash = strrchr(name, '/');
	}
	under_add(d, slash ? slash + 1 : name);
}

static bool is_partition(const char *folder_of_number)
{
	char path[2 * ENTRY];

	snprintf(path, sizeof(path), "%s/partition", folder_of_number);
	return !access(path, F_OK);
}

/* dm and md list what they lie on. */
static void slaves_read(struct blockdev *d, const char *at)
{
	char path[ENTRY + 300], target[512];
	cleanup_dir DIR *dir;
	struct dirent *de;

	snprintf(path, sizeof(path), "%s/slaves", at);
	dir = opendir(path);
	while (dir && (de = readdir(dir))) {
		ssize_t n;

		if (de->d_name[0] == '.')
			continue;
		d->stacked = true;
		snprintf(path, sizeof(path), "%s/slaves/%s/partition", at, de->d_name);
		if (access(path, F_OK)) {
			under_add(d, de->d_name);
			continue;
		}
		snprintf(path, sizeof(path), "%s/slaves/%s", at, de->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		under_add_disk(d, target, true);
	}
}

/* The device of the file system that has this file, by its path alone: a file system that does not
 * answer is not asked. */
static bool mount_of(const char *file, uint32_t *major, uint32_t *minor)
{
	cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], point[512];
	uint32_t at[2];
	size_t best = 0;

	while (f && fgets(line, sizeof(line), f)) {
		size_t len;

		if (sscanf(line, "%*u %*u %u:%u %*s %511s", &at[0], &at[1], point) != 3)
			continue;
		len = strcmp(point, "/") ? strlen(point) : 0;
		if (strncmp(file, point, len) || file[len] != '/' || len + 1 < best)
			continue;
		best = len + 1;
		*major = at[0];
		*minor = at[1];
	}
	return best;
}

/* A loop device lies on the disk of its file; one of another mount namespace is not found, or is
 * taken for what has its path here. */
static void loop_read(struct blockdev *d, const char *at)
{
	char path[ENTRY + 32], file[512] = "", folder[512];
	uint32_t major_, minor_;
	cleanup_file FILE *f;

	snprintf(path, sizeof(path), "%s/loop/backing_file", at);
	f = fopen(path, "re");
	if (!f || !fgets(file, sizeof(file), f))
		return;
	file[strcspn(file, "\n")] = 0;
	if (!mount_of(file, &major_, &minor_) || !folder_of(major_, minor_, folder, sizeof(folder)))
		return;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major_, minor_);
	under_add_disk(d, folder, is_partition(path));
}

const struct blockdev *blockdev_of(struct blockdev **all, uint32_t major, uint32_t minor)
{
	uint64_t number = (uint64_t)major << 32 | minor;
	char path[ENTRY], folder[512];
	struct blockdev *d;

	HASH_FIND(hh, *all, &number, sizeof(number), d);
	if (d || HASH_COUNT(*all) >= DEVICES_MAX)
		return d;
	d = mem_alloc(sizeof(*d));
	d->number = number;
	if (folder_of(major, minor, folder, sizeof(folder)))
		snprintf(d->name, sizeof(d->name), "%.63s", strrchr(folder, '/') + 1);
	else
		snprintf(d->name, sizeof(d->name), "%u:%u", major, minor);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	d->partition = is_partition(path);
	slaves_read(d, path);
	if (!strncmp(d->name, "loop", 4)) {
		d->stacked = true;
		loop_read(d, path);
	}
	d->stacked = d->stacked || !strncmp(d->name, "zram", 4) || !strncmp(d->name, "ram", 3);
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
