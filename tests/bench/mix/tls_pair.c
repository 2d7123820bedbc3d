/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_pair: what one SSL_write and one SSL_read take, of two ends in one process over a Unix socket
 * pair, as JSON lines: each second, pairs, and nanoseconds of the thread's CPU for each. tls_pair
 * CERT KEY SECONDS BYTES
 */
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static double now_s(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "tls_pair: %s\n", what);
	exit(1);
}

/* Both ends by turns, until both are through. */
static void handshake(SSL *client, SSL *server)
{
	for (int i = 0; i < 100; i++)
		if (SSL_do_handshake(client) + SSL_do_handshake(server) == 2)
			return;
	fail("no handshake");
}

static SSL *end_of(SSL_CTX *ctx, int fd)
{
	SSL *s = SSL_new(ctx);

	SSL_set_fd(s, fd);
	return s;
}

int main(int argc, char **argv)
{
	SSL_CTX *sc = SSL_CTX_new(TLS_server_method()), *cc = SSL_CTX_new(TLS_client_method());
	static char buf[16384];
	int fds[2], bytes = argc > 4 ? atoi(argv[4]) : 200;
	double end = now_s(CLOCK_MONOTONIC) + (argc > 3 ? atof(argv[3]) : 5);
	SSL *client, *server;

	if (argc < 5 || bytes < 1 || bytes > (int)sizeof(buf) ||
	    SSL_CTX_use_certificate_file(sc, argv[1], SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_use_PrivateKey_file(sc, argv[2], SSL_FILETYPE_PEM) != 1 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		fail("tls_pair CERT KEY SECONDS BYTES");
	client = end_of(cc, fds[0]);
	server = end_of(sc, fds[1]);
	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	handshake(client, server);
	memset(buf, 'x', sizeof(buf));
	while (now_s(CLOCK_MONOTONIC) < end) {
		double cpu = now_s(CLOCK_THREAD_CPUTIME_ID), until = now_s(CLOCK_MONOTONIC) + 0.5;
		unsigned long n = 0;

		for (; now_s(CLOCK_MONOTONIC) < until; n++)
			if (SSL_write(client, buf, bytes) != bytes ||
			    SSL_read(server, buf, sizeof(buf)) != bytes)
				fail("a pair failed");
		printf("{\"pairs\": %lu, \"ns\": %.0f}\n", n,
		       1e9 * (now_s(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)n);
		fflush(stdout);
	}
	return 0;
}
