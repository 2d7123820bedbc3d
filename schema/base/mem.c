/* SPDX-License-Identifier: Apache-2.0 */
/* mem: allocation that does not fail. */
#include "schema/base/mem.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/log.h"
#include "schema/base/limits/memlimit.h"

#define HUGE_LEAST (2u << 20)
#define PAGE       4096u
#define HEAP       (32u << 20)

static bool huge;

/* What is small comes from the heap, which is made long at once. */
void mem_use_huge_pages(void)
{
	void *volatile some; /* volatile: that it is made is the point */
	uintptr_t from, to;

	huge = true;
	mallopt(M_TOP_PAD, HEAP);
	mallopt(M_MMAP_THRESHOLD, (int)HUGE_LEAST);
	mallopt(M_TRIM_THRESHOLD, (int)(8 * HEAP));
	some = malloc(256 * 1024);
	free(some);
	to = (uintptr_t)sbrk(0) / PAGE * PAGE;
	from = to - HEAP;
	madvise((void *)from, to - from, MADV_HUGEPAGE);
	mallopt(M_TOP_PAD, 128 * 1024);
}

/* All pages of the block. A block that is a separate mapping is advised as a whole, since mremap
 * can move it only in one piece. If the kernel has no huge pages, they stay small. */
static void *advised(void *p, size_t size)
{
	uintptr_t from, to;

	if (!huge || size < HUGE_LEAST)
		return p;
	from = (uintptr_t)p / PAGE * PAGE;
	to = ((uintptr_t)p + malloc_usable_size(p) + PAGE - 1) / PAGE * PAGE;
	madvise((void *)from, to - from, MADV_HUGEPAGE);
	return p;
}

static void *mem_check(void *p)
{
	if (!p) {
		struct memlimit limit;

		memlimit_read(&limit);
		if (limit.bytes == UINT64_MAX)
			log_error("out of memory");
		else
			log_error("out of memory: %s; fix: %s", limit.what, limit.fix);
		abort();
	}
	return p;
}

void *mem_alloc(size_t size)
{
	return mem_check(calloc(1, size ? size : 1));
}

void *mem_array(size_t n, size_t size)
{
	return advised(mem_check(calloc(n ? n : 1, size ? size : 1)), n * size);
}

void *mem_realloc(void *p, size_t size)
{
	return advised(mem_check(realloc(p, size ? size : 1)), size);
}

char *mem_strdup(const char *s)
{
	return mem_check(strdup(s));
}

char *mem_strndup(const char *s, size_t n)
{
	return mem_check(strndup(s, n));
}
