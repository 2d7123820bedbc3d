/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm COUNT CODE [exec]: COUNT processes, at most eight at once, each of which ends with CODE at once; with `exec` each is
 * a new program first. Prints how many it waited for.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 8

static pid_t begin(char **argv, int code, int exec)
{
	char *args[] = {argv[0], (char *)"0", argv[2], NULL}, *env[] = {NULL};
	pid_t pid;

	if (exec)
		return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, env) ? -1 : pid;
	pid = fork();
	if (!pid)
		_exit(code);
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
		if (i < count && begin(argv, code, argc > 3) > 0)
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
