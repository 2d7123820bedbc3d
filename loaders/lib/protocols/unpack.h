/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack: compressed bytes of strangers, a piece at a time. What all connections unpack together is
 * bounded: UNPACK_RATE bytes in a second of the traffic's own time, UNPACK_OPEN unpackers at once,
 * and in zstd windows of at most UNPACK_WINDOW bytes.
 */
#ifndef SONDE_PROTOCOLS_UNPACK_H
#define SONDE_PROTOCOLS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNPACK_RATE       (64u << 20)
#define UNPACK_OPEN       64
#define UNPACK_WINDOW_LOG 21 /* of its usual levels */

struct unpack_budget {
	int64_t since_ns;
	uint64_t bytes; /* unpacked in the second that began then */
	uint32_t open;
};

enum unpack_how { UNPACK_ZLIB, UNPACK_ZSTD };

struct unpack;

/* NULL: too many are open. `budget` is borrowed until unpack_free. */
struct unpack *unpack_new(enum unpack_how how, struct unpack_budget *budget);
void unpack_free(struct unpack *u);
/* Calls `take` with what these bytes unpack to, at most *left bytes, of which it is subtracted;
 * what is packed behind that is ignored. false: they cannot be unpacked, the budget is used up, or
 * `take` returned false. now_ns: the traffic's time. */
bool unpack_feed(struct unpack *u, const uint8_t *p, size_t n, uint32_t *left, int64_t now_ns,
		 bool (*take)(void *ctx, const uint8_t *p, size_t n), void *ctx);

#endif
