/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem: allocation that does not fail. For sizes that are small or that the caller bounds; check
 * sizes from outside first. Out of memory prints one line and aborts.
 */
#ifndef SONDE_BASE_MEM_H
#define SONDE_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);           /* zeroed */
void *mem_array(size_t n, size_t size); /* zeroed, overflow checked */
void *mem_realloc(void *p, size_t size);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
/* From now on large blocks use huge pages if the kernel allows it (madvise): one page fault per 2
 * MB instead of 4 KB. For short-lived programs that fill what they allocate; not for those whose
 * memory must stay small. */
void mem_use_huge_pages(void);

/* Make room for one more element in a growing array: mem_grow(v->items, v->n, v->cap). */
#define mem_grow(items, n, cap)                                                           \
	do {                                                                              \
		if ((n) == (cap)) {                                                       \
			(cap) = (cap) ? (cap)*2 : 16;                                     \
			(items) = mem_realloc((items), (size_t)(cap) * sizeof(*(items))); \
		}                                                                         \
	} while (0)

#endif
