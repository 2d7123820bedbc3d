/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm COUNT CODE [exec|US]: runs COUNT processes, at most eight at once, each of which ends at
 * once with CODE; with `exec` each executes a new program first, with a number it runs on a CPU for
 * US microseconds first. Prints how many it waited for.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 8

static long cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static pid_t begin(char **argv, int code, const char *how)
{
	int exec = how && !strcmp(how, "exec");
	long us = how && !exec ? atol(how) : 0;
	char *args[] = {argv[0], (char *)"0", argv[2], NULL}, *env[] = {NULL};
	pid_t pid;

	if (exec)
		return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, env) ? -1 : pid;
	pid = fork();
	if (!pid) {
		while (us && cpu_us() < us)
			;
		_exit(code);
	}
	return pid;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[1]) : -1, running = 0, ended = 0;
	int code = argc > 2 ? atoi(argv[2]) : 0, status;

	if (count < 0)
		return 2;
	if (!count)
		return code;
	for (long i = 0; i < count || running; i++) {
		if (i < count && begin(argv, code, argc > 3 ? argv[3] : NULL) > 0)
			running++;
		if (running == AT_ONCE || i >= count) {
			if (wait(&status) < 0)
				break;
			running--;
			ended += WIFEXITED(status) && WEXITSTATUS(status) == code;
		}
	}
	printf("{\"ended\": %ld}\n", ended);
	return 0;
}
