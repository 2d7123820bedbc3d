/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request is of HTTP/1.0, so that the answer is neither in chunks nor kept
 * open; redirects are not followed. All but the connection and the socket of the answer is closed
 * before the first byte of a stranger's is read.
 */
#include "loaders/scrape/ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "loaders/lib/sandbox/sandbox.h"
#include "loaders/scrape/http_head.h"
#include "loaders/scrape/profile.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define CONNECT_MS    3000
#define PAGE_MAX      (256u << 10)
#define BODY_MAX      (16u << 20) /* as it comes */
#define PROFILE_MAX   (96u << 20) /* unpacked */
#define GZIP_WINDOW   (15 + 16)
#define FD_TO         3
#define FD_CONNECTION 4

static const char *const PATHS[WIRE_ASKS] = {
	[WIRE_ASK_INDEX] = "/debug/pprof/",      [WIRE_ASK_CPU] = "/debug/pprof/profile",
	[WIRE_ASK_HEAP] = "/debug/pprof/heap",   [WIRE_ASK_GOROUTINE] = "/debug/pprof/goroutine",
	[WIRE_ASK_BLOCK] = "/debug/pprof/block", [WIRE_ASK_MUTEX] = "/debug/pprof/mutex",
};

/* ---- telling ---- */

struct message {
	int to;
	size_t len;
	uint8_t bytes[WIRE_MESSAGE];
};

static struct wire_head *head(struct message *m)
{
	return (struct wire_head *)(void *)m->bytes;
}

static void flush(struct message *m)
{
	if (m->len && write(m->to, m->bytes, m->len) != (ssize_t)m->len)
		_exit(0); /* the receiver has closed its end */
	m->len = 0;
}

/* Room for one more thing of this kind. */
static void *add(struct message *m, enum wire_what what, size_t size)
{
	void *at;

	if (m->len && (head(m)->what != what || m->len + size > sizeof(m->bytes)))
		flush(m);
	if (!m->len) {
		*head(m) = (struct wire_head){.what = what};
		m->len = sizeof(struct wire_head);
	}
	head(m)->n++;
	at = m->bytes + m->len;
	m->len += size;
	return at;
}

static void say(struct message *m, enum wire_what what, const void *data, size_t size)
{
	memcpy(add(m, what, size), data, size);
}

static void failed(struct message *m, enum wire_why why, uint32_t detail) __attribute__((noreturn));
static void failed(struct message *m, enum wire_why why, uint32_t detail)
{
	say(m, WIRE_FAILED, &(struct wire_failed){why, detail}, sizeof(struct wire_failed));
	flush(m);
	_exit(0);
}

static void connected(const struct message *m, int connection)
{
	const struct wire_head h = {.what = WIRE_CONNECTED};

	if (fdpass_send(m->to, &h, sizeof(h), &connection, 1, 0))
		_exit(0);
}

/* ---- the connection ---- */

static socklen_t address_of(const struct wire_question *q, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;

	memset(out, 0, sizeof(*out));
	if (q->v6) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(q->port);
		memcpy(&v6->sin6_addr, q->address, 16);
		return sizeof(*v6);
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons(q->port);
	memcpy(&v4->sin_addr, q->address, 4);
	return sizeof(*v4);
}

static int connect_to(const struct wire_question *q, int *fd)
{
	struct sockaddr_storage at;
	socklen_t size = address_of(q, &at), n = sizeof(int);
	struct pollfd p = {.events = POLLOUT};
	int err = 0;

	*fd = p.fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p.fd < 0)
		return errno;
	if (connect(p.fd, (struct sockaddr *)&at, size) && errno != EINPROGRESS)
		return errno;
	if (poll(&p, 1, CONNECT_MS) != 1)
		return ETIMEDOUT;
	if (getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &err, &n) || err)
		return err ? err : errno;
	return fcntl(p.fd, F_SETFL, 0) ? errno : 0;
}

static void request(struct message *m, const struct wire_question *q, int fd)
{
	char text[400], host[INET6_ADDRSTRLEN], seconds[32] = "";
	int n;

	if (q->connected)
		snprintf(host, sizeof(host), "localhost");
	else
		inet_ntop(q->v6 ? AF_INET6 : AF_INET, q->address, host, sizeof(host));
	if (q->ask == WIRE_ASK_CPU)
		snprintf(seconds, sizeof(seconds), "?seconds=%u", q->seconds);
	n = snprintf(
		text, sizeof(text),
		"GET %s%s HTTP/1.0\r\nHost: %s%s%s:%u\r\nUser-Agent: sonde-scrape\r\nAccept: */*\r\n\r\n",
		PATHS[q->ask], seconds, q->v6 ? "[" : "", host, q->v6 ? "]" : "", q->port);
	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		failed(m, WIRE_NO_CONNECTION, (uint32_t)errno);
}

/* ---- the answer ---- */

static void read_all(struct message *m, int fd, struct strbuf *in, size_t most)
{
	char buf[16384];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		if (in->len + (size_t)n > most + HTTP_HEAD_MAX)
			failed(m, WIRE_TOO_LARGE, 0);
		strbuf_add(in, buf, (size_t)n);
	}
	if (n < 0 && !in->len)
		failed(m, WIRE_NO_CONNECTION, (uint32_t)errno);
}

