/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uringtalk SERVER CLIENT N: sends N HTTP requests on one connection over 127.0.0.1, each with its
 * answer. SERVER and CLIENT say how either side moves its bytes:
 *
 *   calls                    recv and send
 *   send, read, readv, msg   io_uring: SEND and RECV, READ and WRITE, READV and WRITEV,
 *                            SENDMSG and RECVMSG
 *   select                   io_uring, also to open the connection; it reads into a
 *                            buffer that the kernel chooses from those given to it
 *
 * The server is a child. The program begins at a line on standard input, prints what it did:
 * {"server", "client", "port", "requests", "asked", "answered"} (pids, bytes), and ends at the
 * next line.
 */
#include <arpa/inet.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ASK    "GET /uring/one HTTP/1.1\r\nHost: x\r\n\r\n"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define BUF    4096
#define GROUP  7

static struct ring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *part(size_t size, off_t at)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, at);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void ring_open(void)
{
	struct io_uring_params p = {0};
	char *sq, *cq;

	ring.fd = (int)syscall(SYS_io_uring_setup, 8, &p);
	if (ring.fd < 0)
		die("io_uring_setup");
	sq = part(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	cq = part(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring.sqes = part(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring.sq_tail = (unsigned *)(void *)(sq + p.sq_off.tail);
	ring.sq_mask = (unsigned *)(void *)(sq + p.sq_off.ring_mask);
	ring.sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
	ring.cq_head = (unsigned *)(void *)(cq + p.cq_off.head);
	ring.cq_tail = (unsigned *)(void *)(cq + p.cq_off.tail);
	ring.cq_mask = (unsigned *)(void *)(cq + p.cq_off.ring_mask);
	ring.cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

/* One operation, done; its result. */
static int done(const struct io_uring_sqe *what)
{
	unsigned tail = *ring.sq_tail, at = tail & *ring.sq_mask, head = *ring.cq_head;
	int c;

	ring.sqes[at] = *what;
	ring.sq_array[at] = at;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		die("io_uring_enter");
	while (head == __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE))
		if (syscall(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			die("io_uring_enter");
	c = ring.cqes[head & *ring.cq_mask].res;
	__atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
	return c;
}

static int by_descriptor(__u8 op, int fd, const void *addr, __u64 off)
{
	const struct io_uring_sqe s = {
		.opcode = op, .fd = fd, .addr = (__u64)(unsigned long)addr, .off = off};
	int got = done(&s);

	if (got < 0)
		die(op == IORING_OP_ACCEPT ? "accept" : "connect");
	return got;
}

static ssize_t chosen(int fd, char *buf)
{
	static char given[BUF];
	const struct io_uring_sqe give = {.opcode = IORING_OP_PROVIDE_BUFFERS,
					  .fd = 1,
					  .addr = (__u64)(unsigned long)given,
					  .len = BUF,
					  .buf_group = GROUP};
	const struct io_uring_sqe s = {.opcode = IORING_OP_RECV,
				       .fd = fd,
				       .len = BUF,
				       .flags = IOSQE_BUFFER_SELECT,
				       .buf_group = GROUP};
	ssize_t n;

	done(&give);
	n = done(&s);
	if (n > 0)
		memcpy(buf, given, (size_t)n);
	return n;
}

/* As recv and send. */
static ssize_t moved(const char *how, int fd, char *buf, size_t n, int out)
{
	struct iovec v = {buf, n};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	struct io_uring_sqe s = {.fd = fd, .addr = (__u64)(unsigned long)buf, .len = (__u32)n};

	if (!strcmp(how, "calls"))
		return out ? send(fd, buf, n, MSG_NOSIGNAL) : recv(fd, buf, n, 0);
	if (!strcmp(how, "select") && !out)
		return chosen(fd, buf);
	if (!strcmp(how, "read")) {
		s.opcode = out ? IORING_OP_WRITE : IORING_OP_READ;
	} else if (!strcmp(how, "readv")) {
		s.opcode = out ? IORING_OP_WRITEV : IORING_OP_READV;
		s.addr = (__u64)(unsigned long)&v;
		s.len = 1;
	} else if (!strcmp(how, "msg")) {
		s.opcode = out ? IORING_OP_SENDMSG : IORING_OP_RECVMSG;
		s.addr = (__u64)(unsigned long)&m;
		s.len = 1;
	} else {
		s.opcode = out ? IORING_OP_SEND : IORING_OP_RECV;
	}
	return done(&s);
}

/* `n` bytes, read. 0: the other end closed first. */
static int take(const char *how, int fd, size_t n)
{
	char buf[BUF];

	while (n) {
		ssize_t got = moved(how, fd, buf, n, 0);

		if (got <= 0)
			return 0;
		n -= (size_t)got;
	}
	return 1;
}

static void give(const char *how, int fd, const char *text)
{
	char buf[BUF];
	size_t n = strlen(text);

	memcpy(buf, text, n);
	if (moved(how, fd, buf, n, 1) != (ssize_t)n)
		die("send");
}

static void serve(const char *how, int listener)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ring_open();
	fd = strcmp(how, "calls") ? by_descriptor(IORING_OP_ACCEPT, listener, NULL, 0) :
				    accept(listener, NULL, NULL);
	while (take(how, fd, strlen(ASK)))
		give(how, fd, ANSWER);
	close(fd);
	pause();
}

static void ask(const char *how, const struct sockaddr_in *at, long n)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ring_open();
	if (strcmp(how, "calls"))
		by_descriptor(IORING_OP_CONNECT, fd, at, sizeof(*at));
	else if (connect(fd, (const struct sockaddr *)at, sizeof(*at)))
		die("connect");
	for (long i = 0; i < n; i++) {
		give(how, fd, ASK);
		if (!take(how, fd, strlen(ANSWER)))
			die("answer");
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	long n = argc > 3 ? atol(argv[3]) : 10;
	socklen_t len = sizeof(at);
	pid_t server;
	char line[8];

	if (argc < 3 || bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		die("listen");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	server = fork();
	if (!server)
		serve(argv[1], listener);
	close(listener);
	ask(argv[2], &at, n);
	printf("{\"server\": %d, \"client\": %d, \"port\": %u, \"requests\": %ld, \"asked\": %ld, \"answered\": %ld}\n",
	       (int)server, (int)getpid(), ntohs(at.sin_port), n, n * (long)strlen(ASK),
	       n * (long)strlen(ANSWER));
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		line[0] = '\0';
	kill(server, SIGKILL);
	return 0;
}
