/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/rest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/mapread.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/log.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/writer.h"

#define POWER_LEAST 2 /* the least power of two that the store tells apart, [4, 8) ns */

static uint32_t process_of(struct family_host *h)
{
	const struct stack_event ev = {.thread = REST_COMM};
	struct naming_result named;

	naming_brief(h->naming, &ev, &named);
	return named.process;
}

static void books(struct family_host *h, int err, uint64_t n)
{
	if (err)
		h->refused += n;
	else
		h->added += n;
}

static void stackless_put(struct family_host *h, int64_t utc_ns, const struct store_wait *x)
{
	const struct store_amount a = {.n = x->n,
				       .value = x->total_ns,
				       .max = x->max_ns,
				       .hist = x->hist,
				       .n_hist = x->n_hist,
				       .first_slot = x->first_slot};
	enum store_kind kind =
		x->class < STORE_READY_WOKEN ? STORE_KIND_OFFCPU : STORE_KIND_RUNQUEUE;
	int err = -ESTALE;

	for (int i = 0; i < 3 && err == -ESTALE; i++)
		err = store_amount(h->store,
				   store_series_labelled(h->store, h->run, process_of(h), REST_COMM,
							 0, 0, kind, x->class),
				   utc_ns, &a);
	books(h, err, x->n);
}

void rest_put(struct rest *r, struct family_host *h, int64_t utc_ns, const struct store_wait *x)
{
	int err = -ESTALE;

	if (!r->said)
		log_warn(
			"offcpu: more threads came and went than there is room for: what some of them did is stored together, as that of " REST_COMM);
	r->said = true;
	for (int i = 0; i < 3 && err == -ESTALE; i++)
		err = store_wait(h->store,
				 store_task(h->store, h->run, process_of(h), REST_COMM, 0), utc_ns,
				 x);
	books(h, err, x->n);
	if (r->at_end && x->class < STORE_RUNNING)
		stackless_put(h, utc_ns, x);
}

static void class_put(struct rest *r, struct family_host *h, int64_t utc_ns, uint32_t class,
		      const struct offcpu_rest *now)
{
	struct offcpu_rest *seen = &r->seen[class];
	uint32_t hist[HIST_FINE] = {0};
	struct store_wait x = {.class = (enum store_wait_class) class,
			       .n = now->n - seen->n,
			       .total_ns = now->total_ns - seen->total_ns,
			       .first_slot = POWER_LEAST};

	if (!x.n)
		return;
	for (uint32_t p = 0; p < HIST_FINE && p < OFFCPU_POWERS; p++)
		hist[p < POWER_LEAST ? POWER_LEAST : p] +=
			(uint32_t)(now->power[p] - seen->power[p]);
	x.hist = hist + POWER_LEAST;
	x.n_hist = HIST_FINE - POWER_LEAST;
	while (x.n_hist > 1 && !x.hist[x.n_hist - 1])
		x.n_hist--;
	*seen = *now;
	rest_put(r, h, utc_ns, &x);
}

void rest_read(struct rest *r, struct family_host *h, int64_t utc_ns)
{
	bool any = mapread_made(r->made);

	for (uint32_t class = 0; any && class < OFFCPU_RESTS; class ++) {
		struct offcpu_rest now = {0};

		percpu_sum_at(r->fd, class, &now, sizeof(now));
		class_put(r, h, utc_ns, class, &now);
	}
}
