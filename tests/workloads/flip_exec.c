/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flip-red | flip-blue OTHER EVERY_MS UNTIL_MS [ROUND]: two files built from this one source,
 * linked at the same fixed addresses, with the same code at the same place under other names
 * (red_leaf, blue_leaf). Each burns EVERY_MS and then execs the other, in the same process, until
 * the monotonic clock says UNTIL_MS. The last one prints how often.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "flip_lib.c" /* COLOUR_outer and what it calls */

int main(int argc, char **argv)
{
	unsigned long round = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	struct rusage ru;
	char next[32];
	uint64_t until;

	if (argc < 4)
		return 2;
	until = strtoull(argv[3], NULL, 10) * 1000000u;
	NAME(COLOUR, _outer)(work_now_ns() + strtoull(argv[2], NULL, 10) * 1000000u);
	if (work_now_ns() >= until) {
		getrusage(RUSAGE_SELF, &ru);
		printf("{\"pid\": %d, \"execs\": %lu, \"cpu_ns\": %lld}\n", getpid(), round,
		       (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000ll +
			       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ll);
		return 0;
	}
	snprintf(next, sizeof(next), "%lu", round + 1);
	/* the other one finds its partner in what we were called */
	execl(argv[1], argv[1], argv[0], argv[2], argv[3], next, (char *)NULL);
	return 1;
}
