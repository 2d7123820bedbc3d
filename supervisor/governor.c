/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/governor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

static int change(struct governor *g, int by)
{
	g->step = (unsigned int)((int)g->step + by);
	g->over_ns = g->under_ns = 0;
	return by;
}

int governor_look(struct governor *g, double used, double limit, unsigned int steps, int64_t now_ns)
{
	if (limit <= 0)
		return g->step ? change(g, -1) : 0;
	g->over_ns = used > limit ? g->over_ns ?: now_ns : 0;
	g->under_ns = used < limit / 2 ? g->under_ns ?: now_ns : 0;
	if (g->over_ns && now_ns - g->over_ns >= GOVERNOR_OVER_NS && g->step < steps)
		return change(g, 1);
	if (g->under_ns && now_ns - g->under_ns >= GOVERNOR_UNDER_NS && g->step > 0)
		return change(g, -1);
	return 0;
}

uint32_t governor_freq(const struct governor *g, uint32_t asked)
{
	uint32_t freq = asked >> (g->step < GOVERNOR_SLOWER ? g->step : GOVERNOR_SLOWER);

	return freq ? freq : 1;
}

int governor_allows(const struct governor *cpu, const struct governor *memory, unsigned int i, unsigned int n)
{
	unsigned int fewer = cpu->step > GOVERNOR_SLOWER ? cpu->step - GOVERNOR_SLOWER : 0;

	fewer = fewer > memory->step ? fewer : memory->step;
	return i == 0 || i + fewer < n;
}

int64_t process_cpu_ns(pid_t pid)
{
	char path[64], text[1024];
	cleanup_file FILE *f = NULL;
	unsigned long long t[4], sum = 0;
	const char *at;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; at && i < 12; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3]) != 4)
		return 0;
	for (int i = 0; i < 4; i++)
		sum += t[i];
	return (int64_t)(sum * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK)));
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
