/* SPDX-License-Identifier: Apache-2.0 */
/* spawner: starts a program so many times a second, in step with the clock, and waits for each.
 * usage: spawner SECONDS RATE PROGRAM... */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

int main(int argc, char **argv)
{
	struct timespec next;
	time_t end;
	long rate;
	pid_t pid;

	if (argc < 4 || (rate = atol(argv[2])) < 1)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &next);
	end = next.tv_sec + (time_t)atof(argv[1]);
	while (next.tv_sec < end) {
		if (!posix_spawn(&pid, argv[3], NULL, NULL, argv + 3, environ))
			waitpid(pid, NULL, 0);
		next.tv_nsec += 1000000000 / rate;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}
