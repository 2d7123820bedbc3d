/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums: requests of the bucket at hand, summed by what they have in common; of single ones those
 * that failed, the slowest, and a fair sample of the others; and what became of bytes. Bounded:
 * when there is no more room, what is there is said, and adds up in the store.
 */
#ifndef SONDE_L7_SUMS_H
#define SONDE_L7_SUMS_H

#include "loaders/l7/links.h"
#include "loaders/l7/parser_message.h"
#include "loaders/lib/protocols/conn.h"

#define SUMS_ROWS  4096
#define SUMS_BYTES 4096
/* of a bucket, told one by one; of each operation at most FAILED_EACH */
#define SUMS_FAILED      30
#define SUMS_FAILED_EACH 5
#define SUMS_SLOW        10
#define SUMS_SAMPLE      10
#define SUMS_LINKED      256 /* of a bucket: what was asked for those */
#define SUMS_NAMED       2048

/* Whose requests, and with whom. */
struct sums_of {
	struct said_who who;
	uint32_t tid;
	uint8_t side;
	bool alone; /* its connection had no other request meanwhile: what its threads did was for
		       this one */
	const char *service;
	uint64_t tag; /* of a question: when the request that its thread served began to be read; 0:
			 none is known */
	uint64_t exchange; /* links.h; 0: it cannot be known */
	uint8_t how;       /* enum said_how, of `tag` */
	bool linked;       /* requests of this host belong together: it may be of them */
};

struct sums;

/* `offset_ns`: utc = boot clock + that. */
struct sums *sums_new(struct protocols *s, struct saying *to, uint32_t bucket_s, int64_t offset_ns);
void sums_free(struct sums *s);
void sums_clock(struct sums *s, int64_t offset_ns);
void sums_request(struct sums *s, const struct sums_of *of, const struct proto_request *r);
/* This name was answered with this address. Once each in a bucket, SUMS_NAMED of all in it. */
void sums_named(struct sums *s, const struct sums_of *of, const char *name, const char *address,
		int64_t at_ns);
/* More bytes: number[SAID_SEEN] to [SAID_BLIND_REQUESTS]. */
void sums_bytes(struct sums *s, const struct sums_of *of, const char *protocol, int64_t at_ns,
		const uint64_t number[SAID_NUMBERS]);
/* All that is there is said; with `now_ns` (boot clock) only what lies in buckets that have ended.
 */
void sums_say(struct sums *s, int64_t now_ns);

#endif
