/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd BURN FOLDER COUNT CPU_MS SECONDS: starts COUNT processes, evenly over SECONDS, each under
 * its own name (FOLDER/job-NNN, symbolic links to BURN) with CPU_MS to burn. Prints the pid, name
 * and CPU time of each, by wait4.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define MOST 1000
static pid_t pids[MOST];
static long long cpu_ns[MOST];

static void reap(int count, int flags)
{
	struct rusage ru;
	pid_t pid;

	while ((pid = wait4(-1, NULL, flags, &ru)) > 0) {
		for (int i = 0; i < count; i++)
			if (pids[i] == pid && !cpu_ns[i])
				cpu_ns[i] =
					(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000ll +
					(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ll;
	}
}

int main(int argc, char **argv)
{
	int count, null;
	uint64_t began, gap;

	if (argc < 6 || (count = atoi(argv[3])) > MOST)
		return 2;
	gap = (uint64_t)(atof(argv[5]) * 1e9) / (uint64_t)count;
	began = work_now_ns();
	null = dup(1);
	if (!freopen("/dev/null", "w", stdout))
		return 1;
	for (int i = 0; i < count; i++) {
		char path[512];
		char *args[] = {path, argv[4], NULL};
		char *env[] = {NULL};

		snprintf(path, sizeof(path), "%s/job-%03d", argv[2], i);
		if (symlink(argv[1], path) && errno != EEXIST)
			return 1;
		if (posix_spawn(&pids[i], path, NULL, NULL, args, env))
			return 1;
		while (work_now_ns() < began + gap * (uint64_t)(i + 1)) {
			reap(i + 1, WNOHANG);
			usleep(2000);
		}
	}
	reap(count, 0);
	dprintf(null, "{\"jobs\": [");
	for (int i = 0; i < count; i++)
		dprintf(null, "%s{\"pid\": %d, \"name\": \"job-%03d\", \"cpu_ns\": %lld}",
			i ? ", " : "", pids[i], i, cpu_ns[i]);
	dprintf(null, "]}\n");
	return 0;
}
