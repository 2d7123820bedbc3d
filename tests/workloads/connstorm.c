/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connstorm N RATE OPEN: opens N connections over 127.0.0.1, one after the other, RATE a second (0:
 * as fast as possible), each with a request of 100 bytes and an answer of 1000; and before that
 * OPEN connections that stay open. The server is a child. Prints what it did: {"opened", "seconds",
 * "server", "port", "tx", "rx"}; ends at a line on standard input.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "work.h"

#define ASK   100
#define REPLY 1000

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void all(int fd, size_t n, int sends)
{
	static char buf[REPLY];

	while (n) {
		ssize_t got = sends ? send(fd, buf, n, MSG_NOSIGNAL) : recv(fd, buf, n, 0);

		if (got <= 0)
			die("talk");
		n -= (size_t)got;
	}
}

/* The first `open` connections are kept. */
static void serve(int listener, long open)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			die("accept");
		if (open-- > 0)
			continue;
		all(fd, ASK, 0);
		all(fd, REPLY, 1);
		close(fd);
	}
}

static int to(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    connect(fd, (const struct sockaddr *)at, sizeof(*at)))
		die("connect");
	return fd;
}

static void pace(uint64_t begin, long i, long rate)
{
	uint64_t due = begin + (uint64_t)i * 1000000000u / (uint64_t)rate, now = work_now_ns();
	struct timespec t = {.tv_nsec = 500000};

	for (; now + 500000 < due; now = work_now_ns())
		nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000, rate = argc > 2 ? atol(argv[2]) : 0,
	     open = argc > 3 ? atol(argv[3]) : 0;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rlimit files = {200000, 200000};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t begin;
	pid_t server;
	char c;

	setrlimit(RLIMIT_NOFILE, &files);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 4096) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		die("listen");
	server = fork();
	if (!server)
		serve(listener, open);
	close(listener);
	for (long i = 0; i < open; i++)
		to(&at);
	begin = work_now_ns();
	for (long i = 0; i < n; i++) {
		int fd = to(&at);

		all(fd, ASK, 1);
		all(fd, REPLY, 0);
		if (recv(fd, &c, 1, 0))
			die("end");
		close(fd);
		if (rate)
			pace(begin, i + 1, rate);
	}
	printf("{\"opened\": %ld, \"seconds\": %.3f, \"server\": %d, \"port\": %u, \"tx\": %ld, \"rx\": %ld}\n",
	       n, (double)(work_now_ns() - begin) / 1e9, (int)server, ntohs(at.sin_port), n * ASK,
	       n * REPLY);
	fflush(stdout);
	if (read(0, &c, 1) < 0)
		die("wait");
	kill(server, SIGKILL);
	return 0;
}
