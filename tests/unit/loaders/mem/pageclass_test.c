/* SPDX-License-Identifier: Apache-2.0 */
/* pageclass: what the kernel's flags and functions say that a page is used for. */
#include "loaders/mem/pageclass.h"

#include <linux/kernel-page-flags.h>

#include "tests/unit/test.h"

#define BIT(n_) (1ull << (n_))

TEST(flags_say_what_a_page_is_used_for)
{
	const uint64_t lru = BIT(KPF_LRU) | BIT(KPF_UPTODATE);

	assert_int_equal(pageclass_of(lru | BIT(KPF_REFERENCED)), PAGECLASS_CACHE);
	assert_int_equal(pageclass_of(BIT(KPF_UPTODATE)), PAGECLASS_CACHE);
	assert_int_equal(pageclass_of(lru | BIT(KPF_SWAPBACKED)), PAGECLASS_SHARED);
	assert_int_equal(pageclass_of(lru | BIT(KPF_SWAPBACKED) | BIT(KPF_ANON) | BIT(KPF_MMAP)),
			 PAGECLASS_ANON);
	assert_int_equal(pageclass_of(BIT(KPF_SLAB)), PAGECLASS_SLAB);
	assert_int_equal(pageclass_of(BIT(KPF_PGTABLE) | BIT(KPF_MMAP)), PAGECLASS_TABLES);
	assert_int_equal(pageclass_of(BIT(KPF_HUGE) | BIT(KPF_COMPOUND_HEAD)), PAGECLASS_HUGETLB);
	assert_int_equal(pageclass_of(BIT(KPF_BUDDY)), PAGECLASS_FREE);
	assert_int_equal(pageclass_of(BIT(KPF_NOPAGE)), PAGECLASS_FREE);
	assert_int_equal(pageclass_of(0), PAGECLASS_KERNEL);
	assert_int_equal(pageclass_of(BIT(KPF_MMAP)), PAGECLASS_KERNEL);
	assert_int_equal(pageclass_of(BIT(KPF_COMPOUND_TAIL)), PAGECLASS_KERNEL);
}

TEST(of_pages_without_flags_the_function_says_it)
{
	assert_int_equal(pageclass_by_function("skb_page_frag_refill"), PAGECLASS_SOCKET);
	assert_int_equal(pageclass_by_function("__alloc_skb"), PAGECLASS_SOCKET);
	assert_int_equal(pageclass_by_function("anon_pipe_write"), PAGECLASS_PIPE);
	assert_int_equal(pageclass_by_function("alloc_thread_stack_node"), PAGECLASS_STACK);
	assert_int_equal(pageclass_by_function("___kmalloc_large_node"), PAGECLASS_SLAB);
	assert_int_equal(pageclass_by_function("__pte_alloc"), PAGECLASS_TABLES);
	assert_int_equal(pageclass_by_function("ext4_mpage_readpages"), PAGECLASS_KERNEL);
	assert_int_equal(pageclass_by_function(""), PAGECLASS_KERNEL);
}

TEST(each_class_has_a_name)
{
	for (int i = 0; i < PAGECLASS_N; i++)
		assert_int_equal(pageclass_name((enum pageclass)i)[0], '[');
	assert_string_equal(pageclass_name(PAGECLASS_FREE), "");
}
