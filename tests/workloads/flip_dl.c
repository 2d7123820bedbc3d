/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flip-dl LIB_RED LIB_BLUE EVERY_MS SECONDS: loads one library, burns in it, unloads it, loads the
 * other one, which the kernel then places at the same address. The thread's name says which library
 * it is in ("red", "blue", "between"). Prints how many turns there were and how many of them had
 * the address of the turn before.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char **argv)
{
	static const char *const colours[2] = {"red", "blue"};
	uint64_t every, until;
	unsigned long turns = 0, same = 0;
	uintptr_t last = 0;

	if (argc < 5)
		return 2;
	every = strtoull(argv[3], NULL, 10) * 1000000u;
	until = work_now_ns() + (uint64_t)(atof(argv[4]) * 1e9);
	while (work_now_ns() < until) {
		int i = (int)(turns & 1);
		void *lib = dlopen(argv[1 + i], RTLD_NOW | RTLD_LOCAL);
		void (*outer)(uint64_t) = NULL;
		struct link_map *map = NULL;

		if (lib)
			outer = (void (*)(uint64_t))(uintptr_t)dlsym(lib, i ? "blue_outer" :
									      "red_outer");
		if (!outer || dlinfo(lib, RTLD_DI_LINKMAP, &map))
			return 1;
		same += map->l_addr == last;
		last = map->l_addr;
		prctl(PR_SET_NAME, colours[i]);
		outer(work_now_ns() + every);
		prctl(PR_SET_NAME, "between");
		dlclose(lib);
		turns++;
	}
	printf("{\"pid\": %d, \"turns\": %lu, \"same\": %lu, \"cpu_ns\": %llu}\n", getpid(), turns,
	       same, (unsigned long long)work_cpu_ns());
	return 0;
}
