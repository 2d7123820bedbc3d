/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqtags: the single requests that --request selects, as the tags of their samples
 * (store_query.tags).
 *
 * --request selects an operation as `sonde requests` has it, or its method and path alone
 * ("GET /checkout", of any host). --slower-than is a time, or a quantile (p50 to p99.9) of the
 * latencies of all these requests, not only of the kept ones. Requests are kept as rows to a limit:
 * the slowest, those that failed, and a sample of the others. Go's threads switch between
 * goroutines unseen: of Go's requests those count whose goroutine is known.
 */
#ifndef SONDE_TOOLS_REQTAGS_H
#define SONDE_TOOLS_REQTAGS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/cli/options.h"
#include "schema/base/err.h"
#include "schema/base/idmap.h"
#include "tools/select/select.h"

#define REQTAGS_OPTIONS(type, request_field, slower_field)                                     \
	{"request",                                                                            \
	 0,                                                                                    \
	 OPTION_STRING,                                                                        \
	 "OPERATION",                                                                          \
	 "only what threads did in such requests: 'GET /checkout'; --slower-than 50ms or p99", \
	 offsetof(type, request_field)},                                                       \
	{                                                                                      \
		"slower-than", 0, OPTION_STRING, "TIME", NULL, offsetof(type, slower_field)    \
	}

struct reqtags {
	struct idmap tags;
	size_t n;              /* requests that were kept */
	size_t go, goroutines; /* those of programs in Go, and of these those that are in n */
	int64_t total_us;      /* what they took together */
	int64_t slower_us;     /* they took more; -1: no matter */
	int64_t most_us;       /* and not more than that; -1: no matter */
};

/* request NULL: `out` is empty. EXIT_USAGE, or EXIT_NOTHING if no request matches. Release in any
 * case. */
int reqtags_find(const struct selection *sel, const char *request, const char *slower,
		 struct reqtags *out, struct err *e);
/* --slower-than as a time in us; -1: NULL was given. */
int reqtags_slower(const struct selection *sel, const char *request, const char *slower,
		   int64_t *us, struct err *e);
/* As reqtags_find with a known `out->slower_us`, of these processes alone; none is no error. What
 * each took together is `each`'s sum: called for each with its key, its process and its time. */
int reqtags_of(const struct selection *sel, const char *request, const struct idmap *pids,
	       void (*each)(void *ctx, uint64_t key, uint32_t pid, int64_t total_us), void *ctx,
	       struct reqtags *out, struct err *e);
/* No request of that name is kept: the error that says so, and how many were counted. */
int reqtags_nothing(const struct reqtags *t, const struct selection *sel, const char *request,
		    struct err *e);
/* The others: those that took no longer than `than`'s slower_us. */
int reqtags_others(const struct selection *sel, const char *request, const struct reqtags *than,
		   struct reqtags *out, struct err *e);
void reqtags_release(struct reqtags *t);
/* Is this operation meant? */
bool reqtags_meant(const char *request, const char *operation);
/* "12 kept requests 'GET /checkout' slower than 50 ms: 1.2 s together"; 160 bytes are enough for
 * what is not the request. */
char *reqtags_text(const struct reqtags *t, const char *request);
/* The same to stderr, and that the answer says how much of that is in it. */
void reqtags_tell(const struct reqtags *t, const char *request);

#endif
