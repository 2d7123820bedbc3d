/* SPDX-License-Identifier: Apache-2.0 */
/* onecall SECONDS: spends its CPU time inside one system call, getrandom. Prints utime and stime.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char **argv)
{
	static char buf[1 << 20];
	uint64_t until = work_now_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "5") * 1e9);
	unsigned long calls = 0;
	struct rusage ru;

	while (work_now_ns() < until) {
		if (getrandom(buf, sizeof(buf), 0) < 0)
			return 1;
		calls++;
	}
	getrusage(RUSAGE_SELF, &ru);
	printf("{\"pid\": %d, \"calls\": %lu, \"user_ns\": %lld, \"kernel_ns\": %lld}\n", getpid(),
	       calls, ru.ru_utime.tv_sec * 1000000000ll + ru.ru_utime.tv_usec * 1000ll,
	       ru.ru_stime.tv_sec * 1000000000ll + ru.ru_stime.tv_usec * 1000ll);
	return 0;
}
