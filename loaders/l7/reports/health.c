/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/reports/health.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define MS 1e6

void health_release(struct health *h)
{
	for (uint32_t i = 0; i < h->n; i++)
		free(h->all[i]);
	*h = (struct health){0};
}

static struct health_service *service_of(struct health *h, const char *name, int64_t now_ns)
{
	struct health_service *s;

	for (uint32_t i = 0; i < h->n; i++)
		if (!strncmp(h->all[i]->name, name, sizeof(h->all[i]->name) - 1))
			return h->all[i];
	if (h->n == HEALTH_MOST)
		return NULL;
	s = h->all[h->n++] = mem_alloc(sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->met_ns = now_ns;
	return s;
}

void health_add(struct health *h, const char *service, uint64_t n, uint64_t failed,
		const uint32_t *steps, size_t first_step, size_t n_steps, int64_t now_ns)
{
	struct health_service *s = service_of(h, service, now_ns);

	if (!h->begun_ns)
		h->begun_ns = now_ns;
	if (!s)
		return;
	s->n += n;
	s->failed += failed;
	for (size_t i = 0; i < n_steps && first_step + i < HIST_STEPS; i++)
		s->steps[first_step + i] += steps[i];
}

/* The middle of a step (hist.h, rule 1). */
static double step_value(unsigned k)
{
	return k < 16 ? k : ldexp(8.5 + k % 8, (int)(k / 8) - 1);
}

static double answered(const double steps[HIST_STEPS])
{
	double sum = 0;

	for (unsigned i = 0; i < HIST_STEPS; i++)
		sum += steps[i];
	return sum;
}

static double p99(const double steps[HIST_STEPS])
{
	const double sum = answered(steps);
	double seen = 0;
	unsigned k = 0;

	while (k < HIST_STEPS - 1 && (seen += steps[k]) < sum * 0.99)
		k++;
	return step_value(k);
}

static int may_tell(int64_t *last_ns, int64_t now_ns)
{
	int tell = !*last_ns || now_ns - *last_ns >= HEALTH_AGAIN_NS;

	if (tell)
		*last_ns = now_ns;
	return tell;
}

static void compare(struct health_service *s, int64_t now_ns,
		    void (*tell)(void *ctx, const char *cause, const char *why), void *ctx)
{
	double now[HIST_STEPS], slow, usual, share = (double)s->failed / (double)s->n,
					     before = s->usual_failed / s->usual_n;
	char why[256], cause[160];

	for (unsigned i = 0; i < HIST_STEPS; i++)
		now[i] = s->steps[i];
	slow = p99(now);
	usual = p99(s->usual);
	if (answered(now) >= HEALTH_LEAST && answered(s->usual) >= HEALTH_KNOWN &&
	    slow >= HEALTH_TIMES * usual && slow - usual >= HEALTH_SLOWER_NS &&
	    may_tell(&s->slow_ns, now_ns)) {
		snprintf(why, sizeof(why), "%s is slow: p99 %.4g ms, in its last hour %.4g ms",
			 s->name, slow / MS, usual / MS);
		snprintf(cause, sizeof(cause), "slow service %s", s->name);
		tell(ctx, cause, why);
	}
	if (s->failed >= HEALTH_FAILED && share >= HEALTH_TIMES * before &&
	    share * HEALTH_ONE_IN >= 1 && may_tell(&s->failing_ns, now_ns)) {
		snprintf(why, sizeof(why),
			 "%s fails: %llu of %llu requests, in its last hour %.2g %%", s->name,
			 (unsigned long long)s->failed, (unsigned long long)s->n, 100 * before);
		snprintf(cause, sizeof(cause), "failing service %s", s->name);
		tell(ctx, cause, why);
	}
}

static void forget(struct health_service *s, double keep)
{
	for (unsigned i = 0; i < HIST_STEPS; i++)
		s->usual[i] = s->usual[i] * keep + s->steps[i];
	s->usual_n = s->usual_n * keep + (double)s->n;
	s->usual_failed = s->usual_failed * keep + (double)s->failed;
	memset(s->steps, 0, sizeof(s->steps));
	s->n = s->failed = 0;
}

void health_due(struct health *h, int64_t now_ns,
		void (*tell)(void *ctx, const char *cause, const char *why), void *ctx)
{
	int64_t wide = now_ns - h->begun_ns;

	if (!h->begun_ns || wide < HEALTH_WINDOW_NS)
		return;
	for (uint32_t i = 0; i < h->n; i++) {
		struct health_service *s = h->all[i];

		if (s->n && s->usual_n >= HEALTH_KNOWN && now_ns - s->met_ns >= HEALTH_KNOWN_NS)
			compare(s, now_ns, tell, ctx);
		forget(s, exp2(-(double)wide / HEALTH_HALF_NS));
	}
	h->begun_ns = now_ns;
}
