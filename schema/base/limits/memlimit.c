/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/limits/memlimit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "schema/base/cleanup.h"
#include "schema/base/units.h"

#define V1 "/sys/fs/cgroup/memory"
#define V2 "/sys/fs/cgroup"
/* v1 says that there is no limit by a number near 2^63 */
#define NONE (1ull << 60)

/* Its path in the hierarchy that limits memory. false: none is known. */
static bool own_cgroup(char path[PATH_MAX], bool *v1)
{
	cleanup_file FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 64];
	bool found = false;

	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':'), *at = colon ? strchr(colon + 1, ':') : NULL;
		bool memory = at && !strncmp(colon, ":memory:", 8);

		if (!at || (!memory && strncmp(line, "0::", 3)))
			continue;
		at[1 + strcspn(at + 1, "\n")] = '\0';
		if (!found || memory)
			snprintf(path, PATH_MAX, "%s", at + 1);
		*v1 = memory;
		found = true;
		if (memory)
			break;
	}
	return found;
}

/* "NAME N" in a file of lines; or, `name` NULL, its first number. */
static bool number_in(const char *file, const char *name, uint64_t *out)
{
	cleanup_file FILE *f = fopen(file, "re");
	size_t n = name ? strlen(name) : 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (!name || (!strncmp(line, name, n) && line[n] == ' '))
			return sscanf(line + n, "%" SCNu64, out) == 1;
	return false;
}

static void take(struct memlimit *out, uint64_t bytes, const char *of, const char *limit,
		 const char *fix)
{
	char size[UNITS_MAX];

	if (bytes >= out->bytes || bytes >= NONE)
		return;
	out->bytes = bytes;
	out->fix = fix;
	snprintf(out->what, sizeof(out->what), "%.250s may use %s of memory (%s)", of,
		 units_bytes(bytes, size, sizeof(size)), limit);
}

/* From the innermost outwards. In a container the outermost is at the hierarchy's root. */
static void cgroups_take(struct memlimit *out)
{
	char path[PATH_MAX], file[PATH_MAX + 64], of[300];
	bool v1 = false;
	uint64_t bytes;

	if (!own_cgroup(path, &v1))
		return;
	for (char *slash = path + strlen(path); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		snprintf(file, sizeof(file), "%s%s/%s", v1 ? V1 : V2, path,
			 v1 ? "memory.limit_in_bytes" : "memory.max");
		snprintf(of, sizeof(of), "its cgroup %.280s", *path ? path : "/");
		if (number_in(file, NULL, &bytes))
			take(out, bytes, of, v1 ? "memory.limit_in_bytes" : "memory.max",
			     "give that cgroup more memory (docker run --memory, systemd: MemoryMax)");
	}
}

void memlimit_read(struct memlimit *out)
{
	struct rlimit rl;

	*out = (struct memlimit){.bytes = UINT64_MAX, .fix = ""};
	if (!getrlimit(RLIMIT_AS, &rl) && rl.rlim_cur != RLIM_INFINITY)
		take(out, rl.rlim_cur, "this process", "RLIMIT_AS",
		     "ulimit -v unlimited    (systemd: LimitAS=infinity)");
	if (!getrlimit(RLIMIT_DATA, &rl) && rl.rlim_cur != RLIM_INFINITY)
		take(out, rl.rlim_cur, "this process", "RLIMIT_DATA",
		     "ulimit -d unlimited    (systemd: LimitDATA=infinity)");
	cgroups_take(out);
}

uint64_t memlimit_kills(void)
{
	char path[PATH_MAX], file[PATH_MAX + 64];
	uint64_t own = 0, host = 0;
	bool v1 = false;

	if (own_cgroup(path, &v1)) {
		snprintf(file, sizeof(file), "%s%s/%s", v1 ? V1 : V2, path,
			 v1 ? "memory.oom_control" : "memory.events");
		number_in(file, "oom_kill", &own);
	}
	number_in("/proc/vmstat", "oom_kill", &host);
	return own + host;
}
