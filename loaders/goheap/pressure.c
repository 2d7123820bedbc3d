/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/pressure.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/cleanup.h"

#define NEAR_PERCENT 70
#define NO_LIMIT     (1ull << 60) /* v1 has a number like this if there is no limit */

/* false: not there, or "max". */
static bool number_read(const char *dir, const char *name, uint64_t *out)
{
	char path[PATH_MAX], text[32] = "", *end;
	cleanup_fd int fd = -1;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	*out = strtoull(text, &end, 10);
	return end != text;
}

static bool near_in(const char *dir, bool v2)
{
	uint64_t limit, used;

	if (!number_read(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &limit) ||
	    limit >= NO_LIMIT || !limit ||
	    !number_read(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &used))
		return false;
	return used > limit / 100 * NEAR_PERCENT;
}

bool pressure_near_at(const char *root, const char *cgroup, bool v2)
{
	char dir[PATH_MAX];
	size_t base = strlen(root);

	if (snprintf(dir, sizeof(dir), "%s%s", root, cgroup) >= (int)sizeof(dir))
		return false;
	while (strlen(dir) > base + 1) { /* the root has no limit */
		if (near_in(dir, v2))
			return true;
		*strrchr(dir, '/') = '\0';
	}
	return false;
}

bool pressure_near(const struct hostmaps_process *p)
{
	return pressure_near_at("/sys/fs/cgroup", p->cgroup, true) ||
	       pressure_near_at("/sys/fs/cgroup/memory", p->cgroup, false);
}
