/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serves: a small HTTP server, one thread to a connection, whose endpoints are slow for known
 * reasons: GET /burn computes, GET /lock waits for a mutex that another thread holds, each for 40
 * ms. GET /quick is answered at once; GET /some sleeps for 2 ms, and GET /some?slow waits for the
 * mutex, too. With the argument "loop" one thread serves all connections by epoll instead, and does
 * other work after each answer.
 *
 * It prints its port, and ends with its standard input.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PLANNED_NS 40000000ll

static pthread_mutex_t slow = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static volatile unsigned long work;

static long long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

__attribute__((noinline)) void serve_burning(void)
{
	long long until = now(CLOCK_THREAD_CPUTIME_ID) + PLANNED_NS;

	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 10000; i++)
			work += (unsigned long)i;
}

__attribute__((noinline)) void loop_own_work(void)
{
	long long until = now(CLOCK_THREAD_CPUTIME_ID) + PLANNED_NS / 2;

	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 10000; i++)
			work += (unsigned long)i;
}

static void *hold(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&slow);
	pthread_barrier_wait(&held);
	usleep(PLANNED_NS / 1000);
	pthread_mutex_unlock(&slow);
	return NULL;
}

__attribute__((noinline)) void serve_locked(void)
{
	pthread_t holder;

	pthread_barrier_init(&held, NULL, 2);
	if (pthread_create(&holder, NULL, hold, NULL))
		exit(1);
	pthread_barrier_wait(&held);
	pthread_mutex_lock(&slow);
	pthread_mutex_unlock(&slow);
	pthread_join(holder, NULL);
}

__attribute__((noinline)) void serve_resting(void)
{
	usleep(2000);
}

/* Answers whole requests that arrived together, one after the other. false: the connection ended.
 */
static int answer(int fd)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char ask[4096];
	ssize_t n = read(fd, ask, sizeof(ask) - 1);

	if (n <= 0)
		return 0;
	ask[n] = 0;
	for (const char *at = strstr(ask, "GET /"); at; at = strstr(at + 5, "GET /")) {
		if (!strncmp(at, "GET /burn", 9))
			serve_burning();
		else if (!strncmp(at, "GET /lock", 9))
			serve_locked();
		else if (!strncmp(at, "GET /some", 9))
			serve_resting();
		if (!strncmp(at, "GET /some?slow", 14))
			serve_locked();
		if (write(fd, ok, sizeof(ok) - 1) != sizeof(ok) - 1)
			return 0;
	}
	return 1;
}

static void *serve(void *arg)
{
	int fd = (int)(long)arg;

	while (answer(fd))
		;
	close(fd);
	return NULL;
}

static void *accepting(void *arg)
{
	int listener = (int)(long)arg, fd;
	pthread_t t;

	while ((fd = accept(listener, NULL, NULL)) >= 0)
		if (!pthread_create(&t, NULL, serve, (void *)(long)fd))
			pthread_detach(t);
	return NULL;
}

/* Other work follows the answer, before the next wait. */
static void *looping(void *arg)
{
	int listener = (int)(long)arg, ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};

	epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
	while (epoll_wait(ep, &ev, 1, -1) == 1) {
		int fd = ev.data.fd;

		if (fd == listener) {
			ev = (struct epoll_event){.events = EPOLLIN,
						  .data.fd = accept(listener, NULL, NULL)};
			epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev);
		} else if (!answer(fd)) {
			close(fd);
		} else {
			loop_own_work();
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	pthread_t t;
	char end;

	if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 64) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		return 1;
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	if (pthread_create(&t, NULL, argc > 1 && !strcmp(argv[1], "loop") ? looping : accepting,
			   (void *)(long)listener))
		return 1;
	while (read(0, &end, 1) > 0)
		;
	return 0;
}
