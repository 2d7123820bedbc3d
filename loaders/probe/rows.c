/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/bpf/load/mapread.h"
#include "loaders/lib/bpf/run/who.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/probe/text.h"
#include "schema/base/clock.h"
#include "schema/base/idmap.h"
#include "schema/base/strbuf.h"
#include "schema/facts/probe.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/writer.h"

#define HELD_BYTES (16u << 20)
#define TRIES      3

_Static_assert((int)PROBE_STEPS == (int)PROBE_SLOTS, "one histogram");

void rows_init(struct rows *r)
{
	*r = (struct rows){0};
	hold_init(&r->held, HELD_BYTES);
}

void rows_release(struct rows *r)
{
	hold_release(&r->held);
}

void rows_hold(struct rows *r, const struct probe_event *ev, size_t size)
{
	if (hold_push(&r->held, ev, size))
		r->lost[ev->index]++;
}

/* ---- sums ---- */

static uint64_t sum_weight(const void *value)
{
	return ((const struct probe_sum *)value)->hits;
}

static void sum_put(struct family_host *h, int64_t utc_ns, const struct probespec *s,
		    const struct probe_key *key, const struct probe_sum *sum, bool named)
{
	static const struct who_id no_one;
	struct who who = who_find(h, named ? &key->who : &no_one, NULL);
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	struct fact_row row = {0};

	if (named && key->who.tgid && !who_covered(h, &who))
		return;
	if (!named || !key->who.tgid)
		strbuf_addstr(&text, ROWS_OTHER);
	else if (!who.excluded)
		text_key(s, key, &text);
	fact_put_text(&row, PROBE_SUM_NAME, s->name);
	fact_put_text(&row, PROBE_SUM_KEY, strbuf_str(&text));
	fact_put(&row, PROBE_SUM_HITS, sum->hits);
	if (probespec_has_error(s))
		fact_put(&row, PROBE_SUM_ERRORS, sum->errors);
	if (probespec_has_ns(s))
		fact_put(&row, PROBE_SUM_NS, sum->ns);
	if (*s->sum.name && sum->sum >= 0)
		fact_put(&row, PROBE_SUM_SUM, (uint64_t)sum->sum);
	for (int i = 0; i < PROBE_SLOTS; i++)
		if (sum->hist[i])
			fact_put(&row, PROBE_SUM_T0 + i, sum->hist[i]);
	who_put(h, utc_ns, &PROBE_SUM_FACT, &row, &who, PROBE_SUM_PROCESS, PROBE_SUM_CONTAINER);
}

/* How many hit it at a time, for the recording's summary. */
static void processes_count(struct family_host *h, const struct taken *t)
{
	struct idmap seen = {0};

	for (size_t i = 0; i < t->n; i++)
		idmap_set(&seen, ((const struct probe_key *)taken_key(t, i))->who.tgid, 1);
	h->processes = seen.n > h->processes ? seen.n : h->processes;
	idmap_release(&seen);
}

static void sums_store(const struct hook *k, struct family_host *h, uint32_t epoch, int64_t utc_ns)
{
	struct taken t = {.key_size = sizeof(struct probe_key),
			  .value_size = sizeof(struct probe_sum),
			  .epoch_at = offsetof(struct probe_key, epoch),
			  .epoch = epoch,
			  .weight = sum_weight};

	static const struct probe_key no_one;
	const size_t most = h->bucket_s >= FAMILY_ALWAYS_S ? ROWS_ALWAYS : ROWS_MOST;
	struct probe_sum rest;

	taken_take(&t, hook_sums_fd(k));
	processes_count(h, &t);
	for (size_t i = 0; i < t.n; i++)
		sum_put(h, utc_ns, &k->asked->spec, taken_key(&t, i), taken_value(&t, i), i < most);
	taken_release(&t);
	hook_rest(k, epoch, &rest);
	if (rest.hits)
		sum_put(h, utc_ns, &k->asked->spec, &no_one, &rest, false);
}

/* ---- single hits ---- */

static void event_put(struct rows *r, const struct hooks *k, struct family_host *h,
		      const struct probe_event *ev)
{
	const struct probespec *s = &k->v[ev->index].asked->spec;
	struct who who = who_find(h, &ev->who, ev->comm);
	int64_t utc = family_utc(h, (int64_t)ev->time_ns);
	struct strbuf args cleanup_strbuf = STRBUF_INIT;
	char thread[PROBE_COMM + 1];
	struct fact_row row = {0};

	if (!who_covered(h, &who))
		return;
	snprintf(thread, sizeof(thread), "%.*s", PROBE_COMM, who.excluded ? "" : ev->comm);
	if (who.excluded)
		strbuf_addstr(&args, "{}");
	else
		text_args(s, ev, &args);
	fact_put_text(&row, PROBE_EVENT_NAME, s->name);
	fact_put(&row, PROBE_EVENT_TID, who.excluded ? 0 : ev->tid);
	fact_put(&row, PROBE_EVENT_IN, (uint64_t)(utc % (h->bucket_s * NSEC_PER_SEC)));
	fact_put_text(&row, PROBE_EVENT_THREAD, thread);
	fact_put_text(&row, PROBE_EVENT_ARGS, strbuf_str(&args));
	if (ev->flags & PROBE_F_ENDS)
		fact_put(&row, PROBE_EVENT_NS, ev->ns);
	fact_put(&row, PROBE_EVENT_WEIGHT, ev->weight);
	who_put(h, utc, &PROBE_EVENT_FACT, &row, &who, PROBE_EVENT_PROCESS, PROBE_EVENT_CONTAINER);
	r->events[ev->index]++;
}

