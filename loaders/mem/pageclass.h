/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pageclass: what a page frame of the host is used for: as the kernel's flags say
 * (Documentation/admin-guide/mm/pagemap.rst); of pages that have none of these, by the kernel's
 * function that asked for them. Pure.
 */
#ifndef SONDE_MEM_PAGECLASS_H
#define SONDE_MEM_PAGECLASS_H

#include <stdint.h>

enum pageclass {
	PAGECLASS_KERNEL, /* anything else that the kernel keeps for itself */
	PAGECLASS_ANON,
	PAGECLASS_CACHE,  /* of files */
	PAGECLASS_SHARED, /* shared memory: tmpfs, shm, memfd */
	PAGECLASS_SLAB,
	PAGECLASS_TABLES, /* page tables */
	PAGECLASS_SOCKET, /* buffers of sockets, outside of slab */
	PAGECLASS_PIPE,
	PAGECLASS_STACK,   /* of threads, in the kernel */
	PAGECLASS_HUGETLB, /* reserved huge pages */
	PAGECLASS_N,
	PAGECLASS_FREE = PAGECLASS_N /* it is not in use */
};

/* By /proc/kpageflags. PAGECLASS_KERNEL: the flags do not say. */
enum pageclass pageclass_of(uint64_t flags);
/* PAGECLASS_KERNEL: this function does not say. */
enum pageclass pageclass_by_function(const char *name);
/* "[page cache]": the name of its frame. */
const char *pageclass_name(enum pageclass class);

#endif
