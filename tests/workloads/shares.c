/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares SECONDS: one thread, four chains of calls, 50, 30, 15 and 5 % of its work. Prints the CPU
 * time that it measured around each chain, root first, by the names a profiler should show; and the
 * turns of work of each, which are right also where the machine's own CPU is taken away (a guest in
 * an emulator).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

static volatile uint64_t sink;

#define CHAIN(name)                                        \
	static NOINLINE void leaf_##name(uint64_t turns)   \
	{                                                  \
		sink += work_turns(turns, sink);           \
	}                                                  \
	static NOINLINE void middle_##name(uint64_t turns) \
	{                                                  \
		leaf_##name(turns);                        \
		sink++;                                    \
	}                                                  \
	static NOINLINE void outer_##name(uint64_t turns)  \
	{                                                  \
		middle_##name(turns);                      \
		sink++;                                    \
	}
CHAIN(parse)
CHAIN(render)
CHAIN(compress)
CHAIN(flush)

static void (*const chains[WORK_CHAINS])(uint64_t) = {outer_parse, outer_render, outer_compress,
						      outer_flush};
static const char *const names[WORK_CHAINS] = {"parse", "render", "compress", "flush"};

static NOINLINE void work_loop(uint64_t until, uint64_t *spent, uint64_t *done)
{
	uint64_t seed = 88172645463325252u;

	while (work_now_ns() < until) {
		int i = work_next(done);
		uint64_t turns = work_slice(&seed), began = work_cpu_ns();

		chains[i](turns);
		done[i] += turns;
		spent[i] += work_cpu_ns() - began;
	}
}

int main(int argc, char **argv)
{
	uint64_t spent[WORK_CHAINS] = {0}, turns[WORK_CHAINS] = {0};
	struct rusage ru;

	work_loop(work_now_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "5") * 1e9), spent, turns);
	getrusage(RUSAGE_SELF, &ru);
	printf("{\"pid\": %d, \"cpu_ns\": %lld, \"chains\": {", getpid(),
	       (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000ll +
		       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ll);
	for (int i = 0; i < WORK_CHAINS; i++)
		printf("%s\"main;work_loop;outer_%s;middle_%s;leaf_%s\": %llu", i ? ", " : "",
		       names[i], names[i], names[i], (unsigned long long)spent[i]);
	printf("}, \"turns\": [%llu, %llu, %llu, %llu]}\n", (unsigned long long)turns[0],
	       (unsigned long long)turns[1], (unsigned long long)turns[2],
	       (unsigned long long)turns[3]);
	return 0;
}
