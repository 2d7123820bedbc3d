/* SPDX-License-Identifier: Apache-2.0 */
/* tally: see the header. Rows in a hash table by what they are of. */
#include "loaders/replay/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define PART_BITS 5
#define PARTS     (1u << PART_BITS)
#define STEPS     ((64 - PART_BITS + 1) * PARTS)

struct tally {
	struct tally_row **rows;
	char **owned; /* names that were made when rows were folded */
	size_t n, cap, n_owned, cap_owned;
	uint32_t *slots; /* index + 1 */
	size_t n_slots;
};

struct tally *tally_new(void)
{
	struct tally *t = mem_alloc(sizeof(*t));

	t->n_slots = 1024;
	t->slots = mem_array(t->n_slots, sizeof(*t->slots));
	return t;
}

static void row_free(struct tally_row *r)
{
	free(r->steps);
	free(r);
}

void tally_free(struct tally *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		row_free(t->rows[i]);
	for (size_t i = 0; i < t->n_owned; i++)
		free(t->owned[i]);
	free(t->rows);
	free(t->owned);
	free(t->slots);
	free(t);
}

static size_t step_of(uint64_t v)
{
	int bits = v ? 64 - __builtin_clzll(v) : 0;
	int shift = bits > PART_BITS + 1 ? bits - PART_BITS - 1 : 0;

	return (size_t)shift * PARTS + (size_t)(v >> shift);
}

static uint64_t step_middle(size_t step)
{
	size_t shift = step < 2 * PARTS ? 0 : step / PARTS - 1;
	uint64_t low = (uint64_t)(step - shift * PARTS) << shift;

	return low + (shift ? (1ull << shift) / 2 : 0);
}

static uint64_t key_of(const char *protocol, const char *service, const char *operation)
{
	return hash_str(hash_str(hash_str(HASH_SEED, protocol), service), operation);
}

static size_t find(const struct tally *t, const char *protocol, const char *service,
		   const char *operation)
{
	size_t i = key_of(protocol, service, operation) & (t->n_slots - 1);

	for (; t->slots[i]; i = (i + 1) & (t->n_slots - 1)) {
		const struct tally_row *r = t->rows[t->slots[i] - 1];

		if (!strcmp(r->operation, operation) && !strcmp(r->service, service) &&
		    !strcmp(r->protocol, protocol))
			break;
	}
	return i;
}

static void rehash(struct tally *t, size_t n_slots)
{
	free(t->slots);
	t->n_slots = n_slots;
	t->slots = mem_array(n_slots, sizeof(*t->slots));
	for (size_t i = 0; i < t->n; i++)
		t->slots[find(t, t->rows[i]->protocol, t->rows[i]->service,
			      t->rows[i]->operation)] = (uint32_t)i + 1;
}

static struct tally_row *row(struct tally *t, const char *protocol, const char *service,
			     const char *operation)
{
	size_t i = find(t, protocol, service, operation);
	struct tally_row *r;

	if (t->slots[i])
		return t->rows[t->slots[i] - 1];
	mem_grow(t->rows, t->n, t->cap);
	r = t->rows[t->n] = mem_alloc(sizeof(*r));
	t->slots[i] = (uint32_t)++t->n;
	r->protocol = protocol;
	r->operation = operation;
	snprintf(r->service, sizeof(r->service), "%s", service);
	if (t->n * 2 > t->n_slots)
		rehash(t, t->n_slots * 2);
	return r;
}

static void add_status(struct tally_row *r, const char *text, uint64_t n)
{
	size_t i = 0;

	if (!*text)
		return;
	while (i < r->n_statuses && strcmp(r->statuses[i].text, text))
		i++;
	if (i == ARRAY_SIZE(r->statuses))
		return;
	if (i == r->n_statuses)
		snprintf(r->statuses[r->n_statuses++].text, sizeof(r->statuses[i].text), "%s",
			 text);
	r->statuses[i].n += n;
}

