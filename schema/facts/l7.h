/* SPDX-License-Identifier: Apache-2.0 */
/* l7: what family l7 stores in addition to sums of requests (request_row): single requests, and
 * what happened to bytes. */
#ifndef SONDE_FACTS_L7_H
#define SONDE_FACTS_L7_H

#include "schema/facts/fact.h"

#define REQUEST_LOG_COLUMNS(X)                                                                                       \
	X(REQUEST_LOG_PROCESS, "process", PROCESS, KEY, "", "process.id whose it is")                                \
	X(REQUEST_LOG_SIDE, "side", TEXT, KEY, "", "text.id: client, server")                                        \
	X(REQUEST_LOG_PROTOCOL, "protocol", TEXT, KEY, "", "text.id")                                                \
	X(REQUEST_LOG_SERVICE, "service", TEXT, KEY, "",                                                             \
	  "text.id: address and port of the server, or its path")                                                    \
	X(REQUEST_LOG_OPERATION, "operation", TEXT, KEY, "", "text.id")                                              \
	X(REQUEST_LOG_NTH, "nth", TEXT, KEY, "", "text.id: which of the bucket")                                     \
	X(REQUEST_LOG_AT, "at_us", NUMBER, GAUGE, "us",                                                              \
	  "when its first byte was seen, since 1970")                                                                \
	X(REQUEST_LOG_STATUS, "status", TEXT, GAUGE, "", "text.id; empty: the protocol has none")                    \
	X(REQUEST_LOG_RESULT, "result", TEXT, GAUGE, "",                                                             \
	  "text.id: ok, error, one-way, opened, no-answer, blind")                                                   \
	X(REQUEST_LOG_WHY, "why", TEXT, GAUGE, "",                                                                   \
	  "text.id: why this one is kept: failed, slow (the slowest of the bucket), sample (drawn from all others)") \
	X(REQUEST_LOG_WEIGHT, "weight", NUMBER, GAUGE, "",                                                           \
	  "requests that it represents: 1, or for a sample the number of requests per sampled one")                  \
	X(REQUEST_LOG_TID, "tid", NUMBER, GAUGE, "",                                                                 \
	  "thread that moved the connection's last bytes before it was answered")                                    \
	X(REQUEST_LOG_FIRST, "first_us", NUMBER, GAUGE, "us",                                                        \
	  "to the first byte of its answer; NULL: it had none")                                                      \
	X(REQUEST_LOG_TOTAL, "total_us", NUMBER, GAUGE, "us",                                                        \
	  "to the last byte of its answer; NULL: it had none")                                                       \
	X(REQUEST_LOG_ASKED, "request_bytes", NUMBER, GAUGE, "bytes", "of the request")                              \
	X(REQUEST_LOG_ANSWERED, "response_bytes", NUMBER, GAUGE, "bytes", "of its answer")                           \
	X(REQUEST_LOG_TRACE, "trace", TEXT, GAUGE, "",                                                               \
	  "text.id: id of the trace that it carried; empty: none")

#define REQUEST_BYTES_COLUMNS(X)                                                                  \
	X(REQUEST_BYTES_PROCESS, "process", PROCESS, KEY, "",                                     \
	  "process.id whose end of the connections it is; 0: unknown")                            \
	X(REQUEST_BYTES_SIDE, "side", TEXT, KEY, "", "text.id: client, server")                   \
	X(REQUEST_BYTES_PROTOCOL, "protocol", TEXT, KEY, "", "text.id: protocol; empty: unknown") \
	X(REQUEST_BYTES_SERVICE, "service", TEXT, KEY, "",                                        \
	  "text.id: address and port of the server, or its path")                                 \
	X(REQUEST_BYTES_SEEN, "seen", NUMBER, COUNTER, "bytes",                                   \
	  "that these connections moved: parsed + skipped + blind")                               \
	X(REQUEST_BYTES_PARSED, "parsed", NUMBER, COUNTER, "bytes", "of those, read")             \
	X(REQUEST_BYTES_SKIPPED, "skipped", NUMBER, COUNTER, "bytes",                             \
	  "skipped because they are not needed: bodies, and unknown protocols")                   \
	X(REQUEST_BYTES_BLIND, "blind", NUMBER, COUNTER, "bytes",                                 \
	  "missing, or not understood: requests in them are not counted")                         \
	X(REQUEST_BYTES_REQUESTS, "blind_requests", NUMBER, COUNTER, "",                          \
	  "requests that were seen, but whose outcome was not")

