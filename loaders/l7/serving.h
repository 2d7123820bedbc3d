/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving: how many requests each thread has open, so that what it asks is linked to the one that
 * it serves only where there is no other one.
 *
 * A thread has a request open from its read until its answer is complete, even if another thread
 * writes that. Of a connection whose protocol is not known, it is open until the first bytes of the
 * answer.
 *
 * A process in which another thread answers than has read hands its requests over, or moves tasks
 * between threads: what one of its threads does then tells nothing (serving_apart, for
 * SERVING_APART_NS).
 *
 * A thread that asks something while it has nothing open asks on its own account, and may do so
 * while it has a request open (SERVING_OWN_NS).
 */
#ifndef SONDE_L7_SERVING_H
#define SONDE_L7_SERVING_H

#include <stdbool.h>
#include <stdint.h>

#define SERVING_APART_NS (60ll * 1000000000)
#define SERVING_OWN_NS   (600ll * 1000000000)

struct serving;

/* A server's end of a connection; zeroed: it has read nothing. */
struct serving_end {
	uint64_t tag; /* as the probes make it: of the request that is not answered yet; 0: none */
	uint32_t tgid, reader; /* who read last */
	bool counted;
	uint32_t counted_tid;
	uint64_t counted_tag;
};

struct serving *serving_new(void);
void serving_free(struct serving *s);

/* Bytes of a request, or of an answer. at_ns: as in the record, boot clock. */
void serving_reads(struct serving *s, struct serving_end *x, uint32_t tgid, uint32_t tid,
		   int64_t at_ns);
void serving_writes(struct serving *s, struct serving_end *x, uint32_t tid, int64_t at_ns);
/* Behind either: are requests open on it? */
void serving_counts(struct serving *s, struct serving_end *x, bool open, int64_t at_ns);

/* This thread opens a connection as a client, or writes on one. */
void serving_asks(struct serving *s, uint32_t tid, int64_t at_ns);
/* Has it lately done so while it had nothing open? */
bool serving_own(const struct serving *s, uint32_t tid, int64_t now_ns);

/* Had this thread no other request open than `tag` since that was read? */
bool serving_alone(const struct serving *s, uint32_t tid, uint64_t tag);
/* The only one that it has open; 0: it has no open request, or several. */
uint64_t serving_only(const struct serving *s, uint32_t tid);
/* Are this process's requests handed over from one thread to another? */
bool serving_apart(const struct serving *s, uint32_t tgid, int64_t now_ns);

#endif
