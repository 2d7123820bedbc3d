// SPDX-License-Identifier: Apache-2.0
#include "loaders/l7/sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/requests.h"

#define SLOTS (2 * SUMS_ROWS)
#define SERVICE_MAX 128

struct row {
	int64_t bucket;           /* seconds, utc */
	struct said_who who;
	const char *protocol, *operation; /* the protocols' */
	char service[SERVICE_MAX], status[PROTO_STATUS_MAX];
	uint8_t side, result;
	uint64_t number[SAID_NUMBERS];
	uint32_t *steps;          /* NULL while there is none */
};

struct single {
	struct row row;           /* number: as of SAID_SINGLE */
	char trace[64];
	uint8_t why;
};

struct bytes {
	int64_t bucket;
	struct said_who who;
	uint8_t side;
	const char *protocol;
	char service[SERVICE_MAX];
	uint64_t number[SAID_NUMBERS];
};

struct sums {
	struct protocols *protocols;
	struct saying *to;
	int64_t bucket_s, offset_ns, singles_bucket;
	struct row rows[SUMS_ROWS];
	struct bytes bytes[SUMS_BYTES];
	uint32_t n, n_bytes, slots[SLOTS], byte_slots[2 * SUMS_BYTES]; /* index + 1 */
	struct single failed[SUMS_FAILED], slow[SUMS_SLOW], sample[SUMS_SAMPLE];
	uint32_t n_failed, n_slow, n_sample;
	uint64_t others;          /* that the sample stands for */
	uint64_t random;
};

struct sums *sums_new(struct protocols *p, struct saying *to, uint32_t bucket_s, int64_t offset_ns)
{
	struct sums *s = mem_alloc(sizeof(*s));

	s->protocols = p;
	s->to = to;
	s->bucket_s = bucket_s;
	s->offset_ns = offset_ns;
	s->random = 0x2545f4914f6cdd1dull;
	return s;
}

void sums_free(struct sums *s)
{
	for (uint32_t i = 0; s && i < s->n; i++)
		free(s->rows[i].steps);
	free(s);
}

void sums_clock(struct sums *s, int64_t offset_ns)
{
	s->offset_ns = offset_ns;
}

static int64_t bucket_of(const struct sums *s, int64_t boot_ns)
{
	int64_t second = (boot_ns + s->offset_ns) / NSEC_PER_SEC;

	return second - second % s->bucket_s;
}

/* ---- saying ---- */

static void say(struct sums *s, uint8_t what, const struct row *r, uint8_t why, const char *trace)
{
	struct said x = {.what = what, .side = r->side, .result = r->result, .why = why, .who = r->who, .utc_ns = r->bucket * NSEC_PER_SEC};
	const char *text[SAID_TEXTS] = {r->protocol, r->service, protocols_operation_now(s->protocols, r->operation, r->protocol), r->status, trace};
	uint32_t first = 0, last = STORE_LATENCY_STEPS;

	memcpy(x.number, r->number, sizeof(x.number));
	if (r->steps) {
		while (first < last && !r->steps[first])
			first++;
		while (last > first && !r->steps[last - 1])
			last--;
		x.first_step = (uint16_t)first;
		x.n_steps = (uint16_t)(last - first);
	}
	saying_add(s->to, &x, text, x.n_steps ? r->steps + first : NULL);
}

static void say_rows(struct sums *s, int64_t before)
{
	uint32_t kept = 0;

	memset(s->slots, 0, sizeof(s->slots));
	for (uint32_t i = 0; i < s->n; i++) {
		struct row *r = &s->rows[i];

		if (r->bucket < before) {
			say(s, SAID_SUM, r, 0, NULL);
			free(r->steps);
			r->steps = NULL;
		} else if (i != kept++) {
			s->rows[kept - 1] = *r;
		}
	}
	s->n = kept;
}

static void say_bytes(struct sums *s)
{
	for (uint32_t i = 0; i < s->n_bytes; i++) {
		const struct bytes *b = &s->bytes[i];
		struct said x = {.what = SAID_BYTES, .side = b->side, .who = b->who, .utc_ns = b->bucket * NSEC_PER_SEC};
		const char *text[SAID_TEXTS] = {b->protocol, b->service};

		memcpy(x.number, b->number, sizeof(x.number));
		saying_add(s->to, &x, text, NULL);
	}
	s->n_bytes = 0;
	memset(s->byte_slots, 0, sizeof(s->byte_slots));
}

