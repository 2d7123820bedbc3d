/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service: a small service and its client in one process tree: so many requests a second, each
 * answered by one of four worker threads behind a queue (a mutex and a condition), after some work
 * and a write to a file. usage: service SECONDS RATE
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 4
#define WORK    6000 /* loops: some 20 us */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
static int queued, server_fd;

static void *worker(void *log)
{
	for (;;) {
		volatile unsigned int x = 0;

		pthread_mutex_lock(&lock);
		while (!queued)
			pthread_cond_wait(&come, &lock);
		queued--;
		pthread_mutex_unlock(&lock);
		for (unsigned int i = 0; i < WORK; i++)
			x += i;
		fputc('.', log);
		if (write(server_fd, "y", 1) != 1)
			return NULL;
	}
}

static int serve(void)
{
	pthread_t t;
	char c;

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t, NULL, worker, tmpfile());
	while (read(server_fd, &c, 1) == 1) {
		pthread_mutex_lock(&lock);
		queued++;
		pthread_cond_signal(&come);
		pthread_mutex_unlock(&lock);
	}
	return 0;
}

static int ask(int fd, double seconds, long rate)
{
	struct timespec next, end;
	char c = 'x';

	clock_gettime(CLOCK_MONOTONIC, &next);
	end = next;
	end.tv_sec += (time_t)seconds;
	while (next.tv_sec < end.tv_sec) {
		if (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1)
			return 1;
		next.tv_nsec += 1000000000 / rate;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	long rate = argc > 2 ? atol(argv[2]) : 50;
	int fds[2], code;
	pid_t child;

	if (rate < 1 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 2;
	server_fd = fds[0];
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		_exit(serve());
	}
	close(fds[0]);
	code = ask(fds[1], seconds, rate);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return code;
}
