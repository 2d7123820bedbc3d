/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages: from the records of one stream to its messages: a line with those that continue it.
 * Pure.
 *
 *   1. Pieces are joined to lines.
 *   2. Control sequences of a terminal (ECMA-48) are left out: colours belong to no word.
 *   3. A line continues the message before it if it is empty, begins with a blank, or only closes a
 *      bracket; begins with "Caused by:", "Suppressed:", "..."; is the detail of an error of
 *      PostgreSQL (DETAIL, HINT, STATEMENT, CONTEXT, QUERY); or belongs to a trace: of Python, up
 *      to the line that says what was raised; of Go, its goroutines; of Java, after an error, the
 *      exception; of Rust, what follows "panicked at"; or to a private key in PEM (RFC 7468), which
 *      can be masked only as a whole. Of a key that is longer than a message the rest has no text.
 *   4. A message ends with the next one, after MESSAGES_LINES lines, or when the reader says so
 *      (a second without lines). MESSAGES_BYTES of it are kept, all is counted.
 */
#ifndef SONDE_LOGS_MESSAGES_H
#define SONDE_LOGS_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/logs/forms.h"
#include "schema/base/strbuf.h"

#define MESSAGES_LINES 256
#define MESSAGES_BYTES 8192

struct message {
	const char *text; /* its lines, with '\n' between */
	size_t len;       /* of what is kept */
	size_t head;      /* of its first line */
	size_t last;      /* where its last line begins, if all of it is kept; else 0 */
	bool trace;       /* that line says what was raised */
	uint64_t lines, bytes;
	int64_t utc_ns; /* of its first line */
	uint32_t pid;   /* 0: unknown */
	int level;      /* enum line_level, of the source itself; -1: the text says it */
};

enum messages_trace { TRACE_NONE, TRACE_PYTHON, TRACE_GO, TRACE_RUST };

struct messages {
	struct strbuf text, piece, plain; /* plain: of a line with control sequences */
	size_t head, last;
	enum messages_trace in;
	bool raised; /* the last line is that of Python's trace that says what */
	bool has_piece, has;
	bool in_key; /* of a private key, its end has not come */
	uint64_t lines, bytes, piece_bytes;
	int64_t utc_ns, piece_ns;
	uint32_t pid;
	int level;
};

typedef void (*messages_take)(void *ctx, const struct message *m);

void messages_release(struct messages *m);
void messages_record(struct messages *m, const struct log_record *r, uint32_t pid, int level,
		     messages_take take, void *ctx);
/* The message that is being joined is over; an unfinished line stays, unless `all`. */
void messages_end(struct messages *m, bool all, messages_take take, void *ctx);

#endif
