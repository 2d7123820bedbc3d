/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_message: the messages from the parser, a process without rights, to the loader: sums of
 * requests, single requests, and how many bytes were parsed.
 *
 * A packet is a sequence of messages. A message is one of the structs below, by head.kind; then
 * its texts, each ended by NUL, in the order of enum msg_text; then, from a multiple of 8 on, the
 * steps of its latency histogram (uint32_t each). All sizes in the head are in bytes, except the
 * steps. Both ends are the same program, so the layout has no version.
 *
 * The reader trusts nothing: message_read returns only messages whose sizes, enums and flags are
 * valid, and replaces unprintable bytes of texts.
 */
#ifndef SONDE_L7_PARSER_MESSAGE_H
#define SONDE_L7_PARSER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MSG_PACKET_MAX 32768
#define MSG_TEXT_MAX   512
#define MSG_STEPS_MAX  512

enum msg_kind {
	MSG_SUM = 1,
	MSG_PART,
	MSG_SINGLE,
	MSG_BYTES,
	MSG_NAMED,
	MSG_RUNNING,
	MSG_FLUSHED, /* the head alone: the answer to PARSER_END is complete */
	MSG_KINDS
};

enum msg_text {
	MSG_PROTOCOL,
	MSG_SERVICE,
	MSG_OPERATION,
	MSG_STATUS,
	MSG_TRACE,   /* of SINGLE and RUNNING */
	MSG_NAME,    /* of NAMED */
	MSG_ADDRESS, /* of NAMED; of RUNNING: the client's */
	MSG_TEXTS
};

/* Set by message_write. */
struct msg_head {
	uint32_t size; /* of the message with its texts and steps; a multiple of 8 */
	uint16_t kind;
	uint16_t text[MSG_TEXTS]; /* size of each with its NUL; 0: absent */
	uint16_t first_step, n_steps;
	uint16_t unused[4];
};

struct msg_process { /* as in stack_event */
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

/* Whose, and of which bucket. `side` and `result` are enum store_side and store_result. */
struct msg_about {
	struct msg_process process;
	int64_t utc_ns; /* start of the bucket; of SINGLE_RING of the second */
	uint8_t side;
	uint8_t result; /* of SUM, PART and SINGLE */
	uint8_t unused[6];
};

/* The requests of a bucket with the same process, side, texts and result. Steps: their duration. */
struct msg_sum {
	struct msg_head head;
	struct msg_about about;
	uint64_t n, total_ns, max_ns, request_bytes, response_bytes;
};

/* How long one part of these requests took. Same keys as the MSG_SUM before it. */
enum request_part {
	PART_TO_FIRST = 1, /* until the first byte of the response */
	PART_QUEUED = 2,   /* in the socket's buffer, before it was read */
};
#define REQUEST_PARTS 2
struct msg_part {
	struct msg_head head;
	struct msg_about about;
	uint64_t n, total_ns, max_ns;
	uint8_t part; /* enum request_part */
	uint8_t unused[7];
};

/* One request. */
enum single_why {
	SINGLE_FAILED = 1,
	SINGLE_SLOW = 2,
	SINGLE_SAMPLE = 3,
	SINGLE_LINKED = 4, /* made while another single request was served */
	SINGLE_RING = 5,   /* none of these: for the flight ring alone, by the second */
};
/* What links a request to its parent. */
enum link_how {
	LINK_NONE,
	LINK_BY_THREAD,    /* the thread that made it was serving the parent, and nothing else */
	LINK_BY_OPENER,    /* its connection was opened while the parent was served */
	LINK_BY_BYTES,     /* of a server's side: both ends of the connection are on this host */
	LINK_BY_GOROUTINE, /* as BY_THREAD or BY_OPENER, of a goroutine */
	LINK_SEVERAL,      /* none: the thread that made it had several requests open */
	LINK_HOWS
};
struct msg_single {
	struct msg_head head;
	struct msg_about about;
	int64_t at_ns; /* UTC */
	uint64_t first_ns, total_ns, request_bytes, response_bytes;
	uint64_t weight;               /* requests that it represents; 0: itself alone */
	uint64_t tag;                  /* of its samples; 0: none */
	uint64_t span, parent, caller; /* as in links.h; caller: from the request's header */
	uint32_t tid;
	uint8_t why;     /* enum single_why */
	uint8_t how;     /* enum link_how */
	uint8_t partial; /* 1: requests made for it may be missing */
	uint8_t unused;
};

/* Bytes of a bucket, of connections with the same process, side, protocol and service. */
struct byte_counts {
	uint64_t seen, parsed, skipped, blind; /* seen = parsed + skipped + blind */
	uint64_t blind_requests;
};
struct msg_bytes {
	struct msg_head head;
	struct msg_about about;
	struct byte_counts count;
};

/* The process looked up MSG_NAME and got MSG_ADDRESS. */
struct msg_named {
	struct msg_head head;
	struct msg_about about;
};

/*
 * A request that had no complete answer at seen_ns, or whose outcome at end_ns is about.result.
 * Before that about.result is STORE_RESULT_OPENED of a stream, else without a meaning. id
 * 0: a mark, which says until when (seen_ns) and since when (at_ns) all that run have messages;
 * what became of earlier ones is unknown.
 */
struct msg_running {
	struct msg_head head;
	struct msg_about about;
	int64_t at_ns, seen_ns, end_ns; /* UTC; end_ns 0: it runs */
	uint64_t first_ns;              /* to the first byte of its answer; 0: none so far */
	uint64_t request_bytes, response_bytes;
	uint64_t id, exchange; /* of 60 bits; exchange as in links.h, 0: unknown */
	uint64_t others; /* of a mark: requests that run without a message, because they are too
			    many */
	uint32_t tid;
	uint16_t port; /* of the client's end; 0: it has none */
	uint16_t unused;
};

/* ---- writing ---- */

struct message_writer {
	void (*send)(void *ctx, const void *packet, size_t size);
	void *ctx;
	size_t len;
	uint64_t buf[MSG_PACKET_MAX / 8];
};

/* What varies in size: a NULL text is absent, a longer one than MSG_TEXT_MAX is cut. */
struct message_tail {
	const char *text[MSG_TEXTS];
	const uint32_t *steps;
	uint16_t first_step, n_steps;
};

/* `message`: the struct of `kind`, whose head is filled in here. tail NULL: no texts, no steps. */
void message_write(struct message_writer *w, enum msg_kind kind, void *message,
		   const struct message_tail *tail);
/* Sends what is buffered. */
void message_flush(struct message_writer *w);

/* ---- reading ---- */

struct message {
	enum msg_kind kind;
	union { /* by kind; FLUSHED has only the head */
		const struct msg_head *head;
		const struct msg_sum *sum;
		const struct msg_part *part;
		const struct msg_single *single;
		const struct msg_bytes *bytes;
		const struct msg_named *named;
		const struct msg_running *running;
	};
	const struct msg_about *about;      /* NULL: FLUSHED */
	char text[MSG_TEXTS][MSG_TEXT_MAX]; /* printable ASCII and UTF-8, else '?'; "": absent */
	const uint32_t *steps;              /* n_steps of them, from first_step on; NULL: none */
	uint16_t first_step, n_steps;
};

/* The message at *at of a packet (aligned to 8 bytes), borrowed from it; advances *at. false: the
 * packet ends here, or the message is invalid. */
bool message_read(const void *packet, size_t size, size_t *at, struct message *out);

#endif
