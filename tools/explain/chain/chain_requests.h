/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_requests: what was asked in two windows, by who, side, service and operation: how many
 * requests, how many failed, how long they took, and the same by bucket, for tests against noise.
 *
 *   1. Who is a container, or outside of containers a command.
 *   2. Streams and long polls (tools/requests/reqstream.h) are left out: their time says nothing.
 *   3. The mean latency of an operation changed if that of its buckets did (Welch's test of their
 *      logarithms, tools/diff/stats.h, p <= CHAIN_P), by CHAIN_RATIO and by CHAIN_LEAST_NS. Where
 *      it is CHAIN_PLAINLY times as long, the test takes buckets as independent: an incident that
 *      lasts is alike from bucket to bucket, too, and is no noise.
 *   4. Its failures changed if their share did (exact test of two counts, p <= CHAIN_P), doubled,
 *      and is CHAIN_FAILED or more, of CHAIN_FAILED_N failures or more.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_REQUESTS_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/idmap.h"
#include "schema/store/model/hist.h"
#include "tools/select/select.h"

#define CHAIN_P        0.01
#define CHAIN_RATIO    1.4
#define CHAIN_PLAINLY  2
#define CHAIN_LEAST_NS 1000000
#define CHAIN_FAILED   0.01
#define CHAIN_FAILED_N 3
#define CHAIN_STATUSES 6

struct chain_bucket {
	int64_t ts;
	uint64_t answered, total_ns;
};

struct chain_status {
	char *name;
	uint64_t failed;
};

struct chain_count { /* of one window */
	uint64_t n, failed, answered, total_ns;
	uint64_t queue_ns; /* in the socket's buffer, before the server read them */
	struct hist spread;
	struct chain_bucket *buckets; /* in any order; several of one ts are added when tested */
	size_t n_buckets, cap_buckets;
};

struct chain_op {
	char *who;
	bool container;      /* who is one; else a command */
	bool server, wanted; /* wanted: of the selection */
	uint32_t place;      /* the same number for all operations of that who */
	char *protocol, *service, *operation;
	struct chain_count w[2];                      /* DIFF_BEFORE, DIFF_AFTER */
	struct chain_status statuses[CHAIN_STATUSES]; /* of failures in the window */
	size_t n_statuses;
};

struct chain_requests {
	struct chain_op *ops;
	size_t n, cap;
	uint32_t n_places;
	struct idmap place_of;
	bool known[2];                /* family l7 was recorded in that window */
	double seconds[2];            /* of it with requests recorded */
	int64_t from_ns[2], to_ns[2]; /* of that */
};

/* `wide`: the whole host's selections of both windows; `narrow`: what `wanted` is of. Release in
 * any case. */
int chain_requests_read(struct selection *const wide[2], const struct selection *narrow,
			struct chain_requests *out, struct err *e);
void chain_requests_release(struct chain_requests *r);
/* The place of its operations; CHAIN_NOWHERE: it has none. */
#define CHAIN_NOWHERE UINT32_MAX
uint32_t chain_place_of(const struct chain_requests *r, const char *who, bool container);

/* The buckets of one window in order of time, each once, and the logarithm of the mean of each;
 * those in which nothing was answered are left out. Release it. */
struct chain_series {
	struct chain_bucket *sums;
	double *logs, mean_ns; /* mean_ns: of all */
	size_t n;
};
void chain_series_init(struct chain_series *s, const struct chain_count *c);
void chain_series_release(struct chain_series *s);

/* ns; 0: none was answered. */
double chain_mean(const struct chain_count *c);
/* What all its requests of the window took together more than as many took before, in seconds each
 * second; an operation that was not asked before: all that they took, with `fresh`. */
double chain_extra(const struct chain_requests *r, const struct chain_op *op, bool fresh);
/* Rule 3's p, of part of a window: of `n` buckets, whose mean is `mean_ns`. 1: not to be tested. */
double chain_p(const struct chain_series *before, const double *logs, size_t n, double mean_ns);
/* The same operation as its server saw it: of the same service, else of the same port if only one
 * has that. NULL: not recorded. */
const struct chain_op *chain_server_of(const struct chain_requests *r,
				       const struct chain_op *asked);

/*
 * For which statement a lock was held. Servers with a process for each connection (PostgreSQL) hold
 * locks of a transaction in the process that serves it: of the process `pid` of `who`, the request
 * that took longest in the window, but for those that only begin and end transactions; and who asks
 * such requests, where only one does.
 */
struct chain_holder {
	char *operation;   /* NULL: not known */
	const char *asker; /* borrowed from the requests; NULL: not known, or several */
};
/* Release it. */
void chain_holder_find(const struct selection *window, const struct chain_requests *r,
		       const char *who, bool container, uint32_t pid, struct chain_holder *out);
void chain_holder_release(struct chain_holder *h);

/* Rules 3 and 4. */
bool chain_is_slower(const struct chain_op *op);
bool chain_fails_more(const struct chain_op *op);

#endif