/* The body; *len is its length. */
static const char *body_of(struct message *m, const struct strbuf *in, size_t *len)
{
	struct http_head a;
	enum http_head_state state = http_head_head(strbuf_str(in), in->len, &a);

	if (state == ANSWER_MORE)
		failed(m, in->len ? WIRE_NO_HTTP : WIRE_CUT, 0);
	if (state != ANSWER_OK)
		failed(m, WIRE_NO_HTTP, 0);
	if (a.tls)
		failed(m, WIRE_TLS, 0);
	if (a.status != 200)
		failed(m, WIRE_STATUS, a.status);
	*len = in->len - a.body;
	if (a.length != UINT64_MAX && *len < a.length)
		failed(m, WIRE_CUT, 0);
	if (a.length < *len)
		*len = (size_t)a.length;
	return in->buf + a.body;
}

static void unpack(struct message *m, const char *data, size_t len, struct strbuf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
	Bytef buf[32768];
	int rc = inflateInit2(&z, GZIP_WINDOW);

	while (rc == Z_OK) {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		rc = inflate(&z, Z_NO_FLUSH);
		if (out->len + sizeof(buf) - z.avail_out > PROFILE_MAX)
			failed(m, WIRE_TOO_LARGE, 0);
		strbuf_add(out, buf, sizeof(buf) - z.avail_out);
	}
	if (rc != Z_STREAM_END)
		failed(m, rc == Z_BUF_ERROR ? WIRE_CUT : WIRE_NO_PROFILE, 0);
	inflateEnd(&z);
}

static void on_mapping(void *ctx, const struct wire_mapping *x)
{
	say(ctx, WIRE_MAPPINGS, x, sizeof(*x));
}

static void on_stack(void *ctx, const uint64_t values[WIRE_VALUES], const uint64_t *addresses,
		     size_t n)
{
	uint64_t *at = add(ctx, WIRE_STACKS, (1 + WIRE_VALUES + n) * sizeof(*at));

	at[0] = n;
	memcpy(at + 1, values, WIRE_VALUES * sizeof(*at));
	memcpy(at + 1 + WIRE_VALUES, addresses, n * sizeof(*at));
}

static void tell_index(struct message *m, const char *page, size_t len)
{
	uint64_t goroutines;

	if (!http_head_index(page, len, &goroutines))
		failed(m, WIRE_NO_INDEX, 0);
	say(m, WIRE_INDEX, &goroutines, sizeof(goroutines));
	say(m, WIRE_END, &(struct wire_end){0}, sizeof(struct wire_end));
	flush(m);
}

static void tell_profile(struct message *m, enum wire_ask ask, const char *body, size_t len)
{
	const struct profile_out out = {.ctx = m, .mapping = on_mapping, .stack = on_stack};
	struct strbuf profile = STRBUF_INIT;
	struct wire_end end;

	if (len > 2 && !memcmp(body, "\x1f\x8b", 2)) {
		unpack(m, body, len, &profile);
		body = strbuf_str(&profile);
		len = profile.len;
	}
	if (profile_read(body, len, ask, &out, &end))
		failed(m, WIRE_NO_PROFILE, 0);
	say(m, WIRE_END, &end, sizeof(end));
	flush(m);
}

/* ---- the child ---- */

static void descriptors_only(int *to, int *connection)
{
	int a = fcntl(*to, F_DUPFD_CLOEXEC, 10), b = fcntl(*connection, F_DUPFD_CLOEXEC, 10);

	if (a < 0 || b < 0 || dup2(a, FD_TO) < 0 || dup2(b, FD_CONNECTION) < 0)
		_exit(1);
	close_range(FD_CONNECTION + 1, ~0u, 0);
	*to = FD_TO;
	*connection = FD_CONNECTION;
}

void ask_child(const struct wire_question *q, int to, int network)
{
	static struct message m;
	struct strbuf in = STRBUF_INIT;
	struct err e = {0};
	const char *body;
	int connection, err;
	size_t len;

	m.to = to;
	alarm(q->timeout_s); /* ends it, whatever it does */
	if (!q->connected && network >= 0 && setns(network, CLONE_NEWNET))
		failed(&m, WIRE_NO_NETWORK, (uint32_t)errno);
	connection = network;
	err = !q->connected ? connect_to(q, &connection) : network < 0 ? EBADF : 0;
	if (err)
		failed(&m, WIRE_NO_CONNECTION, (uint32_t)err);
	descriptors_only(&m.to, &connection);
	connected(&m, connection);
	request(&m, q, connection);
	if (sandbox_enter(SANDBOX_SMALL, &e))
		failed(&m, WIRE_BROKEN, 0);
	read_all(&m, connection, &in, q->ask == WIRE_ASK_INDEX ? PAGE_MAX : BODY_MAX);
	body = body_of(&m, &in, &len);
	if (q->ask == WIRE_ASK_INDEX)
		tell_index(&m, body, len);
	else
		tell_profile(&m, (enum wire_ask)q->ask, body, len);
	_exit(0);
}
