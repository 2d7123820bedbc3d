/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs: so many pairs of processes. One of a pair sleeps so many microseconds, writes a byte from
 * 12 calls deep and reads it back; the other echoes it: some four switches a turn.
 * usage: pairs PAIRS MICROSECONDS
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile int sink;

static int pass(int from, int to)
{
	char c;

	return read(from, &c, 1) == 1 && write(to, &c, 1) == 1 ? 0 : -1;
}

static int ask(int to, int from)
{
	char c = 1;

	return write(to, &c, 1) == 1 && read(from, &c, 1) == 1 ? 0 : -1;
}

__attribute__((noinline)) static int deep(int depth, int to, int from)
{
	int err = depth ? deep(depth - 1, to, from) : ask(to, from);

	sink += depth; /* not a tail call */
	return err;
}

static void pair_begin(useconds_t sleep_us)
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		exit(1);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!pass(there[0], back[1]))
			;
		_exit(0);
	}
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		do
			usleep(sleep_us);
		while (!deep(12, there[1], back[0]));
		_exit(0);
	}
	close(there[0]);
	close(there[1]);
	close(back[0]);
	close(back[1]);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	for (int i = 0; i < atoi(argv[1]); i++)
		pair_begin((useconds_t)atoi(argv[2]));
	pause();
	return 0;
}
