/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lateargs: the command lines of programs that have ended or executed another one, as the kernel
 * had them, for clients that store such a program after its end. Masking a command line takes
 * longer than everything else about a short process, and most short processes are never stored: so
 * it waits until a client asks.
 */
#ifndef SONDE_MAPS_LATEARGS_H
#define SONDE_MAPS_LATEARGS_H

#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

/* a sample waits 30 s for its rows, at most, and is stored then */
#define LATEARGS_KEEP_NS   40000000000ull
#define LATEARGS_MAX_BYTES (4u << 20)

struct lateargs_key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct lateargs_line;

/* Zeroed: empty. */
struct lateargs {
	struct lateargs_line *by_key, *oldest, *newest;
	size_t bytes;
};

/* Takes `data` (from malloc). The oldest make room. */
void lateargs_keep(struct lateargs *l, const struct lateargs_key *key, char *data, size_t len,
		   uint64_t now_ns);
/* Borrowed until the next call that changes `l`; NULL: not there. */
const char *lateargs_find(const struct lateargs *l, const struct lateargs_key *key, size_t *len);
void lateargs_tick(struct lateargs *l, uint64_t now_ns);
void lateargs_release(struct lateargs *l);

#endif
