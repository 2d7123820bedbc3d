/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burn CPU_MS [THREADS] [NOTE...]: each thread uses CPU_MS of CPU time in burn_leaf and ends. NOTE
 * is only there to be seen in the command line. With CPU_MS 50 the process ends before a loader can
 * look at it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

static volatile uint64_t sink;
static uint64_t budget_ns;

static NOINLINE void burn_leaf(uint64_t turns)
{
	sink += work_turns(turns, sink);
}

static NOINLINE void burn_middle(uint64_t turns)
{
	burn_leaf(turns);
	sink++;
}

static NOINLINE void *burn_thread(void *arg)
{
	while (work_cpu_ns() < budget_ns)
		burn_middle(100000);
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t t[64];
	struct rusage ru;

	budget_ns = (uint64_t)(atof(argc > 1 ? argv[1] : "1000") * 1e6);
	for (int i = 1; i < threads && i < 64; i++)
		pthread_create(&t[i], NULL, burn_thread, NULL);
	burn_thread(NULL);
	for (int i = 1; i < threads && i < 64; i++)
		pthread_join(t[i], NULL);
	getrusage(RUSAGE_SELF, &ru);
	printf("{\"pid\": %d, \"cpu_ns\": %lld}\n", getpid(),
	       (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000ll +
		       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ll);
	return 0;
}
