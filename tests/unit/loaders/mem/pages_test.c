/* SPDX-License-Identifier: Apache-2.0 */
/* pages: what the kernel says of this process's own pages is what it did with them. */
#include "loaders/mem/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define PAGES 1500

TEST(status_is_read_as_far_as_it_goes)
{
	static const char text[] =
		"Name:\tx\nVmRSS:\t  99 kB\nRssAnon:\t    1234 kB\nRssFile:\t 5 kB\nVmSwap:\t 7 kB\n",
			  kernel[] = "Name:\tkthreadd\nThreads:\t1\n",
			  cut[] = "Name:\tx\nRssAnon:\t";
	struct pages_usage u = {0};

	assert_int_equal(pages_usage_parse(text, strlen(text), &u), 0);
	assert_int_equal(u.own, 1234 * 1024);
	assert_int_equal(u.swap, 7 * 1024);
	assert_int_equal(pages_usage_parse(kernel, strlen(kernel), &u), -EBADMSG);
	assert_int_equal(pages_usage_parse(cut, strlen(cut), &u), -EBADMSG);
	assert_int_equal(pages_usage_parse("", 0, &u), -EBADMSG);
	assert_int_equal(u.own, 1234 * 1024);
}

TEST(what_was_touched_is_its_own_and_what_was_given_back_is_gone)
{
	char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0),
	     *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t pages[PAGES], first = (uint64_t)p >> 12;
	uint64_t said[PAGES];
	int fd = pages_open((uint32_t)getpid());

	assert_true(fd >= 0);
	for (int i = 0; i < PAGES; i++) {
		if (i % 3)
			p[i * 4096] = 1;
		pages[i] = first + (uint64_t)i;
	}
	pages_ask_all(fd, pages, PAGES, said);
	for (int i = 0; i < PAGES; i++)
		assert_int_equal(pages_state(said[i]), i % 3 ? PAGES_OWN : PAGES_GONE);
	assert_int_equal(pages_state(pages_ask(fd, first + 1)), PAGES_OWN);
	shared[0] = 1;
	assert_int_equal(pages_state(pages_ask(fd, (uint64_t)shared >> 12)), PAGES_OTHER);
	madvise(p, 4096 * 2, MADV_DONTNEED);
	assert_int_equal(pages_state(pages_ask(fd, first + 1)), PAGES_GONE);
	munmap(p, PAGES * 4096);
	munmap(shared, 4096);
	pages_ask_all(fd, pages, PAGES, said);
	for (int i = 0; i < PAGES; i++)
		assert_int_equal(pages_state(said[i]), PAGES_GONE);
	close(fd);
}

#define THP  (1ull << 22)
#define HEAD (1ull << 15)
#define TAIL (1ull << 16)

TEST(a_page_is_one_of_as_many_as_came_together)
{
	uint64_t flags[PAGES_HUGE] = {0};

	assert_int_equal(pages_size_in(flags, 5), 1);
	for (size_t i = 16; i < 48; i++) /* two of 64 KiB */
		flags[i] = THP | (i % 16 ? TAIL : HEAD);
	assert_int_equal(pages_size_in(flags, 16), 16);
	assert_int_equal(pages_size_in(flags, 31), 16);
	assert_int_equal(pages_size_in(flags, 40), 16);
	assert_int_equal(pages_size_in(flags, 48), 1);
	for (size_t i = 0; i < PAGES_HUGE; i++)
		flags[i] = THP | (i ? TAIL : HEAD);
	assert_int_equal(pages_size_in(flags, 0), PAGES_HUGE);
	assert_int_equal(pages_size_in(flags, PAGES_HUGE - 1), PAGES_HUGE);
}

TEST(what_the_host_uses_is_all_less_what_is_free)
{
	static const char text[] =
		"MemTotal:       1000 kB\nMemFree:         400 kB\nBuffers: 1 kB\n",
			  wrong[] = "MemTotal:  10 kB\nMemFree:  20 kB\n";

	assert_int_equal(pages_used_parse(text, strlen(text)), 600 * 1024);
	assert_int_equal(pages_used_parse(wrong, strlen(wrong)), 0);
	assert_int_equal(pages_used_parse("MemTotal:", 9), 0);
	assert_int_equal(pages_used_parse("", 0), 0);
	assert_true(pages_used() > 0);
}
