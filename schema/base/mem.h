/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem: allocation that does not fail. For what is small or bounded by its caller; whoever reads a
 * size from outside checks it before. Out of memory prints one line and aborts.
 */
#ifndef SONDE_BASE_MEM_H
#define SONDE_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);           /* zeroed */
void *mem_array(size_t n, size_t size); /* zeroed, overflow checked */
void *mem_realloc(void *p, size_t size);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
/* From here on what is large lies in huge pages where the kernel lets it (madvise): a first touch
 * each 2 MB, not each 4 KB. For programs that fill what they ask for, and end soon; not for those
 * whose memory is to stay small. */
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
