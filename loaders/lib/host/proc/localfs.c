/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/localfs.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"

#define DEVICES_MAX 256

static const char *const types[] = {"ext2",  "ext3",  "ext4",     "xfs",   "f2fs",
				    "tmpfs", "ramfs", "squashfs", "erofs", "iso9660"};

/* Under `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int mounts = -1; /* readable when mounts change */
static dev_t devices[DEVICES_MAX];
static size_t n_devices;

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE SUPER"; blanks in names are
 * escaped. */
bool localfs_line(const char *line, dev_t *device)
{
	const char *type = strstr(line, " - ");
	unsigned int major, minor;
	size_t len;

	if (!type || sscanf(line, "%*u %*u %u:%u ", &major, &minor) != 2)
		return false;
	type += 3;
	len = strcspn(type, " \n");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i]) == len && !memcmp(type, types[i], len)) {
			*device = makedev(major, minor);
			return true;
		}
	return false;
}

static void read_mounts(void)
{
	cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
	cleanup_free char *line = NULL;
	size_t cap = 0;

	n_devices = 0;
	while (f && n_devices < DEVICES_MAX && getline(&line, &cap, f) > 0)
		if (localfs_line(line, &devices[n_devices]))
			n_devices++;
}

/* The first time, and when the kernel reports a change. */
static bool have_changed(void)
{
	struct pollfd p;

	if (mounts < 0) {
		mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		return true;
	}
	p = (struct pollfd){.fd = mounts, .events = POLLPRI};
	return poll(&p, 1, 0) != 0;
}

bool localfs_has(dev_t device)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	if (have_changed())
		read_mounts();
	for (size_t i = 0; i < n_devices && !found; i++)
		found = devices[i] == device;
	pthread_mutex_unlock(&lock);
	return found;
}
