/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate: asks a server for so many requests a second, at a held schedule: what is late is asked at
 * once, and its latency counts from when it was due. Keep-alive connections; a request waits for a
 * free one. Prints a line of JSON at its end.
 * usage: rate http|redis PORT REQUESTS_A_SECOND CONNECTIONS SECONDS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define TIMER           UINT32_MAX /* in place of a connection's number */

struct connection {
	int fd;
	bool busy;
	long due_ns;
	size_t n;
	char answer[16384];
};

static struct connection connections[CONNECTIONS_MAX];
static int n_connections, next_one;
static bool is_http;
static long *latencies, n_done, n_room, n_errors, n_late;
static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* Is the answer whole? */
static bool is_whole(const char *b, size_t n)
{
	const char *end = memmem(b, n, is_http ? "\r\n\r\n" : "\r\n", is_http ? 4 : 2), *length;
	size_t head;

	if (!end)
		return false;
	head = (size_t)(end - b) + (is_http ? 4 : 2);
	if (is_http) {
		length = memmem(b, head, "Content-Length: ", 16);
		return n >= head + (length ? (size_t)atol(length + 16) : 0);
	}
	return b[0] != '$' || b[1] == '-' || n >= head + (size_t)atol(b + 1) + 2;
}

static struct connection *free_one(void)
{
	for (int i = 0; i < n_connections; i++) {
		int at = (next_one + i) % n_connections;

		if (connections[at].busy)
			continue;
		next_one = (at + 1) % n_connections;
		return &connections[at];
	}
	return NULL;
}

static void ask(struct connection *c, long sent, long due_ns)
{
	char q[256];
	int n;

	if (is_http)
		n = snprintf(q, sizeof(q),
			     "GET / HTTP/1.1\r\nHost: bench\r\nUser-Agent: rate\r\n\r\n");
	else if (sent % 2)
		n = snprintf(q, sizeof(q), "*2\r\n$3\r\nGET\r\n$7\r\nkey:%03ld\r\n",
			     sent / 2 % 1000);
	else
		n = snprintf(q, sizeof(q), "*3\r\n$3\r\nSET\r\n$7\r\nkey:%03ld\r\n$5\r\nvalue\r\n",
			     sent / 2 % 1000);
	n_errors += write(c->fd, q, (size_t)n) != n;
	c->busy = true;
	c->due_ns = due_ns;
	c->n = 0;
}

static void hear(struct connection *c)
{
	ssize_t got = read(c->fd, c->answer + c->n, sizeof(c->answer) - c->n);

	if (got <= 0) {
		n_errors++;
		stop = 1;
		return;
	}
	c->n += (size_t)got;
	if (!c->busy || !is_whole(c->answer, c->n))
		return;
	c->busy = false;
	if (n_done < n_room)
		latencies[n_done++] = now_ns() - c->due_ns;
}

static int open_all(int port, int ep)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int one = 1;

	for (int i = 0; i < n_connections; i++) {
		struct epoll_event ev = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (connect(fd, (void *)&at, sizeof(at)))
			return -1;
		connections[i].fd = fd;
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	}
	return 0;
}

/* All that is due by now. When the next one is. */
static long ask_due(long begin_ns, double every_ns, long *sent)
{
	long due_ns;

	while ((due_ns = begin_ns + (long)((double)*sent * every_ns)) <= now_ns()) {
		struct connection *c = free_one();

		if (!c) {
			n_late++;
			break;
		}
		ask(c, (*sent)++, due_ns);
	}
	return due_ns;
}

static void run(int ep, double a_second, double seconds)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct epoll_event tick = {.events = EPOLLIN, .data.u32 = TIMER}, ev[64];
	long begin_ns = now_ns(), end_ns = begin_ns + (long)(seconds * 1e9), sent = 0, due_ns;
	uint64_t times;

	epoll_ctl(ep, EPOLL_CTL_ADD, timer, &tick);
	while (!stop && now_ns() < end_ns) {
		struct itimerspec at = {0};
		int n;

		due_ns = ask_due(begin_ns, 1e9 / a_second, &sent);
		at.it_value.tv_sec = due_ns / 1000000000L;
		at.it_value.tv_nsec = due_ns % 1000000000L;
		timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
		n = epoll_wait(ep, ev, 64, 100);
		for (int i = 0; i < n; i++)
			if (ev[i].data.u32 != TIMER)
				hear(&connections[ev[i].data.u32]);
			else if (read(timer, &times, sizeof(times)) < 0)
				n_errors++;
	}
}

static int by_length(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

static double quantile_us(long part, long of)
{
	return n_done ? (double)latencies[(n_done - 1) * part / of] / 1000 : 0;
}

int main(int argc, char **argv)
{
	double a_second, seconds;
	int ep = epoll_create1(0);

	if (argc != 6)
		return 2;
	is_http = !strcmp(argv[1], "http");
	a_second = atof(argv[3]);
	n_connections = atoi(argv[4]);
	seconds = atof(argv[5]);
	if (n_connections < 1 || n_connections > CONNECTIONS_MAX)
		return 2;
	signal(SIGTERM, on_signal);
	signal(SIGPIPE, SIG_IGN);
	n_room = (long)(a_second * seconds * 1.1) + 1000;
	latencies = calloc((size_t)n_room, sizeof(*latencies));
	if (!latencies || open_all(atoi(argv[2]), ep))
		return 1;
	run(ep, a_second, seconds);
	qsort(latencies, (size_t)n_done, sizeof(*latencies), by_length);
	printf("{\"done\": %ld, \"errors\": %ld, \"late\": %ld, \"p50_us\": %.0f, \"p99_us\": %.0f}\n",
	       n_done, n_errors, n_late, quantile_us(1, 2), quantile_us(99, 100));
	return 0;
}
