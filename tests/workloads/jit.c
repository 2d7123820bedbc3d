/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit SECONDS [MAP [TARGET]]: makes two functions at run time, with frame pointers, writes their
 * names to /tmp/perf-PID.map (PID as in its own namespace) and spends 70 % of its CPU time in one
 * and 30 % in the other. MAP puts something else at the map's path: "fifo", "link" (to TARGET),
 * "dir", "sparse" (100 GB), "none". With "dump" a jitdump, /tmp/jit-PID.dump, has the names, with
 * lines (warm.src: 7, and 8 from the loop on), and the move of the first function from where it was
 * compiled; jit then prints a line.
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
	fprintf(map, "%lx 40 jit_hot(Order, int)\n%lx 40 jit_warm\n", (unsigned long)(mem + 256),
		(unsigned long)(mem + 4096));
	return fclose(map);
}

static void record(FILE *f, uint32_t kind, const void *body, uint32_t size, const char *text,
		   uint32_t more)
{
	const uint32_t length = text ? (uint32_t)strlen(text) + 1 : 0,
		       head[4] = {kind, 16 + size + length + more, 1, 0};

	fwrite(head, sizeof(head), 1, f);
	fwrite(body, size, 1, f);
	fwrite(text ? text : "", length, 1, f);
	fwrite(code, more, 1, f);
}

static void load(FILE *f, const uint8_t *at, uint64_t number, const char *name)
{
	const uint32_t pid = (uint32_t)getpid();
	const uint64_t body[5] = {(uint64_t)pid << 32 | pid, (uintptr_t)at, (uintptr_t)at,
				  sizeof(code), number};

	record(f, 0, body, sizeof(body), name, sizeof(code));
}

static int dump(const char *path, const uint8_t *mem)
{
	const uint32_t pid = (uint32_t)getpid(), head[10] = {0x4A695444, 1, 40, 62, 0, pid};
	const uint64_t moved[6] = {(uint64_t)pid << 32 | pid, (uintptr_t)mem, (uintptr_t)mem,
				   (uintptr_t)(mem + 256),    sizeof(code),   1};
	const uint64_t lines[4] = {(uintptr_t)(mem + 4096), 2, (uintptr_t)(mem + 4096), 7};
	const uint64_t second[2] = {(uintptr_t)(mem + 4096 + 4), 8};
	uint8_t body[sizeof(lines) + 9 + sizeof(second)];
	FILE *f = fopen(path, "w+");

	if (!f)
		return -1;
	memcpy(body, lines, sizeof(lines));
	memcpy(body + sizeof(lines), "warm.src", 9);
	memcpy(body + sizeof(lines) + 9, second, sizeof(second));
	fwrite(head, sizeof(head), 1, f);
	load(f, mem, 1, "jit_hot(Order, int)");
	record(f, 1, moved, sizeof(moved), NULL, 0);
	record(f, 2, body, sizeof(body), "\xff", 0);
	load(f, mem + 4096, 2, "jit_warm");
	if (fflush(f) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
		return -1;
	return fclose(f);
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
	uint8_t *mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t spent[2] = {0};
	char path[64];

	if (mem == MAP_FAILED)
		return 1;
	memcpy(mem + 256, code, sizeof(code));
	memcpy(mem + 4096, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if (argc > 2 && !strcmp(argv[2], "dump")) {
		snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
		if (dump(path, mem))
			return 1;
		puts("jit");
		fflush(stdout);
	} else if (argc > 2 ? put(path, argv[2], argc > 3 ? argv[3] : "") : tell(path, mem))
		return 1;
	jit_loop(work_now_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "5") * 1e9),
		 (jitted)(uintptr_t)(mem + 256), (jitted)(uintptr_t)(mem + 4096), spent);
	/* a sampler may read the map a little after the fact: leave it for a moment */
	usleep(1500000);
	remove(path);
	printf("{\"pid\": %d, \"chains\": {\"main;jit_loop;jit_hot(Order, int)\": %llu, \"main;jit_loop;jit_warm\": %llu}}\n",
	       getpid(), (unsigned long long)spent[0], (unsigned long long)spent[1]);
	return 0;
}
