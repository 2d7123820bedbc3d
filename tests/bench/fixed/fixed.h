/* SPDX-License-Identifier: Apache-2.0 */
/* fixed: what the two kinds of fixed work share (fixed.c). */
#ifndef SONDE_TESTS_BENCH_FIXED_H
#define SONDE_TESTS_BENCH_FIXED_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/names/naming.h"
#include "schema/store/write/writer.h"

struct hostmaps;

/* The loader's end, without a connection: it is given packets. */
struct fixed {
	struct hostmaps *hm;
	struct store_writer *store;
	struct naming *naming;
	uint32_t run;
	uint64_t from_ns; /* boot clock */
};

/* A store in `folder`. Ends the program where it cannot be made. */
struct fixed fixed_open(const char *folder);
void fixed_close(struct fixed *f);

/* Both return an exit code, and say on stdout how much there was of what was counted. */
int fixed_processes(const char *folder, long n);
int fixed_samples(const char *folder, long n, const char *index, bool scripts);

#endif
