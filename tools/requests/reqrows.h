/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqrows: requests of a selection, added up (views requests, request_phases); single ones (view
 * request_log); and what became of bytes (request_bytes).
 *
 * A request between two programs of this host is there twice: as its client saw it, and as its
 * server did. Rows keep them apart. Latencies come in steps of an eighth of a power of two: a
 * quantile is a step's middle, wrong by 6 % at most.
 */
#ifndef SONDE_TOOLS_REQROWS_H
#define SONDE_TOOLS_REQROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/model/hist.h"
#include "tools/select/select.h"

enum reqrows_by {
	REQROWS_BY_OPERATION,
	REQROWS_BY_SERVICE,
	REQROWS_BY_COMMAND,
	REQROWS_BY_PROCESS,
	REQROWS_BY_CONTAINER,
	REQROWS_BY_PROTOCOL,
	REQROWS_BY_STATUS,
	/* no words of the command line: who it is (container, else command) and service */
	REQROWS_BY_END,
	REQROWS_BY_END_OPERATION
};
#define REQROWS_BY_NAMES "operation, service, command, process, container, protocol, status"
/* false: there is no such word. */
bool reqrows_by(const char *word, enum reqrows_by *by);

/* A part of how long requests took: of `n` of them it was measured; 0: of none. */
struct reqrows_part {
	uint64_t n, total_ns, max_ns;
	struct hist spread;
};

struct reqrows_row {
	char *container, *comm; /* "": none, or several */
	int64_t pid;            /* 0: several, or not known */
	char *side, *protocol, *service, *operation,
		*status;                  /* "" where rows of several were added */
	uint64_t requests, errors, blind; /* blind: what became of them is not known */
	uint64_t answered, total_ns, max_ns, request_bytes, response_bytes;
	struct hist latency;
	struct reqrows_part first,
		queue; /* to the answer's first byte; in the socket's buffer, before it was read */
	bool self;
};

struct reqrows {
	struct reqrows_row *rows;
	size_t n, shown; /* shown: the caller's */
	bool known;      /* requests were recorded in the range */
	double seconds;  /* of the range in which they were: for rates */
	uint64_t seen, parsed, skipped, blind, blind_requests; /* bytes */
};

/* side "": both. Sorted by time that they took together, with `failed` by errors. An empty one is
 * no error. Release in any case. */
int reqrows_read(const struct selection *sel, enum reqrows_by by, const char *side, bool failed,
		 struct reqrows *out, struct err *e);
/* Rows of one side that were read BY_END_OPERATION, as BY_OPERATION would have read them, sorted by
 * time: reading takes most of the time. Release in any case. */
void reqrows_operations(const struct reqrows *ends, const char *side, struct reqrows *out);
void reqrows_release(struct reqrows *r);
/* Another row's sums, latencies among them, are added. */
void reqrows_sum(struct reqrows_row *to, const struct reqrows_row *r);
/* ns; 0: none was answered. */
uint64_t reqrows_quantile(const struct reqrows_row *r, double q);
uint64_t reqrows_part_quantile(const struct reqrows_part *p, double q);

struct reqsingle {
	char *container, *comm, *side, *protocol, *service, *operation, *status, *result, *why,
		*trace;
	int64_t pid, tid, at_ns, first_us, total_us; /* -1: none */
	uint64_t weight, request_bytes, response_bytes;
	bool stream; /* or a long poll (reqstream.h) */
};
#define REQSINGLES_RING 200000
struct reqsingles {
	struct reqsingle *rows;
	size_t n, shown;
	size_t streams; /* left out */
	size_t ring;    /* of kept windows of the flight ring */
	size_t left;    /* more of these than REQSINGLES_RING: left out */
	bool known;
};
/* Slowest first; with `failed` only those, newest first. Streams and long polls only with
 * `streams`. */
int reqsingles_read(const struct selection *sel, const char *side, bool failed, bool streams,
		    struct reqsingles *out, struct err *e);
void reqsingles_release(struct reqsingles *r);

#endif
