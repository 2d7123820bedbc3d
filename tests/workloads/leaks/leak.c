/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak: keeps KIB more each 20 ms in leaky(), SECONDS long, beside churn() that takes and gives
 * back 16 MiB. Says at its end how many bytes it has kept. leak KIB SECONDS
 * [malloc|mmap|huge|populate|moves|locked|none|reuse [NTH]]. NTH: only each Nth time. moves: one
 * block that realloc makes larger, below a page that is in its way; reuse: blocks of an allocator
 * that others take again.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CHURN (16u << 20)

static void *kept[65536];
static size_t n_kept;

__attribute__((noinline)) static void leaky(const char *how, size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (!strcmp(how, "populate") ? MAP_POPULATE : 0);
	void *p;

	if (!strcmp(how, "malloc")) {
		p = malloc(bytes);
	} else if (!strcmp(how, "huge")) {
		p = aligned_alloc(2u << 20, bytes);
		madvise(p, bytes, MADV_HUGEPAGE);
	} else {
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	}
	if (!strcmp(how, "locked") && mlock(p, bytes))
		perror("mlock");
	memset(p, 1, bytes);
	kept[n_kept++] = p;
}

/* With mremap(2): the new page behind the block makes it move each time. */
__attribute__((noinline)) static void moves(size_t bytes)
{
	static char *block;
	size_t size = n_kept * bytes;

	block = realloc(block, size + bytes);
	memset(block + size, 1, bytes);
	mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	kept[n_kept++] = block;
}

/* 1024 blocks of up to 16 KiB, each freed and allocated over and over. */
__attribute__((noinline)) static void reused(size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		size_t size = 512 + (size_t)rand() % 16384, at = (size_t)rand() % 1024;

		free(kept[at]);
		kept[at] = memset(malloc(size), 1, size);
		done += size;
	}
}

__attribute__((noinline)) static void churn(void)
{
	char *p = mmap(NULL, CHURN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < CHURN; i += 4096)
		p[i] = 1;
	munmap(p, CHURN);
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)atol(argv[1]) << 10;
	int turns = atoi(argv[2]) * 50;
	const char *how = argc > 3 ? argv[3] : "malloc";
	int nth = argc > 4 ? atoi(argv[4]) : 1;
	int pause = turns > 400 ? turns / 80 : 5; /* 1.25 GiB in all, of a long run */

	for (int i = 0; i < turns; i++) {
		if (i % nth)
			;
		else if (!strcmp(how, "reuse"))
			reused(bytes);
		else if (!strcmp(how, "moves"))
			moves(bytes);
		else if (strcmp(how, "none"))
			leaky(how, bytes);
		if (i % pause == 0)
			churn();
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	printf("%zu\n", n_kept * bytes);
	fflush(stdout);
	getchar();
	return 0;
}
