/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pingpong: on each CPU two processes that hand a byte back and forth through pipes, so that every
 * hand-over is a switch. pingpong SECONDS [LOOPS] -> "SWITCHES NS", how many there were and in what
 * time, both processes of all pairs together. LOOPS: of work, before each.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static volatile long sink;
static long loops; /* of work, for each switch */

static void work(long n)
{
	for (long i = 0; i < n; i++)
		sink += i;
}

static void answer(int from, int to)
{
	char c;

	while (read(from, &c, 1) == 1) {
		work(loops);
		if (write(to, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static void pair(int cpu, long until_ns, long *switches)
{
	int there[2], back[2];
	cpu_set_t set;
	char c = 0;
	pid_t pid;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || pipe(there) || pipe(back))
		_exit(1);
	pid = fork();
	if (!pid)
		answer(there[0], back[1]);
	while (now_ns() < until_ns)
		for (int i = 0; i < 64; i++) {
			work(loops);
			if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
				_exit(1);
			*switches += 2;
		}
	kill(pid, SIGKILL);
	_exit(0);
}

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), begin, until, sum = 0;
	long *switches = mmap(NULL, (size_t)cpus * 64, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (switches == MAP_FAILED)
		return 1;
	loops = argc > 2 ? atol(argv[2]) : 0;
	begin = now_ns();
	until = begin + (argc > 1 ? atol(argv[1]) : 5) * 1000000000L;
	for (int i = 0; i < cpus; i++)
		if (!fork())
			pair(i, until, switches + i * 8);
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < cpus; i++)
		sum += switches[i * 8];
	printf("%ld %ld\n", sum, now_ns() - begin);
	return 0;
}