static void events_store(struct rows *r, const struct hooks *k, struct family_host *h,
			 int64_t until_ns)
{
	const struct probe_event *ev;
	size_t size;

	while ((ev = hold_peek(&r->held, &size))) {
		if (until_ns && (int64_t)ev->time_ns > until_ns)
			return;
		event_put(r, k, h, ev);
		hold_pop(&r->held);
	}
}

/* ---- probes ---- */

static uint64_t lost_of(const struct rows *r, size_t i, const struct hook *k,
			const struct probe_counts *c)
{
	return r->lost[i] + c->ring_full + c->busy + hook_missed(k);
}

static void probe_put(struct rows *r, size_t i, const struct hook *k, struct family_host *h,
		      int64_t utc_ns, int64_t off_ns)
{
	const struct probespec *s = &k->asked->spec;
	struct strbuf shape cleanup_strbuf = STRBUF_INIT;
	struct probe_counts now, *was = &r->told[i];
	struct fact_row row = {0};
	uint64_t lost;
	int rc = -ESTALE;

	hook_counts(k, &now);
	lost = lost_of(r, i, k, &now);
	text_shape(s, &shape);
	fact_put_text(&row, PROBE_NAME, s->name);
	fact_put_text(&row, PROBE_SPEC, s->text);
	fact_put_text(&row, PROBE_SHAPE, strbuf_str(&shape));
	fact_put(&row, PROBE_HITS, now.hits - was->hits);
	fact_put(&row, PROBE_EVENTS, r->events[i]);
	fact_put(&row, PROBE_RUNS, now.runs - was->runs);
	fact_put(&row, PROBE_LOST, lost - r->told_lost[i]);
	fact_put(&row, PROBE_UNPAIRED,
		 now.unpaired + now.unfollowed - was->unpaired - was->unfollowed);
	fact_put(&row, PROBE_OFF, (uint64_t)off_ns / 1000);
	for (int n = 0; n < TRIES && rc == -ESTALE; n++)
		rc = store_fact(h->store, h->run, utc_ns, &PROBE_FACT, &row);
	h->added += rc == 0;
	h->refused += rc == -ESTALE;
	*was = now;
	r->told_lost[i] = lost;
	r->events[i] = 0;
}

void rows_store(struct rows *r, const struct hooks *k, struct family_host *h, uint32_t epoch,
		int64_t utc_ns, int64_t until_ns, const int64_t off_ns[ASKED_MOST])
{
	events_store(r, k, h, until_ns);
	for (size_t i = 0; i < k->n; i++) {
		sums_store(&k->v[i], h, epoch, utc_ns);
		probe_put(r, i, &k->v[i], h, utc_ns, off_ns[i]);
	}
}

/* ---- stacks ---- */

static int stack_put(struct family_host *h, const struct stack_event *ev, const char *labels,
		     enum store_kind kind, const struct store_amount *a,
		     struct naming_result *named)
{
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid = ev->tid, series;

	naming_stack(h->naming, ev, (const uint64_t *)(ev + 1), named);
	naming_thread(named, ev->thread, thread, &tid);
	if (h->bucket_s >= FAMILY_ALWAYS_S && tid != ev->tgid)
		tid = 0;
	series = store_series_told(h->store, h->run, named->process, thread, tid, named->stack,
				   kind, 0, labels);
	return store_amount(h->store, series, family_utc(h, (int64_t)ev->time_ns), a);
}

static void stack_add(struct family_host *h, const struct stack_event *ev, const char *labels,
		      enum store_kind kind, const struct store_amount *a,
		      struct naming_result *named)
{
	int rc = -ESTALE;

	for (int i = 0; i < TRIES && rc == -ESTALE; i++)
		rc = stack_put(h, ev, labels, kind, a, named);
	if (rc)
		h->refused += a->n;
	else
		h->added += a->n;
}

/* Of what is drawn with weight w and is `value` each; what is more than the store has is its most.
 */
static uint64_t variance_of(uint64_t w, uint64_t value)
{
	const double v = (double)w * (double)(w - 1) * (double)value * (double)value;

	return v < 0x1p62 ? (uint64_t)v : 1ull << 62;
}

void rows_stack(const struct hooks *k, struct family_host *h, const struct stack_event *ev,
		struct naming_result *named)
{
	uint32_t index = PROBE_TAG_INDEX(ev->tag);
	uint64_t w = PROBE_TAG_WEIGHT(ev->tag), ns = PROBE_TAG_NS(ev->tag), us = ns / 1000;
	const struct store_amount n = {.n = w,
				       .value = w,
				       .n_variance = variance_of(w, 1),
				       .value_variance = variance_of(w, 1)};
	const struct store_amount time = {.n = w,
					  .value = w * ns,
					  .max = ns,
					  .n_variance = variance_of(w, 1),
					  .value_variance = variance_of(w, us)};
	char labels[PROBESPEC_NAME + 16];

	if (index >= k->n || !w)
		return;
	snprintf(labels, sizeof(labels), "{\"probe\":\"%s\"}", k->v[index].asked->spec.name);
	stack_add(h, ev, labels, STORE_KIND_PROBE, &n, named);
	if (k->v[index].asked->plan.ends)
		stack_add(h, ev, labels, STORE_KIND_PROBETIME, &time, named);
}

uint64_t rows_stack_amount(const struct hooks *k, const struct stack_event *ev)
{
	uint32_t index = PROBE_TAG_INDEX(ev->tag);

	return index < k->n ? (uint64_t)PROBE_TAG_WEIGHT(ev->tag) << k->v[index].asked->plan.ends :
			      0;
}
