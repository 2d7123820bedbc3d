/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange: asks so many requests of a server that it forks, over so many connections of loopback,
 * the next one on a connection once the answer is there. It connects before it waits for a line on
 * its standard input, and prints what it asked once all are answered.
 * usage: exchange http|redis REQUESTS CONNECTIONS
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char http_ask[] = "GET /item HTTP/1.1\r\nHost: bench\r\nAccept: */*\r\n\r\n";
static const char http_say[] =
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
static const char redis_ask[] = "*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n";
static const char redis_say[] = "$5\r\nhello\r\n";

static int all(int fd, const char *data, size_t len)
{
	return write(fd, data, len) == (ssize_t)len;
}

/* Requests and answers are small: each arrives in one piece. */
static void serve(int listener, int n, const char *say)
{
	struct epoll_event ev[64];
	int ep = epoll_create1(0);
	char buf[512];

	for (int i = 0; i < n; i++) {
		int fd = accept(listener, NULL, NULL);
		struct epoll_event add = {.events = EPOLLIN, .data.fd = fd};

		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &add);
	}
	for (;;) {
		int got = epoll_wait(ep, ev, 64, -1);

		for (int i = 0; i < got; i++)
			if (read(ev[i].data.fd, buf, sizeof(buf)) <= 0 ||
			    !all(ev[i].data.fd, say, strlen(say)))
				_exit(0);
	}
}

static long ask(int *fds, int n, long requests, const char *what)
{
	char buf[512];
	long done = 0;

	while (done < requests) {
		for (int i = 0; i < n; i++)
			if (!all(fds[i], what, strlen(what)))
				return done;
		for (int i = 0; i < n; i++)
			if (read(fds[i], buf, sizeof(buf)) <= 0)
				return done;
		done += n;
	}
	return done;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int http = argc == 4 && !strcmp(argv[1], "http"), n = argc == 4 ? atoi(argv[3]) : 0,
	    listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	int fds[64];

	if (n < 1 || n > 64 || bind(listener, (void *)&at, sizeof(at)) || listen(listener, 64) ||
	    getsockname(listener, (void *)&at, &len))
		return 2;
	if (!fork())
		serve(listener, n, http ? http_say : redis_say);
	for (int i = 0; i < n; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fds[i], (void *)&at, sizeof(at)))
			return 1;
	}
	getchar();
	printf("%ld\n", ask(fds, n, atol(argv[2]), http ? http_ask : redis_ask));
	return 0;
}
