/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqrunning: the requests that were running at a moment (view running_requests): those that had
 * been asked by then and had no complete answer. They are known if they lasted two seconds or more.
 *
 *   1. A row says of a request that it ran at some time; a later one that it is over, or still
 *      runs. Without such a row for longer than one is due it is not known to run, and is left out:
 *      so is what an earlier parser of the loader told.
 *   2. The two sides of a request within this host are one row: joined by their exchange, else by
 *      the client's end of the connection, if that leaves no choice.
 *   3. Where the recording ended before the moment, the moment is its end.
 *   4. Streams and long polls (reqstream.h) are counted apart.
 */
#ifndef SONDE_TOOLS_REQRUNNING_H
#define SONDE_TOOLS_REQRUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

/* Who has one end of a connection. */
struct reqrun_end {
	char *container, *comm; /* NULL: not a process of this host, or not known */
	int64_t pid, tid;       /* tid: of the thread that moved its last bytes */
};

struct reqrun {
	struct reqrun_end client, server;
	char *protocol, *service, *operation, *trace;
	char *peer;                        /* address and port of the client's end; "": none */
	int64_t at_ns, lasts_ns, first_us; /* first_us: to the answer's first byte; -1: none */
	uint64_t request_bytes, response_bytes;
	bool stream, over;   /* over: it had its answer, or had failed, by the end of a range */
	char *doing, *stack; /* what the server's thread did last (tools/processes/reqdoing.h);
				NULL: not known */
};

struct reqrunning {
	struct reqrun *rows; /* longest first */
	size_t n;
	size_t streams;    /* left out */
	uint64_t others;   /* more that ran, of which only the number is known */
	int64_t at_ns;     /* the moment */
	bool known, ended; /* requests were recorded then; the recording ended at the moment */
};

/* The part of the store that says what ran at a moment. */
struct reqrunning_window {
	struct select_args args;
	char from[32], to[32];
};
const struct select_args *reqrunning_select(const struct select_args *asked, int64_t at_ns,
					    struct reqrunning_window *w);

/* `sel`: of reqrunning_select. side: "client", "server" or "". With `streams` those too. An empty
 * one is no error. Release in any case. */
int reqrunning_read(const struct selection *sel, int64_t at_ns, const char *side, bool streams,
		    struct reqrunning *out, struct err *e);
/* Instead of a moment: what ran at some time of the selection's range, and lasted least_ns or more
 * by its end; without requests to container engines. */
int reqrunning_hung(const struct selection *sel, int64_t least_ns, struct reqrunning *out,
		    struct err *e);
void reqrunning_release(struct reqrunning *r);
/* Both, of a moment; without what threads do. */
int reqrunning_at(const struct select_args *asked, const char *store, char *const *words,
		  size_t n_words, int64_t at_ns, struct reqrunning *out, struct err *e);

#endif
