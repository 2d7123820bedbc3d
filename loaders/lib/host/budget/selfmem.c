/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/budget/selfmem.h"

#include <inttypes.h>
#include <stdio.h>

#include "schema/base/cleanup.h"

/* The kernel counts these two all the time; smaps_rollup has the same numbers, but walks all mapped
 * pages for them. */
static void read_status(const char *path, uint64_t *rss, uint64_t *own)
{
	cleanup_file FILE *f = fopen(path, "re");
	char line[128];
	uint64_t kib;

	*rss = *own = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmRSS: %" SCNu64, &kib) == 1)
			*rss = kib << 10;
		else if (sscanf(line, "RssAnon: %" SCNu64, &kib) == 1)
			*own = kib << 10;
	}
}

void selfmem_read(uint64_t *rss, uint64_t *own)
{
	read_status("/proc/self/status", rss, own);
}

void selfmem_read_of(uint32_t pid, uint64_t *rss, uint64_t *own)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	read_status(path, rss, own);
}
