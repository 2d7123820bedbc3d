/* SPDX-License-Identifier: Apache-2.0 */
/*
 * felt_span: in which part of a window requests were slower. A question about 13:17 names a
 * minute; the incident began in the middle of it, and what was fast before dilutes it.
 *
 *  1. Of each operation that the selection answered (else asked), the mean latency of each bucket
 *     of the window is compared with the mean of the time before. The part is the run of buckets
 *     whose logarithms are together the most above CHAIN_RATIO of it (Kadane's maximal sum); also
 *     above two and three times of it, as the time after an incident may be slow, too.
 *  2. It counts if its buckets, two or more, are slower than those of the time before by rule 3 of
 *     chain_requests.h, at CHAIN_P over three times the number of parts that the window has.
 *  3. Of several operations the one with the most added time counts.
 *  4. A part of FELT_SPAN_PART of the window or more is as good as the window: none is said.
 */
#ifndef SONDE_TOOLS_EXPLAIN_FELT_SPAN_H
#define SONDE_TOOLS_EXPLAIN_FELT_SPAN_H

#include <stdint.h>

#include "schema/base/err.h"
#include "tools/explain/chain/chain_requests.h"
#include "tools/select/select.h"

#define FELT_SPAN_PART 0.7

struct felt_span {
	int64_t from_ns, to_ns; /* half-open; both 0: all of the window, or nothing was felt */
	char *what;             /* "GET /cart of web"; NULL then */
};

/* Of the time before and the window, of whose requests it fills *read. Release both in any case. */
int felt_span_find(struct selection *const sel[2], struct felt_span *out,
		   struct chain_requests *read, struct err *e);
void felt_span_release(struct felt_span *s);

/* Of what was read; `step_ns`: how long a bucket is, `window_ns`: the window, as far
 * as it was recorded. */
void felt_span_of(const struct chain_requests *r, int64_t step_ns, int64_t window_ns,
		  struct felt_span *out);

#endif
