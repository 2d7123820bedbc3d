/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framebase: where the kernel has the struct page of frame 0. This thread touches pages; a program
 * at mm_page_alloc says where the struct page of each lies, and /proc/self/pagemap which frame it
 * is. A page may come without that event, or the last one may be a page table: the address that
 * most of them agree on holds.
 */
#ifndef SONDE_MEM_FRAMEBASE_H
#define SONDE_MEM_FRAMEBASE_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMEBASE_STRUCT 64 /* bytes of a struct page */

/* *seen: the struct page that this thread got last. 0: not found, or a struct page has another
 * size.
 */
uint64_t framebase_find(const volatile __u64 *seen);
/* Pure: what more than half of these agree on; 0: none. */
uint64_t framebase_agreed(const uint64_t *bases, size_t n);

#endif
