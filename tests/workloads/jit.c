/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit SECONDS [MAP [TARGET]]: makes two functions at run time, with frame pointers, tells their names in
 * /tmp/perf-PID.map (the pid of its own namespace) and spends 70 % of its CPU time in one and 30 % in the other.
 * MAP is what stands at the map's path instead: "fifo", "link" (to TARGET), "dir", "sparse" (100 GB), "none".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

typedef void (*jitted)(uint64_t turns);

/* push %rbp; mov %rsp,%rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};

static NOINLINE void jit_loop(uint64_t until, jitted hot, jitted warm, uint64_t spent[2])
{
	uint64_t seed = 88172645463325252u;

	while (work_now_ns() < until) {
		int i = (double)spent[0] * 0.3 > (double)spent[1] * 0.7;
		uint64_t began = work_cpu_ns();

		(i ? warm : hot)(work_slice(&seed));
		spent[i] += work_cpu_ns() - began;
	}
}

static int tell(const char *path, const uint8_t *mem)
{
	FILE *map = fopen(path, "w");

	if (!map)
		return -1;
	fprintf(map, "%lx 40 jit_hot(Order, int)\n%lx 40 jit_warm\n", (unsigned long)(mem + 256), (unsigned long)(mem + 4096));
	return fclose(map);
}

static int put(const char *path, const char *kind, const char *target)
{
	FILE *f;

	if (!strcmp(kind, "fifo"))
		return mkfifo(path, 0666);
	if (!strcmp(kind, "link"))
		return symlink(target, path);
	if (!strcmp(kind, "dir"))
		return mkdir(path, 0777);
	if (strcmp(kind, "sparse"))
		return 0;
	f = fopen(path, "w");
	return !f || ftruncate(fileno(f), 100000000000) || fclose(f) ? -1 : 0;
}

int main(int argc, char **argv)
{
	uint8_t *mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t spent[2] = {0};
	char path[64];

	if (mem == MAP_FAILED)
		return 1;
	memcpy(mem + 256, code, sizeof(code));
	memcpy(mem + 4096, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if (argc > 2 ? put(path, argv[2], argc > 3 ? argv[3] : "") : tell(path, mem))
		return 1;
	jit_loop(work_now_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "5") * 1e9), (jitted)(uintptr_t)(mem + 256),
		 (jitted)(uintptr_t)(mem + 4096), spent);
	/* a sampler may read the map a little after the fact: leave it for a moment */
	usleep(1500000);
	remove(path);
	printf("{\"pid\": %d, \"chains\": {\"main;jit_loop;jit_hot(Order, int)\": %llu, \"main;jit_loop;jit_warm\": %llu}}\n",
	       getpid(), (unsigned long long)spent[0], (unsigned long long)spent[1]);
	return 0;
}