/* A tag is when the request's first bytes were read, in ns of the boot clock: with the process it
 * tells one. One that was not alone on its connection has none. REQUEST_TAG_GOROUTINE in it: it is
 * that of a goroutine; of a program in Go no other one counts. */
#define REQUEST_TAG_GOROUTINE (1ull << 59)
#define REQUEST_TAG_COLUMNS(X)                                                             \
	X(REQUEST_TAG_PROCESS, "process", PROCESS, KEY, "", "process.id of who served it") \
	X(REQUEST_TAG_TAG, "tag", TAG, KEY, "", "what its samples have")                   \
	X(REQUEST_TAG_OPERATION, "operation", TEXT, GAUGE, "", "text.id")                  \
	X(REQUEST_TAG_RESULT, "result", TEXT, GAUGE, "", "text.id: ok, error")             \
	X(REQUEST_TAG_TOTAL, "total_us", NUMBER, GAUGE, "us", "to the last byte of its answer")

#define REQUEST_SAMPLE_COLUMNS(X)                                                           \
	X(REQUEST_SAMPLE_TAG, "tag", TAG, KEY, "",                                          \
	  "of the request that the thread served: request_tag_row.tag of the same process") \
	X(REQUEST_SAMPLE_SERIES, "series", SERIES, KEY, "",                                 \
	  "series.id that they are counted in, too")                                        \
	X(REQUEST_SAMPLE_N, "n", NUMBER, COUNTER, "",                                       \
	  "samples, or waits: only those whose stack was taken, unweighted")                \
	X(REQUEST_SAMPLE_VALUE, "value", NUMBER, COUNTER, "ns", "their sum")

/* Ids of 60 bits: of an answer made of who gave it and when it was asked, of a question of its
 * connection's ends and its place there. */
#define REQUEST_SPAN_COLUMNS(X)                                                                                                                                                           \
	X(REQUEST_SPAN_PROCESS, "process", PROCESS, KEY, "", "process.id whose it is")                                                                                                    \
	X(REQUEST_SPAN_SIDE, "side", TEXT, KEY, "", "text.id: client, server")                                                                                                            \
	X(REQUEST_SPAN_SPAN, "span", TAG, KEY, "", "its own id")                                                                                                                          \
	X(REQUEST_SPAN_NTH, "nth", TEXT, GAUGE, "",                                                                                                                                       \
	  "text.id: request_log_row.nth of the same bucket, run and process")                                                                                                             \
	X(REQUEST_SPAN_PARENT, "parent", NUMBER, GAUGE, "",                                                                                                                               \
	  "server side: the span of the client's request; client side: the span of the request that its thread served; NULL: unknown")                                                    \
	X(REQUEST_SPAN_CALLER, "caller", NUMBER, GAUGE, "",                                                                                                                               \
	  "of who sent it, as the header of its trace says, the lowest 60 bits; NULL: it does not")                                                                                       \
	X(REQUEST_SPAN_HOW, "how", TEXT, GAUGE, "",                                                                                                                                       \
	  "text.id: how the parent is known: thread (it asked while it served the parent), opener (it opened the connection then), bytes (both ends are of this host); empty: it is not") \
	X(REQUEST_SPAN_PARTIAL, "partial", NUMBER, GAUGE, "",                                                                                                                             \
	  "1: some that were asked for it may be missing")

/* Of one that lasts there is a row when it has lasted two seconds, then every ten, after a minute
 * every sixty, and one when it is over (loaders/l7/running.h). */
