/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/pageclass.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "schema/base/array.h"

#define BIT(n_) (1ull << (n_))
/* include/uapi/linux/kernel-page-flags.h */
#define UPTODATE   BIT(3)
#define LRU        BIT(5)
#define SLAB       BIT(7)
#define BUDDY      BIT(10)
#define ANON       BIT(12)
#define SWAPBACKED BIT(14)
#define HUGETLB    BIT(17)
#define NOPAGE     BIT(20)
#define OFFLINE    BIT(23)
#define TABLES     BIT(26)

/* A new page of the cache is not on the LRU list for a moment, and has UPTODATE only. One that is
 * just mapped may be the kernel's: a BPF map, a ring of perf. */
enum pageclass pageclass_of(uint64_t flags)
{
	if (flags & (BUDDY | NOPAGE | OFFLINE))
		return PAGECLASS_FREE;
	if (flags & SLAB)
		return PAGECLASS_SLAB;
	if (flags & TABLES)
		return PAGECLASS_TABLES;
	if (flags & HUGETLB)
		return PAGECLASS_HUGETLB;
	if (flags & ANON)
		return PAGECLASS_ANON;
	if (flags & (LRU | UPTODATE))
		return flags & SWAPBACKED ? PAGECLASS_SHARED : PAGECLASS_CACHE;
	return PAGECLASS_KERNEL;
}

static const struct {
	const char *part;
	bool begins; /* else it is anywhere in the name */
	enum pageclass class;
} FUNCTIONS[] = {
	{"___kmalloc_large", true, PAGECLASS_SLAB},
	{"__kmalloc_large", true, PAGECLASS_SLAB},
	{"kmalloc_large", true, PAGECLASS_SLAB},
	{"kmalloc_order", true, PAGECLASS_SLAB},
	{"allocate_slab", true, PAGECLASS_SLAB},
	{"alloc_thread_stack", true, PAGECLASS_STACK},
	{"dup_task_struct", true, PAGECLASS_STACK},
	{"skb_", false, PAGECLASS_SOCKET},
	{"_skb", false, PAGECLASS_SOCKET},
	{"sk_page_frag", true, PAGECLASS_SOCKET},
	{"page_pool_", true, PAGECLASS_SOCKET},
	{"napi_alloc_frag", true, PAGECLASS_SOCKET},
	{"__napi_alloc_frag", true, PAGECLASS_SOCKET},
	{"try_fill_recv", true, PAGECLASS_SOCKET},
	{"pipe_write", false, PAGECLASS_PIPE},
	{"pte_alloc", true, PAGECLASS_TABLES},
	{"__pte_alloc", true, PAGECLASS_TABLES},
	{"__pmd_alloc", true, PAGECLASS_TABLES},
	{"__pud_alloc", true, PAGECLASS_TABLES},
	{"pgd_alloc", true, PAGECLASS_TABLES},
};

enum pageclass pageclass_by_function(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(FUNCTIONS); i++) {
		const char *part = FUNCTIONS[i].part, *at = strstr(name, part);

		if (at == name || (at && !FUNCTIONS[i].begins))
			return FUNCTIONS[i].class;
	}
	return PAGECLASS_KERNEL;
}

const char *pageclass_name(enum pageclass class)
{
	static const char *const names[PAGECLASS_N] = {
		[PAGECLASS_KERNEL] = "[kernel memory]",
		[PAGECLASS_ANON] = "[anonymous memory]",
		[PAGECLASS_CACHE] = "[page cache]",
		[PAGECLASS_SHARED] = "[shared memory]",
		[PAGECLASS_SLAB] = "[slab]",
		[PAGECLASS_TABLES] = "[page tables]",
		[PAGECLASS_SOCKET] = "[socket buffers]",
		[PAGECLASS_PIPE] = "[pipes]",
		[PAGECLASS_STACK] = "[stacks of threads]",
		[PAGECLASS_HUGETLB] = "[reserved huge pages]",
	};

	return class < PAGECLASS_N ? names[class] : "";
}