static void say_singles(struct sums *s)
{
	for (uint32_t i = 0; i < s->n_failed; i++)
		say(s, SAID_SINGLE, &s->failed[i].row, SAID_FAILED, s->failed[i].trace);
	for (uint32_t i = 0; i < s->n_slow; i++)
		say(s, SAID_SINGLE, &s->slow[i].row, SAID_SLOW, s->slow[i].trace);
	for (uint32_t i = 0; i < s->n_sample; i++) {
		s->sample[i].row.number[SAID_WEIGHT] = (s->others + s->n_sample - 1) / s->n_sample;
		say(s, SAID_SINGLE, &s->sample[i].row, SAID_SAMPLE, s->sample[i].trace);
	}
	s->n_failed = s->n_slow = s->n_sample = 0;
	s->others = 0;
}

/* ---- rows ---- */

static uint32_t row_hash(const struct row *x)
{
	uint64_t h = hash_bytes(HASH_SEED, &x->who, sizeof(x->who));

	h = hash_str(hash_u64(hash_u64(h, (uint64_t)x->bucket), (uint64_t)(uintptr_t)x->operation), x->service);
	h = hash_u64(hash_str(h, x->status), (uint64_t)(uintptr_t)x->protocol);
	return (uint32_t)hash_u64(h, (uint64_t)x->side << 8 | x->result);
}

static bool row_same(const struct row *a, const struct row *b)
{
	return a->bucket == b->bucket && a->operation == b->operation && a->protocol == b->protocol && a->side == b->side && a->result == b->result &&
	       !memcmp(&a->who, &b->who, sizeof(a->who)) && !strcmp(a->service, b->service) && !strcmp(a->status, b->status);
}

static struct row *row_find(struct sums *s, const struct row *key)
{
	uint32_t at = row_hash(key) & (SLOTS - 1);

	for (; s->slots[at]; at = (at + 1) & (SLOTS - 1))
		if (row_same(&s->rows[s->slots[at] - 1], key))
			return &s->rows[s->slots[at] - 1];
	s->slots[at] = ++s->n;
	s->rows[s->n - 1] = *key;
	return &s->rows[s->n - 1];
}

/* Rows that were kept have new places. */
static void rows_again(struct sums *s)
{
	memset(s->slots, 0, sizeof(s->slots));
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = row_hash(&s->rows[i]) & (SLOTS - 1);

		while (s->slots[at])
			at = (at + 1) & (SLOTS - 1);
		s->slots[at] = i + 1;
	}
}

static void key_make(const struct sums *s, const struct sums_of *of, const struct proto_request *r, struct row *key)
{
	*key = (struct row){.bucket = bucket_of(s, r->begin_ns), .who = of->who, .protocol = r->protocol, .operation = r->operation, .side = of->side,
			    .result = (uint8_t)r->result};
	snprintf(key->service, sizeof(key->service), "%s", of->service);
	snprintf(key->status, sizeof(key->status), "%s", r->status);
}

/* ---- single ones ---- */

static struct single *slowest_place(struct sums *s, uint64_t ns)
{
	struct single *least = &s->slow[0];

	if (s->n_slow < SUMS_SLOW)
		return &s->slow[s->n_slow++];
	for (uint32_t i = 1; i < s->n_slow; i++)
		if (s->slow[i].row.number[SAID_WHOLE] < least->row.number[SAID_WHOLE])
			least = &s->slow[i];
	return least->row.number[SAID_WHOLE] < ns ? least : NULL;
}

/* Vitter's algorithm R: each of the others has the same chance. */
static struct single *sample_place(struct sums *s)
{
	uint64_t at;

	s->others++;
	if (s->n_sample < SUMS_SAMPLE)
		return &s->sample[s->n_sample++];
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	at = s->random % s->others;
	return at < SUMS_SAMPLE ? &s->sample[at] : NULL;
}

static struct single *failed_place(struct sums *s, const struct row *key)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < s->n_failed; i++)
		same += s->failed[i].row.operation == key->operation;
	return same < SUMS_FAILED_EACH && s->n_failed < SUMS_FAILED ? &s->failed[s->n_failed++] : NULL;
}

