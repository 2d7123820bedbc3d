/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health: is a service far slower, or does it fail far more often, than in its last hour? Pure.
 *
 *   1. A service is what HEALTH_WINDOW_NS of requests that were answered here are compared for. Its
 *      hour is a sum of such windows that halves in half an hour, each window added after it was
 *      compared; it is known after HEALTH_KNOWN_NS and HEALTH_KNOWN requests.
 *   2. Slower: of at least HEALTH_LEAST answers the 99th percentile is HEALTH_TIMES that of the
 *      hour's HEALTH_KNOWN or more, and HEALTH_SLOWER_NS longer.
 *   3. Failing: at least HEALTH_FAILED failed, HEALTH_TIMES the share of the hour, and one in
 *      HEALTH_ONE_IN of all.
 *   4. Of each at most one line is written in HEALTH_AGAIN_NS. HEALTH_MOST services; of further
 * ones nothing is known.
 */
#ifndef SONDE_L7_HEALTH_H
#define SONDE_L7_HEALTH_H

#include <stddef.h>
#include <stdint.h>

#include "schema/store/model/hist.h"

#define HEALTH_MOST      64
#define HEALTH_WINDOW_NS (10ll * 1000000000)
#define HEALTH_HALF_NS   (1800ll * 1000000000)
#define HEALTH_KNOWN_NS  (600ll * 1000000000)
#define HEALTH_AGAIN_NS  (600ll * 1000000000)
#define HEALTH_SLOWER_NS 5000000
#define HEALTH_KNOWN     200
#define HEALTH_LEAST     20
#define HEALTH_FAILED    10
#define HEALTH_ONE_IN    20
#define HEALTH_TIMES     3

struct health_service {
	char name[128];
	uint64_t n, failed; /* of the window */
	uint32_t steps[HIST_STEPS];
	double usual_n, usual_failed, usual[HIST_STEPS];
	int64_t met_ns, slow_ns, failing_ns; /* slow_ns, failing_ns: last told; 0: never */
};

struct health {
	struct health_service *all[HEALTH_MOST];
	uint32_t n;
	int64_t begun_ns; /* of the window; 0: none yet */
};

void health_release(struct health *h);
/* `steps`: latencies of those that were answered, n_steps of them from first_step on. */
void health_add(struct health *h, const char *service, uint64_t n, uint64_t failed,
		const uint32_t *steps, size_t first_step, size_t n_steps, int64_t now_ns);
/* now_ns: any monotonic clock. `cause` says which service it is, `why` is a line for people. */
void health_due(struct health *h, int64_t now_ns,
		void (*tell)(void *ctx, const char *cause, const char *why), void *ctx);

#endif