static void add_latency(struct tally_row *r, uint64_t ns)
{
	if (!r->steps)
		r->steps = mem_array(STEPS, sizeof(*r->steps));
	r->steps[step_of(ns)]++;
	r->n_latencies++;
	r->sum_ns += ns;
	r->max_ns = ns > r->max_ns ? ns : r->max_ns;
}

void tally_add(struct tally *t, const struct proto_request *q, const char *service)
{
	struct tally_row *r = row(t, q->protocol, service, q->operation);
	int64_t end = q->end_ns ? q->end_ns : q->sent_ns;

	if (!r->count || q->begin_ns < r->from_ns)
		r->from_ns = q->begin_ns;
	r->to_ns = end > r->to_ns ? end : r->to_ns;
	r->count++;
	r->by_result[q->result]++;
	r->request_bytes += q->request_bytes;
	r->response_bytes += q->response_bytes;
	add_status(r, q->status, 1);
	if (q->result == PROTO_OK || q->result == PROTO_ERROR)
		add_latency(r, q->end_ns > q->begin_ns ? (uint64_t)(q->end_ns - q->begin_ns) : 0);
}

static void merge(struct tally_row *to, const struct tally_row *from)
{
	to->from_ns = from->from_ns < to->from_ns ? from->from_ns : to->from_ns;
	to->to_ns = from->to_ns > to->to_ns ? from->to_ns : to->to_ns;
	to->count += from->count;
	for (int i = 0; i < PROTO_RESULTS; i++)
		to->by_result[i] += from->by_result[i];
	to->n_latencies += from->n_latencies;
	to->sum_ns += from->sum_ns;
	to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
	to->request_bytes += from->request_bytes;
	to->response_bytes += from->response_bytes;
	for (size_t i = 0; i < from->n_statuses; i++)
		add_status(to, from->statuses[i].text, from->statuses[i].n);
	if (from->steps && !to->steps)
		to->steps = mem_array(STEPS, sizeof(*to->steps));
	for (size_t i = 0; from->steps && i < STEPS; i++)
		to->steps[i] += from->steps[i];
}

static int more_time(const void *a, const void *b)
{
	const struct tally_row *x = *(struct tally_row *const *)a,
			       *y = *(struct tally_row *const *)b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns < y->sum_ns ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->operation, y->operation);
}

struct tally_row **tally_rows(struct tally *t, struct protocols *s, size_t *n)
{
	size_t before = t->n;
	struct tally_row **old = t->rows;

	t->rows = NULL;
	t->n = t->cap = 0;
	rehash(t, t->n_slots);
	for (size_t i = 0; i < before; i++) {
		const char *now = protocols_operation_now(s, old[i]->operation, old[i]->protocol,
							  proto_service_port(old[i]->service));
		size_t at = find(t, old[i]->protocol, old[i]->service, now);

		if (t->slots[at]) {
			merge(t->rows[t->slots[at] - 1], old[i]);
			row_free(old[i]);
			continue;
		}
		if (strcmp(now, old[i]->operation)) {
			mem_grow(t->owned, t->n_owned, t->cap_owned);
			now = t->owned[t->n_owned++] = mem_strdup(now);
			old[i]->operation = now;
		}
		mem_grow(t->rows, t->n, t->cap);
		t->rows[t->n] = old[i];
		t->slots[at] = (uint32_t)++t->n;
	}
	free(old);
	qsort(t->rows, t->n, sizeof(*t->rows), more_time);
	rehash(t, t->n_slots);
	*n = t->n;
	return t->rows;
}

uint64_t tally_quantile(const struct tally_row *r, double q)
{
	uint64_t rank = (uint64_t)(q * (double)r->n_latencies + 0.9999999), seen = 0;

	if (!r->n_latencies)
		return 0;
	rank = rank ? rank : 1;
	for (size_t i = 0; i < STEPS; i++) {
		seen += r->steps[i];
		if (seen >= rank)
			return step_middle(i) < r->max_ns ? step_middle(i) : r->max_ns;
	}
	return r->max_ns;
}