/* What was slow and had to make room for a slower one is one of the others. */
static void single_take(struct sums *s, const struct sums_of *of, const struct proto_request *r, const struct row *key, uint64_t ns)
{
	bool failed = r->result == PROTO_ERROR || r->result == PROTO_NO_ANSWER, answered = r->result == PROTO_OK || r->result == PROTO_ERROR;
	struct single x = {.row = *key}, *to;

	x.row.number[SAID_AT] = (uint64_t)(r->begin_ns + s->offset_ns);
	x.row.number[SAID_FIRST] = answered && r->first_ns > r->begin_ns ? (uint64_t)(r->first_ns - r->begin_ns) : 0;
	x.row.number[SAID_WHOLE] = ns;
	x.row.number[SAID_ASKED] = r->request_bytes;
	x.row.number[SAID_ANSWERED] = r->response_bytes;
	x.row.number[SAID_WEIGHT] = 1;
	x.row.number[SAID_TID] = of->tid;
	x.row.number[SAID_TAG] = of->side == STORE_SIDE_SERVER && of->alone ? (uint64_t)r->begin_ns : 0; /* as probes/l7_data.bpf.h makes it */
	snprintf(x.trace, sizeof(x.trace), "%s", r->trace ? r->trace : "");
	to = failed ? failed_place(s, key) : NULL;
	if (!to && answered && (to = slowest_place(s, ns))) {
		struct single out = *to;

		*to = x;
		if (!out.row.operation)
			return;
		x = out;
		to = NULL;
	}
	if (!to)
		to = sample_place(s);
	if (to)
		*to = x;
}

/* ---- what comes ---- */

void sums_request(struct sums *s, const struct sums_of *of, const struct proto_request *r)
{
	uint64_t ns = r->end_ns > r->begin_ns ? (uint64_t)(r->end_ns - r->begin_ns) : 0;
	struct row key, *x;

	key_make(s, of, r, &key);
	if (s->n == SUMS_ROWS)
		say_rows(s, INT64_MAX);
	x = row_find(s, &key);
	x->number[SAID_N]++;
	x->number[SAID_REQUEST_BYTES] += r->request_bytes;
	x->number[SAID_RESPONSE_BYTES] += r->response_bytes;
	if (r->result == PROTO_OK || r->result == PROTO_ERROR) {
		if (!x->steps)
			x->steps = mem_array(STORE_LATENCY_STEPS, sizeof(*x->steps));
		x->steps[store_latency_step(ns)]++;
		x->number[SAID_TOTAL] += ns;
		x->number[SAID_MAX] = ns > x->number[SAID_MAX] ? ns : x->number[SAID_MAX];
	}
	if (key.bucket > s->singles_bucket) {
		say_singles(s);
		memset(s->slow, 0, sizeof(s->slow));
		s->singles_bucket = key.bucket;
	}
	single_take(s, of, r, &key, ns);
}

void sums_bytes(struct sums *s, const struct sums_of *of, const char *protocol, int64_t at_ns, const uint64_t number[SAID_NUMBERS])
{
	struct bytes key = {.bucket = bucket_of(s, at_ns), .who = of->who, .side = of->side, .protocol = protocol}, *b = NULL;
	uint64_t h = hash_u64(hash_bytes(HASH_SEED, &of->who, sizeof(of->who)), (uint64_t)key.bucket);
	uint32_t at = (uint32_t)hash_str(hash_str(hash_u64(h, of->side), protocol), of->service) & (2 * SUMS_BYTES - 1);

	snprintf(key.service, sizeof(key.service), "%s", of->service);
	for (; s->byte_slots[at] && !b; at = (at + 1) & (2 * SUMS_BYTES - 1)) {
		struct bytes *x = &s->bytes[s->byte_slots[at] - 1];

		if (x->bucket == key.bucket && x->side == key.side && !memcmp(&x->who, &key.who, sizeof(x->who)) && !strcmp(x->protocol, protocol) &&
		    !strcmp(x->service, key.service))
			b = x;
	}
	if (!b) {
		s->byte_slots[at] = ++s->n_bytes;
		b = &s->bytes[s->n_bytes - 1];
		*b = key;
	}
	for (int i = 0; i < SAID_NUMBERS; i++)
		b->number[i] += number[i];
	if (s->n_bytes == SUMS_BYTES)
		say_bytes(s);
}

void sums_say(struct sums *s, int64_t now_ns)
{
	int64_t before = now_ns ? bucket_of(s, now_ns) : INT64_MAX;

	say_rows(s, before);
	rows_again(s);
	say_bytes(s);
	if (s->singles_bucket < before) {
		say_singles(s);
		memset(s->slow, 0, sizeof(s->slow));
	}
	saying_flush(s->to);
}