#define REQUEST_RUNNING_COLUMNS(X)                                                                 \
	X(REQUEST_RUNNING_PROCESS, "process", PROCESS, KEY, "",                                    \
	  "process.id whose end of the connection it is; of a mark 0")                             \
	X(REQUEST_RUNNING_SIDE, "side", TEXT, KEY, "", "text.id: client, server; of a mark empty") \
	X(REQUEST_RUNNING_ID, "id", TAG, KEY, "",                                                  \
	  "its own; 0: a mark, which says until when all that run have rows")                      \
	X(REQUEST_RUNNING_PROTOCOL, "protocol", TEXT, GAUGE, "", "text.id")                        \
	X(REQUEST_RUNNING_SERVICE, "service", TEXT, GAUGE, "",                                     \
	  "text.id: address and port of the server, or its path")                                  \
	X(REQUEST_RUNNING_OPERATION, "operation", TEXT, GAUGE, "", "text.id")                      \
	X(REQUEST_RUNNING_CLIENT, "client", TEXT, GAUGE, "",                                       \
	  "text.id: address of the client's end; empty: it has none")                              \
	X(REQUEST_RUNNING_PORT, "port", NUMBER, GAUGE, "", "port of the client's end")             \
	X(REQUEST_RUNNING_AT, "at_us", NUMBER, GAUGE, "us",                                        \
	  "when its first byte was seen, since 1970; of a mark: earlier rows hold no longer")      \
	X(REQUEST_RUNNING_SEEN, "seen_us", NUMBER, GAUGE, "us",                                    \
	  "when it was looked at, since 1970")                                                     \
	X(REQUEST_RUNNING_END, "end_us", NUMBER, GAUGE, "us",                                      \
	  "when it was over, since 1970; NULL: it runs")                                           \
	X(REQUEST_RUNNING_RESULT, "result", TEXT, GAUGE, "",                                       \
	  "text.id: ok, error, no-answer, blind; while it runs empty, or opened of a stream")      \
	X(REQUEST_RUNNING_TID, "tid", NUMBER, GAUGE, "",                                           \
	  "thread that moved the connection's last bytes")                                         \
	X(REQUEST_RUNNING_FIRST, "first_us", NUMBER, GAUGE, "us",                                  \
	  "to the first byte of its answer; NULL: none so far")                                    \
	X(REQUEST_RUNNING_ASKED, "request_bytes", NUMBER, GAUGE, "bytes", "of the request so far") \
	X(REQUEST_RUNNING_ANSWERED, "response_bytes", NUMBER, GAUGE, "bytes",                      \
	  "of its answer so far")                                                                  \
	X(REQUEST_RUNNING_TRACE, "trace", TEXT, GAUGE, "",                                         \
	  "text.id: id of the trace that it carried; empty: none")                                 \
	X(REQUEST_RUNNING_EXCHANGE, "exchange", NUMBER, GAUGE, "",                                 \
	  "the same on both sides of one request; NULL: not known")                                \
	X(REQUEST_RUNNING_OTHERS, "others", NUMBER, GAUGE, "",                                     \
	  "of a mark: how many more run, without a row, because they are too many")

enum request_running_column { REQUEST_RUNNING_COLUMNS(FACT_ID) REQUEST_RUNNING_N };
enum request_span_column { REQUEST_SPAN_COLUMNS(FACT_ID) REQUEST_SPAN_N };
enum request_tag_column { REQUEST_TAG_COLUMNS(FACT_ID) REQUEST_TAG_N };
enum request_sample_column { REQUEST_SAMPLE_COLUMNS(FACT_ID) REQUEST_SAMPLE_COLUMNS_N };
enum request_log_column { REQUEST_LOG_COLUMNS(FACT_ID) REQUEST_LOG_N };
enum request_bytes_column { REQUEST_BYTES_COLUMNS(FACT_ID) REQUEST_BYTES_N };

extern const struct fact REQUEST_LOG_FACT, REQUEST_BYTES_FACT, REQUEST_TAG_FACT,
	REQUEST_SAMPLE_FACT, REQUEST_SPAN_FACT, REQUEST_RUNNING_FACT;

#endif
