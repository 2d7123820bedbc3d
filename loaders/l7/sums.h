/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums: adds up the requests of the current bucket by what they have in common, keeps single ones
 * (those that failed, the slowest of all and of each operation, and a random sample of the rest),
 * and counts bytes. Memory is bounded: when a table is full, it is written early; the store adds
 * up rows with the same key.
 *
 * With a ring (sums_ring) all others are written too, once their bucket is over: SUMS_RING of each
 * second, the first that end in it. They represent none: what is not among them is in the sums.
 */
#ifndef SONDE_L7_SUMS_H
#define SONDE_L7_SUMS_H

#include "loaders/l7/links.h"
#include "loaders/l7/parser_message.h"
#include "loaders/lib/protocols/conn.h"

#define SUMS_ROWS  4096
#define SUMS_BYTES 4096
/* Single requests of a bucket. */
#define SUMS_FAILED      30
#define SUMS_FAILED_EACH 5 /* of one operation */
#define SUMS_SLOW        10
#define SUMS_EACH        48 /* operations, a client's and a server's are two: the slowest of each */
#define SUMS_SAMPLE      10
#define SUMS_LINKED      256 /* made while those were served */
#define SUMS_NAMED       2048
#define SUMS_RING        1024 /* of a second, for the flight ring */

/* Whose requests, and with whom. */
struct sums_of {
	struct msg_process process;
	uint32_t tid;
	uint8_t side;
	bool alone; /* no other request was open on its connection: what its threads did in that
		       time was for this one */
	const char *service;
	uint64_t tag; /* of a client's request: when the first bytes of the request that its thread
			 served were read; 0: unknown */
	uint64_t exchange; /* links.h; 0: unknown */
	uint8_t how;       /* enum link_how: of `tag`, or why it is 0 */
	bool linked;       /* this host links requests now: this one may be part of a tree */
};

struct sums;

/* `offset_ns`: UTC = boot clock + that. */
struct sums *sums_new(struct protocols *s, struct message_writer *to, uint32_t bucket_s,
		      int64_t offset_ns);
void sums_free(struct sums *s);
/* The flight ring is written, too. */
void sums_ring(struct sums *s, bool on);
void sums_clock(struct sums *s, int64_t offset_ns);
void sums_request(struct sums *s, const struct sums_of *of, const struct proto_request *r);
/* A lookup of `name` returned `address`. Written once a bucket, SUMS_NAMED names at most. */
void sums_named(struct sums *s, const struct sums_of *of, const char *name, const char *address,
		int64_t at_ns);
void sums_bytes(struct sums *s, const struct sums_of *of, const char *protocol, int64_t at_ns,
		const struct byte_counts *more);
/* Writes the buckets that ended before now_ns (boot clock); 0: everything. */
void sums_write(struct sums *s, int64_t now_ns);

#endif
