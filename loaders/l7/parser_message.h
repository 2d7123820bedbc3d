/* SPDX-License-Identifier: Apache-2.0 */
/*
 * said: what the parser, a process without rights, says to the loader: sums of requests, single
 * ones, and what became of bytes.
 *
 * A message is a run of entries, each a struct said with its numbers, its texts (each ended by
 * NUL), and steps of latency. Who reads them trusts nothing: said_next gives only what is whole and
 * within bounds, and texts that can be printed.
 */
#ifndef SONDE_L7_SAID_H
#define SONDE_L7_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAID_MESSAGE 32768
#define SAID_TEXT    512
#define SAID_STEPS   512

enum said_what {
	SAID_SUM = 1,     /* requests of a bucket that have all names in common */
	SAID_SINGLE = 2,  /* one request */
	SAID_BYTES = 3,   /* bytes of a bucket, of connections that have process, side, protocol and
			     service in common */
	SAID_FLUSHED = 4, /* all that there was up to the question */
	SAID_PART = 6, /* of a SUM's requests: a part of how long they took (why: enum said_part);
			  N, TOTAL, MAX and steps */
	SAID_NAMED = 5 /* a name that a process asked for (OPERATION), and an address that it was
			  answered with (SERVICE) */
};
enum said_part {
	SAID_TO_FIRST = 1 /* byte of the answer */,
	SAID_QUEUED = 2 /* in the socket's buffer, before it was read */
};
#define SAID_PARTS 2
enum said_why {
	SAID_FAILED = 1,
	SAID_SLOW = 2,
	SAID_SAMPLE = 3,
	SAID_LINKED = 4 /* asked for one that is kept */
};
/* How a question is known to be asked for its parent: by the thread that asked, or by the one that
 * opened the connection for it. */
enum said_how {
	SAID_NO_LINK,
	SAID_BY_THREAD,
	SAID_BY_OPENER,
	SAID_BY_BYTES /* an answer: both ends of its connection are here */,
	SAID_BY_GOROUTINE /* as by thread or opener */
};
#define SAID_HOW     7
#define SAID_PARTIAL 8 /* some that were asked for it may be missing */

struct said_who { /* a process, as in stack_event */
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

enum said_number { /* by what it is */
		   SAID_N,
		   SAID_TOTAL,
		   SAID_MAX,
		   SAID_REQUEST_BYTES,
		   SAID_RESPONSE_BYTES, /* of SUM */
		   SAID_AT = 0,
		   SAID_FIRST,
		   SAID_WHOLE,
		   SAID_ASKED,
		   SAID_ANSWERED,
		   SAID_WEIGHT,
		   SAID_TID,
		   SAID_TAG, /* of SINGLE; AT: utc; ns and bytes; TAG: of its samples, 0: none */
		   SAID_SPAN,
		   SAID_PARENT,
		   SAID_CALLER, /* as in links.h; CALLER: as the request's header says */
		   SAID_SEEN = 0,
		   SAID_PARSED,
		   SAID_SKIPPED,
		   SAID_BLIND,
		   SAID_BLIND_REQUESTS, /* of BYTES */
		   SAID_NUMBERS = 11
};
enum said_texts {
	SAID_PROTOCOL,
	SAID_SERVICE,
	SAID_OPERATION,
	SAID_STATUS,
	SAID_TRACE,
	SAID_TEXTS
};

struct said {
	uint32_t size; /* of the entry, with all of it; a multiple of 8 */
	uint8_t what, side, result,
		why; /* side, result: as the store's (schema/store/write/requests.h) */
	struct said_who who;
	int64_t utc_ns; /* of the bucket */
	uint64_t number[SAID_NUMBERS];
	uint16_t text[SAID_TEXTS]; /* bytes of each with its NUL; 0: none */
	uint16_t first_step, n_steps;
	uint16_t flags; /* of SINGLE: enum said_how, SAID_PARTIAL */
			/* texts, then from a multiple of 8 on the steps, uint32_t each */
};

/* ---- who says ---- */

struct saying {
	void (*send)(void *ctx, const void *message, size_t size);
	void *ctx;
	size_t len;
	uint64_t buf[SAID_MESSAGE / 8];
};

/* `s` with its texts (NULL: none) and steps; size and lengths are set here. Texts are cut to
 * SAID_TEXT. */
void saying_add(struct saying *to, struct said *s, const char *const text[SAID_TEXTS],
		const uint32_t *steps);
void saying_flush(struct saying *to);

/* ---- who hears ---- */

struct heard {
	const struct said *s;
	char text[SAID_TEXTS]
		 [SAID_TEXT];  /* "": none. What is no printable ASCII and no UTF-8 is '?' */
	const uint32_t *steps; /* n_steps, NULL: none; from step first_step on */
};

/* The entry at *at of a message (aligned to 8); *at goes on. false: there is none, or it is not
 * sound. */
bool said_next(const void *message, size_t size, size_t *at, struct heard *out);

#endif
