/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namer CPU_MS: burns CPU_MS under each of some hostile thread names (markup, quotes, control
 * bytes, an emoji, broken UTF-8), then in a function whose name is 4 KB long. Prints the names as
 * arrays of bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "work.h"

static volatile uint64_t sink;

static const char *const names[] = {
	"</script><b>",         "\"quo'te`",     "a\tb\nc\rd\033[2J", "fold;ed name",
	"\xf0\x9f\x94\xa5 hot", "\xff\xfe\xc3(", "1,2,\"x\"",
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

/* 4 KB: 64 times 64 characters */
#define X8(x) x x x x x x x x

NOINLINE void long_name(uint64_t turns) __asm__("_ZN4wide4deepE_" X8(
	X8("sixty_four_characters_of_a_name_that_nobody_would_write_by_hand_")));

NOINLINE void long_name(uint64_t turns)
{
	sink += work_turns(turns, sink);
}

static NOINLINE void named_leaf(uint64_t turns)
{
	sink += work_turns(turns, sink);
}

int main(int argc, char **argv)
{
	uint64_t ns = (uint64_t)(atof(argc > 1 ? argv[1] : "300") * 1e6);

	for (size_t i = 0; i < N_NAMES; i++) {
		uint64_t end = work_cpu_ns() + ns;

		prctl(PR_SET_NAME, names[i]);
		while (work_cpu_ns() < end)
			named_leaf(50000);
	}
	prctl(PR_SET_NAME, "long");
	for (uint64_t end = work_cpu_ns() + ns; work_cpu_ns() < end;)
		long_name(50000);
	printf("{\"pid\": %d, \"names\": [", getpid());
	for (size_t i = 0; i < N_NAMES; i++) {
		printf("%s[", i ? ", " : "");
		for (const char *c = names[i]; *c; c++)
			printf("%s%u", c == names[i] ? "" : ", ", (unsigned char)*c);
		printf("]");
	}
	printf("]}\n");
	return 0;
}
