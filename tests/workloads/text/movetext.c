/* SPDX-License-Identifier: Apache-2.0 */
/* movetext: copies its own text to memory without a file at the old place, then computes there.
 * "remap": mremap; "map": a new mapping. Prints "moved" when it has done so; ends after S seconds.
 *
 *     movetext remap|map S
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static volatile uint64_t sum;

/* Alone in its page: the code that replaces it is elsewhere. */
__attribute__((noinline, section(".text.moved"), aligned(4096))) static void spin_in_moved_text(
	uint64_t until)
{
	struct timespec t;

	do {
		for (unsigned i = 0; i < 100000; i++)
			sum += i;
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while ((uint64_t)t.tv_sec < until);
}

__attribute__((section(".text.stays"), aligned(4096))) int main(int argc, char **argv)
{
	char *text = (char *)((uintptr_t)spin_in_moved_text & ~(uintptr_t)(PAGE - 1)), *copy;
	struct timespec t;

	if (argc != 3)
		return 2;
	copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return 1;
	memcpy(copy, text, PAGE);
	if (!strcmp(argv[1], "remap")) {
		if (mprotect(copy, PAGE, PROT_READ | PROT_EXEC) ||
		    mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, text) != text)
			return 1;
	} else if (mmap(text, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != text) {
		return 1;
	} else {
		memcpy(text, copy, PAGE);
		if (mprotect(text, PAGE, PROT_READ | PROT_EXEC))
			return 1;
	}
	if (write(1, "moved\n", 6) != 6)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &t);
	spin_in_moved_text((uint64_t)t.tv_sec + (uint64_t)atoi(argv[2]));
	return 0;
}
