/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: the protocol between sonde-scrape and sonde-pprof. Sockets are of type SOCK_SEQPACKET: a
 * message is whole.
 *
 * sonde-scrape sends a struct wire_question, with a descriptor: the socket that the answer goes to;
 * and perhaps a second one: the network namespace to ask in, or, `connected`, the connection to ask
 * by, to a Unix socket. The answer is, in this order:
 *
 *   WIRE_CONNECTED   once, with a descriptor: the connection, on which the asker may close its
 *                    sending side (a CPU profile then ends at once)
 *   WIRE_INDEX       u64: goroutines that the page lists; of the page alone. All others are of
 *                    profiles:
 *   WIRE_MAPPINGS    struct wire_mapping each: where the program's files are mapped
 *   WIRE_STACKS      u64: depth, then WIRE_VALUES values, then `depth` addresses, leaf first; many
 *                    in one message
 *   WIRE_END         struct wire_end
 *
 * or at any point, as the last, WIRE_FAILED: struct wire_failed. An answer without either of them
 * is incomplete: its reader was killed. Each message begins with a struct wire_head. Numbers are
 * this machine's. The reader does not trust them.
 */
#ifndef SONDE_SCRAPE_WIRE_H
#define SONDE_SCRAPE_WIRE_H

#include <stdint.h>

#define WIRE_SOCKET     "/run/sonde-pprof.sock"
#define WIRE_MESSAGE    (60u << 10) /* bytes of one, at most */
#define WIRE_VALUES     4
#define WIRE_DEPTH      512   /* of a deeper stack the leaf's side */
#define WIRE_STACKS_MAX 65536 /* of an answer */
#define WIRE_FRAMES_MAX (1u << 20)

enum wire_ask {
	WIRE_ASK_INDEX,
	WIRE_ASK_CPU,
	WIRE_ASK_HEAP,
	WIRE_ASK_GOROUTINE,
	WIRE_ASK_BLOCK,
	WIRE_ASK_MUTEX,
	WIRE_ASKS
};

struct wire_question {
	uint32_t ask;       /* enum wire_ask */
	uint32_t seconds;   /* of a CPU profile */
	uint32_t timeout_s; /* then it is given up */
	uint16_t port, v6;  /* v6: all of `address`, else its first four bytes */
	uint8_t address[16];
	uint32_t connected;
};

enum wire_what {
	WIRE_CONNECTED = 1,
	WIRE_INDEX,
	WIRE_MAPPINGS,
	WIRE_STACKS,
	WIRE_END,
	WIRE_FAILED
};

struct wire_head {
	uint32_t what; /* enum wire_what */
	uint32_t n;    /* things that follow */
};

struct wire_mapping {
	uint64_t start, end, offset;
};

struct wire_end {
	int64_t duration_ns; /* of a CPU profile */
	uint64_t left_out;   /* stacks beyond the limits */
};

/* Why there is no answer; `detail` below. */
enum wire_why {
	WIRE_NO_CONNECTION = 1, /* errno */
	WIRE_NO_NETWORK,        /* errno: the namespace cannot be entered */
	WIRE_NO_HTTP,           /* it sent something else */
	WIRE_TLS,               /* it wants TLS */
	WIRE_STATUS,            /* HTTP's status */
	WIRE_NO_INDEX,          /* what came is not the page of net/http/pprof */
	WIRE_TOO_LARGE,
	WIRE_CUT,        /* it ended before its end */
	WIRE_NO_PROFILE, /* what came is no profile of that kind */
	WIRE_SILENT,     /* it did not end in time */
	WIRE_BROKEN      /* its reader was killed, by its limits or what it met */
};

struct wire_failed {
	uint32_t why; /* enum wire_why */
	uint32_t detail;
};

#endif
