/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser: the process without rights that reads the ring and parses what strangers sent, as the
 * loader sees it: started, asked, read, ended. One that dies (hostile bytes found a bug) is started
 * anew: it asks the probes for the connections that it does not know, and what was under way is
 * blind.
 *
 * It is this program again, with descriptors 3 (a socket to the loader), 4 (the ring), 5 (the array
 * of wants) and 6 (an eventfd, by which it says that it has more to say than the socket holds), in
 * SANDBOX_STAYS. It never waits for the loader, who may be slow: what it says waits instead.
 */
#ifndef SONDE_L7_PARSER_H
#define SONDE_L7_PARSER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/l7/parser_message.h"
#include "schema/base/err.h"

#define PARSER_OPTION "--parse" /* of argv[1]; then the bucket in seconds */

enum parser_asks { PARSER_SAY = 1, PARSER_END = 2, PARSER_GONE = 3 };
#define PARSER_GONE_MOST 256
struct parser_ask {
	uint32_t what, n;
	int64_t now_ns, offset_ns;           /* boot clock; utc = boot clock + offset */
	uint64_t gone[2 * PARSER_GONE_MOST]; /* GONE: n pairs of a socket's address and inode */
};

struct parser {
	pid_t pid;
	int fd, ring_fd, wants_fd, more_fd;
	uint32_t bucket_s, starts;
	uint64_t cpu_ns; /* of those that are no more */
	uint64_t buf[SAID_MESSAGE / 8];
};

typedef void (*parser_hear)(void *ctx, const struct heard *x);

/* Before all else. more_fd becomes readable (by an edge) when there is more to be read than the
 * parser can hand over at once. */
void parser_init(struct parser *p);
/* Descriptors are borrowed. 0, or -errno with `e`. */
int parser_start(struct parser *p, int ring_fd, int wants_fd, uint32_t bucket_s, struct err *e);
/* What it has said so far, without waiting; *n: so many messages. false: it is gone. */
bool parser_read(struct parser *p, parser_hear hear, void *ctx, size_t *n);
/* false: it is gone, or hears no more. */
bool parser_ask(const struct parser *p, const struct parser_ask *q);
/* It takes all that is in the ring, says everything and ends; within patience_ns. false: it did
 * not, and what it had not said is lost. */
bool parser_end(struct parser *p, int64_t offset_ns, int64_t patience_ns, parser_hear hear,
		void *ctx);
/* Reaps what is gone and starts another one. */
int parser_again(struct parser *p, struct err *e);
void parser_close(struct parser *p);
void parser_release(struct parser *p); /* closes it, too */
/* CPU time of all of them so far. */
uint64_t parser_cpu_ns(const struct parser *p);

/* The other side: the whole program of argv PARSER_OPTION. */
int parser_main(int argc, char **argv);

#endif
