/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/felt_span.h"

#include <math.h>
#include <stdlib.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/diff/diff.h"

struct part { /* buckets [from, to) of the window */
	size_t from, to;
	double added_ns;
};

/* Times the mean before: what follows an incident may be slow, too, and blurs it. */
static const double LEVELS[] = {CHAIN_RATIO, 2, 3};
#define N_LEVELS ARRAY_SIZE(LEVELS)

/* The part that is the most above `level`. */
static struct part most_above(const double *x, size_t n, double level)
{
	struct part best = {0};
	double sum = 0, most = 0;
	size_t from = 0;

	for (size_t i = 0; i < n; i++) {
		if (sum <= 0) {
			sum = 0;
			from = i;
		}
		sum += x[i] - level;
		if (sum <= most)
			continue;
		most = sum;
		best = (struct part){.from = from, .to = i + 1};
	}
	return best;
}

/* Rule 2. */
static bool counts(const struct chain_series *before, const struct chain_series *window,
		   struct part *p)
{
	const double parts = N_LEVELS * (double)window->n * (double)(window->n + 1) / 2;
	double ns = 0, n = 0, mean;

	if (p->to - p->from < 2)
		return false;
	for (size_t i = p->from; i < p->to; i++) {
		ns += (double)window->sums[i].total_ns;
		n += (double)window->sums[i].answered;
	}
	mean = ns / n;
	p->added_ns = ns - before->mean_ns * n;
	if (n < 3 || mean < CHAIN_RATIO * before->mean_ns ||
	    mean - before->mean_ns < CHAIN_LEAST_NS)
		return false;
	return parts * chain_p(before, window->logs + p->from, p->to - p->from, mean) <= CHAIN_P;
}

/* Of one operation; added_ns 0: none. */
static struct part part_of(const struct chain_op *op, struct chain_series *window)
{
	struct chain_series before;
	struct part best = {0};

	chain_series_init(&before, &op->w[DIFF_BEFORE]);
	chain_series_init(window, &op->w[DIFF_AFTER]);
	for (size_t i = 0; before.n && window->n && i < N_LEVELS; i++) {
		struct part p =
			most_above(window->logs, window->n, log(LEVELS[i] * before.mean_ns + 1));

		if (counts(&before, window, &p) && p.added_ns > best.added_ns)
			best = p;
	}
	chain_series_release(&before);
	return best;
}

static bool answers(const struct chain_requests *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->ops[i].wanted && r->ops[i].server)
			return true;
	return false;
}

static char *said(const struct chain_op *op)
{
	struct strbuf s = STRBUF_INIT;

	strbuf_addf(&s, "%s of %s", op->operation, op->who);
	return strbuf_take(&s);
}

void felt_span_of(const struct chain_requests *r, int64_t step_ns, int64_t window_ns,
		  struct felt_span *out)
{
	const bool server = answers(r);
	const struct chain_op *best = NULL;
	double most = 0;

	*out = (struct felt_span){0};
	for (size_t i = 0; i < r->n; i++) {
		const struct chain_op *op = &r->ops[i];
		struct chain_series window;
		struct part p;

		if (!op->wanted || op->server != server)
			continue;
		p = part_of(op, &window);
		if (p.added_ns > most) {
			most = p.added_ns;
			best = op;
			out->from_ns = window.sums[p.from].ts * NSEC_PER_SEC;
			out->to_ns = window.sums[p.to - 1].ts * NSEC_PER_SEC + step_ns;
		}
		chain_series_release(&window);
	}
	if (!best)
		return;
	if ((double)(out->to_ns - out->from_ns) >= FELT_SPAN_PART * (double)window_ns)
		*out = (struct felt_span){0};
	else
		out->what = said(best);
}

/* The least time between two buckets of any operation. */
static int64_t step_of(const struct chain_requests *r)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < r->n; i++)
		for (int w = 0; w < 2; w++) {
			struct chain_series s;

			chain_series_init(&s, &r->ops[i].w[w]);
			for (size_t k = 1; k < s.n; k++)
				if (s.sums[k].ts - s.sums[k - 1].ts < least)
					least = s.sums[k].ts - s.sums[k - 1].ts;
			chain_series_release(&s);
		}
	return least == INT64_MAX ? NSEC_PER_SEC : least * NSEC_PER_SEC;
}

/* How much of the window was recorded: its buckets, and at each end a part of one. */
static int64_t recorded_ns(const struct chain_requests *r, int64_t step_ns, int64_t window_ns)
{
	const int64_t most = (int64_t)(r->seconds[DIFF_AFTER] * NSEC_PER_SEC) + 2 * step_ns;

	return most < window_ns ? most : window_ns;
}

int felt_span_find(struct selection *const sel[2], struct felt_span *out,
		   struct chain_requests *read, struct err *e)
{
	const int64_t from_ns = sel[DIFF_AFTER]->from_ns, to_ns = sel[DIFF_AFTER]->to_ns;
	int rc = chain_requests_read(sel, sel[DIFF_AFTER], read, e);

	*out = (struct felt_span){0};
	if (!rc && read->known[DIFF_BEFORE] && read->known[DIFF_AFTER])
		felt_span_of(read, step_of(read), recorded_ns(read, step_of(read), to_ns - from_ns),
			     out);
	if (out->what) {
		out->from_ns = out->from_ns < from_ns ? from_ns : out->from_ns;
		out->to_ns = out->to_ns > to_ns ? to_ns : out->to_ns;
	}
	return rc;
}

void felt_span_release(struct felt_span *s)
{
	free(s->what);
	*s = (struct felt_span){0};
}
