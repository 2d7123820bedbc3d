/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thrash: writes MIB of memory, then reads a byte of each page, ROUNDS times over: in a cgroup that
 * has less, each page comes back from swap. thrash MIB ROUNDS [SECONDS]. Prints at its end how many
 * pages it has, and how many of its page faults the kernel says were major; SECONDS later it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE 4096

/* Each page differs, and packs badly. */
__attribute__((noinline)) static void fills(unsigned char *p, size_t size)
{
	unsigned int x = 1;

	for (size_t i = 0; i < size; i += 4) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		memcpy(p + i, &x, 4);
	}
}

__attribute__((noinline)) static unsigned int reads(const volatile unsigned char *p, size_t size)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < size; i += PAGE)
		sum += p[i];
	return sum;
}

int main(int argc, char **argv)
{
	size_t size = (size_t)(argc > 1 ? atol(argv[1]) : 1) << 20;
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	unsigned int sum = 0;
	struct rusage u;
	unsigned char *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	madvise(p, size, MADV_NOHUGEPAGE);
	fills(p, size);
	for (int i = 0; i < rounds; i++)
		sum += reads(p, size);
	getrusage(RUSAGE_SELF, &u);
	printf("{\"pid\": %d, \"pages\": %zu, \"major\": %ld, \"sum\": %u}\n", getpid(),
	       size / PAGE, u.ru_majflt, sum);
	fflush(stdout);
	sleep(argc > 3 ? (unsigned int)atoi(argv[3]) : 0);
	return 0;
}
