/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser: the process without rights that reads the ring and parses what strangers sent, as the
 * loader sees it: started, asked, read, ended. If it dies (hostile bytes found a bug), the loader
 * starts another one, which requests the connections that it does not know from the probes; bytes
 * that were in flight are blind.
 *
 * It is this program again, in SANDBOX_STAYS, with descriptors 3 (a socket to the loader), 4 (the
 * ring), 5 (the array of wants) and 6 (an eventfd, by which it signals that it has more to send
 * than the socket holds). It never waits for a slow loader: its messages wait in the outbox.
 */
#ifndef SONDE_L7_PARSER_H
#define SONDE_L7_PARSER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/l7/parser_message.h"
#include "schema/base/err.h"

#define PARSER_OPTION "--parse" /* of argv[1]; then the bucket in seconds, and PARSER_RING */
#define PARSER_RING   "ring"    /* all requests are wanted, for the flight ring */

enum parser_asks { PARSER_WRITE = 1, PARSER_END = 2, PARSER_GONE = 3 };
#define PARSER_GONE_MOST 256
struct parser_ask {
	uint32_t what, n;
	int64_t now_ns, offset_ns;           /* boot clock; UTC = boot clock + offset */
	uint64_t gone[2 * PARSER_GONE_MOST]; /* GONE: n pairs of a socket's address and inode */
};

struct parser {
	pid_t pid;
	int fd, ring_fd, wants_fd, more_fd;
	uint32_t bucket_s, starts;
	bool has_ring;   /* set before parser_start: PARSER_RING */
	uint64_t cpu_ns; /* of those that have ended */
	uint64_t buf[MSG_PACKET_MAX / 8];
};

typedef void (*parser_take)(void *ctx, const struct message *x);

/* Comes first. more_fd becomes readable (edge-triggered) when the parser has more to send than the
 * socket holds. */
void parser_init(struct parser *p);
/* Descriptors are borrowed. 0, or -errno with `e`. */
int parser_start(struct parser *p, int ring_fd, int wants_fd, uint32_t bucket_s, struct err *e);
/* Reads what it has sent so far, without waiting; *n: number of packets. false: it has ended. */
bool parser_read(struct parser *p, parser_take take, void *ctx, size_t *n);
/* false: it has ended. */
bool parser_ask(const struct parser *p, const struct parser_ask *q);
/* It reads all that is in the ring, sends everything and ends, within patience_ns. false: it did
 * not, and what it had not sent is lost. */
bool parser_end(struct parser *p, int64_t offset_ns, int64_t patience_ns, parser_take take,
		void *ctx);
/* Reaps the one that ended and starts another one. */
int parser_again(struct parser *p, struct err *e);
void parser_close(struct parser *p);
void parser_release(struct parser *p); /* closes it, too */
/* CPU time of all of them so far. */
uint64_t parser_cpu_ns(const struct parser *p);

/* The other side: the whole program of argv PARSER_OPTION. */
int parser_main(int argc, char **argv);

#endif
