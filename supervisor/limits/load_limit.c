/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/limits/load_limit.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

static int begin_anew(struct load_limit *g, int by)
{
	g->over_ns = g->under_ns = 0;
	g->again = by > 0;
	return by;
}

int load_limit_look(struct load_limit *g, double used, double limit, int64_t while_ns,
		    int64_t now_ns)
{
	if (limit <= 0)
		return begin_anew(g, -1);
	g->over_ns = used > limit ? g->over_ns ?: now_ns : 0;
	g->under_ns = used < limit / 2 ? g->under_ns ?: now_ns : 0;
	g->again = g->again && g->over_ns;
	if (g->over_ns && now_ns - g->over_ns >= (g->again ? while_ns / LOAD_LIMIT_NEXT : while_ns))
		return begin_anew(g, 1);
	if (g->under_ns && now_ns - g->under_ns >= LOAD_LIMIT_ROOM * while_ns)
		return begin_anew(g, -1);
	return 0;
}

bool load_limit_starts(struct load_limit *g, int64_t began_ns, int64_t while_ns, int64_t now_ns)
{
	if (now_ns - began_ns > while_ns)
		return false;
	begin_anew(g, 0);
	return true;
}

bool load_limit_begins(int64_t ready_ns, unsigned int failures, int64_t while_ns, int64_t now_ns)
{
	return !failures && (!ready_ns || now_ns - ready_ns < while_ns);
}

/* Its own to the nanosecond. */
static int64_t own_cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

int64_t process_cpu_ns(pid_t pid)
{
	char path[64], text[1024];
	cleanup_file FILE *f = NULL;
	unsigned long long user, system;
	const char *at;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; at && i < 14; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %llu %llu", &user, &system) != 2)
		return 0;
	return own_cpu_ns(pid) +
	       (int64_t)((user + system) *
			 (NSEC_PER_SEC / (unsigned long long)sysconf(_SC_CLK_TCK)));
}

uint64_t host_switches(void)
{
	cleanup_file FILE *f = fopen("/proc/stat", "re");
	unsigned long long n = 0;
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "ctxt %llu", &n) == 1)
			break;
	return n;
}

uint64_t process_private_bytes(pid_t pid)
{
	unsigned long long size, resident, shared;
	char path[64];
	cleanup_file FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu %llu %llu", &size, &resident, &shared) != 3 || resident < shared)
		return 0;
	return (resident - shared) * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static uint64_t listed_bytes(const char *path)
{
	cleanup_file FILE *f = fopen(path, "re");
	uint64_t sum = 0;
	int child;

	while (f && fscanf(f, "%d", &child) == 1)
		sum += process_private_bytes(child);
	return sum;
}

uint64_t process_children_bytes(pid_t pid)
{
	char pattern[64];
	uint64_t sum = 0;
	glob_t threads;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/children", (int)pid);
	if (glob(pattern, GLOB_NOSORT, NULL, &threads))
		return 0;
	for (size_t i = 0; i < threads.gl_pathc; i++)
		sum += listed_bytes(threads.gl_pathv[i]);
	globfree(&threads);
	return sum;
}
