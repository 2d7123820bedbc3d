/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/l7.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/requests.h"

#define SLOTS       (2 * SUMS_ROWS)
#define SERVICE_MAX 128

#define RECENT     64  /* a power of two */
#define EACH_SLOTS 128 /* a power of two, more than SUMS_EACH */

/* What the requests of one row have in common. */
struct key {
	int64_t bucket; /* seconds, UTC */
	struct msg_process process;
	const char *protocol, *operation; /* borrowed from the protocols */
	char service[SERVICE_MAX], status[PROTO_STATUS_MAX];
	uint8_t side, result;
};

struct part {
	uint64_t total_ns, max_ns;
	struct hist spread;
};

struct row {
	struct key key;
	uint64_t n, total_ns, max_ns, request_bytes, response_bytes;
	struct hist spread;
	struct part parts[REQUEST_PARTS]; /* by enum request_part - 1 */
};

struct single {
	struct key key;
	struct msg_single numbers; /* without head, about and why */
	char trace[64];
	struct link *kin; /* requests made while it was served; n_kin */
	uint32_t n_kin;
};

struct bytes {
	int64_t bucket;
	struct msg_process process;
	uint8_t side;
	const char *protocol;
	char service[SERVICE_MAX];
	struct byte_counts count;
};

struct sums {
	struct protocols *protocols;
	struct message_writer *to;
	int64_t bucket_s, offset_ns, singles_bucket;
	struct row rows[SUMS_ROWS];
	struct bytes bytes[SUMS_BYTES];
	uint32_t n, n_bytes, slots[SLOTS], byte_slots[2 * SUMS_BYTES]; /* index + 1 */
	struct links *links;
	struct idmap written; /* spans of this bucket's singles that are written */
	uint32_t n_linked;
	struct row *recent[RECENT]; /* a cache in front of `slots`; NULL: look there */
	struct single failed[SUMS_FAILED], slow[SUMS_SLOW], sample[SUMS_SAMPLE], each[SUMS_EACH];
	uint32_t n_failed, n_slow, n_sample, n_each;
	uint8_t each_at[EACH_SLOTS]; /* hashed by operation and side: index in `each` + 1 */
	uint64_t slow_ns;            /* each of `slow` took at least this long; 0: unknown */
	uint64_t others;             /* requests that the sample represents */
	uint64_t random;
	struct idmap named; /* names of named_bucket that are written */
	int64_t named_bucket;
	bool has_ring;
	struct single *ring; /* for the flight ring; n_ring; without kin */
	uint32_t n_ring, cap_ring, ring_second_n;
	int64_t ring_second; /* of it are ring_second_n */
};

struct sums *sums_new(struct protocols *p, struct message_writer *to, uint32_t bucket_s,
		      int64_t offset_ns)
{
	struct sums *s = mem_alloc(sizeof(*s));

	s->protocols = p;
	s->to = to;
	s->bucket_s = bucket_s;
	s->offset_ns = offset_ns;
	s->random = 0x2545f4914f6cdd1dull;
	s->links = links_new();
	return s;
}

static void kin_drop(struct single *x)
{
	for (uint32_t i = 0; i < x->n_kin; i++)
		link_release(&x->kin[i]);
	free(x->kin);
	x->kin = NULL;
	x->n_kin = 0;
}

static void kin_drop_all(struct sums *s)
{
	for (uint32_t i = 0; i < s->n_failed; i++)
		kin_drop(&s->failed[i]);
	for (uint32_t i = 0; i < s->n_slow; i++)
		kin_drop(&s->slow[i]);
	for (uint32_t i = 0; i < s->n_sample; i++)
		kin_drop(&s->sample[i]);
	for (uint32_t i = 0; i < s->n_each; i++)
		kin_drop(&s->each[i]);
}

static void spread_release(struct row *r)
{
	hist_release(&r->spread);
	for (int i = 0; i < REQUEST_PARTS; i++)
		hist_release(&r->parts[i].spread);
}

void sums_free(struct sums *s)
{
	if (!s)
		return;
	kin_drop_all(s);
	links_free(s->links);
	idmap_release(&s->written);
	for (uint32_t i = 0; i < s->n; i++)
		spread_release(&s->rows[i]);
	idmap_release(&s->named);
	free(s->ring);
	free(s);
}

void sums_ring(struct sums *s, bool on)
{
	s->has_ring = on;
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

/* ---- names ---- */

void sums_named(struct sums *s, const struct sums_of *of, const char *name, const char *address,
		int64_t at_ns)
{
	const struct message_tail tail = {.text = {[MSG_NAME] = name, [MSG_ADDRESS] = address}};
	int64_t bucket = bucket_of(s, at_ns);
	struct msg_named x = {.about = {.process = of->process,
					.utc_ns = bucket * NSEC_PER_SEC,
					.side = of->side}};
	uint64_t key =
		hash_str(hash_str(hash_u64(HASH_SEED,
					   of->process.start_ns ^ (uint64_t)of->process.tgid << 32),
				  name),
			 address);
	bool fresh;

	if (s->named_bucket != bucket)
		idmap_clear(&s->named);
	s->named_bucket = bucket;
	if (s->named.n >= SUMS_NAMED)
		return;
	idmap_ref(&s->named, key, &fresh);
	if (fresh)
		message_write(s->to, MSG_NAMED, &x, &tail);
}

/* ---- places of single requests ---- */

enum place { PLACE_FAILED, PLACE_SLOW, PLACE_EACH, PLACE_SAMPLE, PLACE_NONE };

static bool failed(uint8_t result)
{
	return result == PROTO_ERROR || result == PROTO_NO_ANSWER;
}

/* It has an earlier bucket's request, whose kin another place may own. */
static struct single *place_free(struct single *x)
{
	*x = (struct single){0};
	return x;
}

static struct single *slowest_place(struct sums *s, uint64_t ns)
{
	struct single *least = &s->slow[0];

	if (s->n_slow < SUMS_SLOW)
		return place_free(&s->slow[s->n_slow++]);
	if (ns <= s->slow_ns)
		return NULL;
	for (uint32_t i = 1; i < s->n_slow; i++)
		if (s->slow[i].numbers.total_ns < least->numbers.total_ns)
			least = &s->slow[i];
	s->slow_ns = least->numbers.total_ns;
	return s->slow_ns < ns ? least : NULL;
}

/* Vitter's algorithm R: each of the other requests has the same chance to be kept. */
static struct single *sample_place(struct sums *s)
{
	uint64_t at;

	s->others++;
	if (s->n_sample < SUMS_SAMPLE)
		return place_free(&s->sample[s->n_sample++]);
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	at = s->random % s->others;
	return at < SUMS_SAMPLE ? &s->sample[at] : NULL;
}

static struct single *failed_place(struct sums *s, const char *operation)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < s->n_failed; i++)
		same += s->failed[i].key.operation == operation;
	if (same == SUMS_FAILED_EACH || s->n_failed == SUMS_FAILED)
		return NULL;
	return place_free(&s->failed[s->n_failed++]);
}

/* The place of the slowest request of an operation, on one side. NULL: a slower one has it, or more
 * operations were seen than there are places. */
static struct single *each_place(struct sums *s, const char *protocol, const char *operation,
				 uint8_t side, uint64_t ns)
{
	uint32_t at = (uint32_t)hash_u64(HASH_SEED, (uint64_t)(uintptr_t)operation ^ side);
	struct single *x;

	for (at &= EACH_SLOTS - 1; s->each_at[at]; at = (at + 1) & (EACH_SLOTS - 1)) {
		x = &s->each[s->each_at[at] - 1];
		if (x->key.operation == operation && x->key.protocol == protocol &&
		    x->key.side == side)
			return x->numbers.total_ns < ns ? x : NULL;
	}
	if (s->n_each == SUMS_EACH)
		return NULL;
	s->each_at[at] = (uint8_t)++s->n_each;
	return place_free(&s->each[s->n_each - 1]);
}

static void single_put(struct single *to, const struct single *x)
{
	kin_drop(to);
	*to = *x;
}

/* An operation that is among the slowest of all needs no second place: the request in it becomes a
 * candidate for the sample. */
static void each_settle(struct sums *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n_each; i++) {
		struct single x = s->each[i], *place;
		bool stands = false;

		for (uint32_t k = 0; k < s->n_slow && !stands; k++)
			stands = s->slow[k].key.operation == x.key.operation &&
				 s->slow[k].key.protocol == x.key.protocol &&
				 s->slow[k].key.side == x.key.side;
		if (!stands)
			s->each[kept++] = x;
		else if ((place = sample_place(s)))
			single_put(place, &x);
		else
			kin_drop(&x);
	}
	s->n_each = kept;
}

/* ---- writing ---- */

static struct msg_about about_key(const struct key *k)
{
	return (struct msg_about){.process = k->process,
				  .utc_ns = k->bucket * NSEC_PER_SEC,
				  .side = k->side,
				  .result = k->result};
}

static struct message_tail tail_key(const struct sums *s, const struct key *k)
{
	return (struct message_tail){.text = {[MSG_PROTOCOL] = k->protocol,
					      [MSG_SERVICE] = k->service,
					      [MSG_OPERATION] = protocols_operation_now(
						      s->protocols, k->operation, k->protocol,
						      proto_service_port(k->service)),
					      [MSG_STATUS] = k->status}};
}

/* `room`: HIST_STEPS of them, for the tail to point at. */
static void tail_steps(struct message_tail *tail, const struct hist *h, uint32_t *room)
{
	for (uint32_t i = 0; i < h->n; i++)
		room[i] = h->count[i] < UINT32_MAX ? (uint32_t)h->count[i] : UINT32_MAX;
	tail->first_step = (uint16_t)(h->n ? h->first - HIST_FINE : 0);
	tail->n_steps = h->n;
	tail->steps = h->n ? room : NULL;
}

static void row_write(struct sums *s, struct row *r)
{
	struct message_tail tail = tail_key(s, &r->key);
	uint32_t steps[HIST_STEPS];
	struct msg_sum sum = {.about = about_key(&r->key),
			      .n = r->n,
			      .total_ns = r->total_ns,
			      .max_ns = r->max_ns,
			      .request_bytes = r->request_bytes,
			      .response_bytes = r->response_bytes};

	tail_steps(&tail, &r->spread, steps);
	message_write(s->to, MSG_SUM, &sum, &tail);
	for (uint8_t i = 0; i < REQUEST_PARTS; i++) {
		const struct part *p = &r->parts[i];
		struct msg_part part = {.about = sum.about,
					.n = hist_total(&p->spread),
					.total_ns = p->total_ns,
					.max_ns = p->max_ns,
					.part = i + 1};

		if (!p->spread.n)
			continue;
		tail_steps(&tail, &p->spread, steps);
		message_write(s->to, MSG_PART, &part, &tail);
	}
	spread_release(r);
}

static void rows_write(struct sums *s, int64_t before)
{
	uint32_t kept = 0;

	memset(s->slots, 0, sizeof(s->slots));
	for (uint32_t i = 0; i < s->n; i++) {
		struct row *r = &s->rows[i];

		if (r->key.bucket < before) {
			row_write(s, r);
		} else if (i != kept++) {
			s->rows[kept - 1] = *r;
		}
	}
	s->n = kept;
	memset(s->recent, 0, sizeof(s->recent));
}

static void bytes_write(struct sums *s)
{
	for (uint32_t i = 0; i < s->n_bytes; i++) {
		const struct bytes *b = &s->bytes[i];
		const struct message_tail tail = {
			.text = {[MSG_PROTOCOL] = b->protocol, [MSG_SERVICE] = b->service}};
		struct msg_bytes x = {.about = {.process = b->process,
						.utc_ns = b->bucket * NSEC_PER_SEC,
						.side = b->side},
				      .count = b->count};

		message_write(s->to, MSG_BYTES, &x, &tail);
	}
	s->n_bytes = 0;
	memset(s->byte_slots, 0, sizeof(s->byte_slots));
}

static void single_write(struct sums *s, const struct key *k, const struct msg_single *numbers,
			 const char *trace, enum single_why why)
{
	struct message_tail tail = tail_key(s, k);
	struct msg_single x = *numbers;

	x.about = about_key(k);
	if (why == SINGLE_RING)
		x.about.utc_ns = x.at_ns;
	x.why = (uint8_t)why;
	tail.text[MSG_TRACE] = trace;
	message_write(s->to, MSG_SINGLE, &x, &tail);
}

static void kept_write(struct sums *s, const struct single *x, enum single_why why)
{
	bool fresh;

	single_write(s, &x->key, &x->numbers, x->trace, why);
	*idmap_ref(&s->written, x->numbers.span, &fresh) = 1;
}

static uint64_t since(int64_t from_ns, int64_t to_ns)
{
	return to_ns > from_ns ? (uint64_t)(to_ns - from_ns) : 0;
}

static struct msg_single link_numbers(const struct sums *s, const struct link *x)
{
	return (struct msg_single){.at_ns = x->begin_ns + s->offset_ns,
				   .first_ns = since(x->begin_ns, x->first_ns),
				   .total_ns = since(x->begin_ns, x->end_ns),
				   .request_bytes = x->request_bytes,
				   .response_bytes = x->response_bytes,
				   .tag = x->tag,
				   .span = x->span,
				   .parent = x->parent,
				   .caller = x->caller,
				   .tid = x->tid,
				   .how = x->how};
}

/* Their weight is 0: they represent no other request. */
static void kin_write(struct sums *s, struct single *x)
{
	for (uint32_t i = 0; i < x->n_kin && s->n_linked < SUMS_LINKED; i++) {
		const struct link *l = &x->kin[i];
		struct key k = {.bucket = x->key.bucket,
				.process = l->process,
				.protocol = l->protocol,
				.operation = l->operation,
				.side = l->side,
				.result = l->result};
		struct msg_single numbers = link_numbers(s, l);
		bool fresh;

		idmap_ref(&s->written, l->span, &fresh);
		if (!fresh)
			continue;
		s->n_linked++;
		snprintf(k.service, sizeof(k.service), "%s", l->service);
		memcpy(k.status, l->status, sizeof(k.status));
		single_write(s, &k, &numbers, l->trace, SINGLE_LINKED);
	}
}

/* Those that are not written for another reason. */
static void ring_write(struct sums *s)
{
	uint64_t any;

	for (uint32_t i = 0; i < s->n_ring; i++) {
		const struct single *x = &s->ring[i];

		if (!idmap_get(&s->written, x->numbers.span, &any))
			single_write(s, &x->key, &x->numbers, x->trace, SINGLE_RING);
	}
	s->n_ring = 0;
}

/* Kin come last: a request that was also kept for itself is written with that reason. */
static void singles_write(struct sums *s)
{
	each_settle(s);
	for (uint32_t i = 0; i < s->n_failed; i++)
		kept_write(s, &s->failed[i], SINGLE_FAILED);
	for (uint32_t i = 0; i < s->n_slow; i++)
		kept_write(s, &s->slow[i], SINGLE_SLOW);
	for (uint32_t i = 0; i < s->n_each; i++)
		kept_write(s, &s->each[i],
			   failed(s->each[i].key.result) ? SINGLE_FAILED : SINGLE_SLOW);
	for (uint32_t i = 0; i < s->n_sample; i++) {
		s->sample[i].numbers.weight = (s->others + s->n_sample - 1) / s->n_sample;
		kept_write(s, &s->sample[i], SINGLE_SAMPLE);
	}
	for (uint32_t i = 0; i < s->n_slow; i++)
		kin_write(s, &s->slow[i]);
	for (uint32_t i = 0; i < s->n_failed; i++)
		kin_write(s, &s->failed[i]);
	for (uint32_t i = 0; i < s->n_each; i++)
		kin_write(s, &s->each[i]);
	for (uint32_t i = 0; i < s->n_sample; i++)
		kin_write(s, &s->sample[i]);
	ring_write(s);
	kin_drop_all(s);
	idmap_clear(&s->written);
	memset(s->each_at, 0, sizeof(s->each_at));
	s->n_failed = s->n_slow = s->n_sample = s->n_each = s->n_linked = 0;
	s->slow_ns = 0;
	s->others = 0;
}

/* ---- rows ---- */

static uint32_t key_hash(const struct key *x)
{
	uint64_t h = hash_bytes(HASH_SEED, &x->process, sizeof(x->process));

	h = hash_str(hash_u64(hash_u64(h, (uint64_t)x->bucket), (uint64_t)(uintptr_t)x->operation),
		     x->service);
	h = hash_u64(hash_str(h, x->status), (uint64_t)(uintptr_t)x->protocol);
	return (uint32_t)hash_u64(h, (uint64_t)x->side << 8 | x->result);
}

static bool key_same(const struct key *a, const struct key *b)
{
	return a->bucket == b->bucket && a->operation == b->operation &&
	       a->protocol == b->protocol && a->side == b->side && a->result == b->result &&
	       !memcmp(&a->process, &b->process, sizeof(a->process)) &&
	       !strcmp(a->service, b->service) && !strcmp(a->status, b->status);
}

static struct row *row_find(struct sums *s, const struct key *key)
{
	uint32_t at = key_hash(key) & (SLOTS - 1);

	for (; s->slots[at]; at = (at + 1) & (SLOTS - 1))
		if (key_same(&s->rows[s->slots[at] - 1].key, key))
			return &s->rows[s->slots[at] - 1];
	s->slots[at] = ++s->n;
	s->rows[s->n - 1] = (struct row){.key = *key};
	return &s->rows[s->n - 1];
}

/* rows_write moved the rows that it kept. */
static void rows_rehash(struct sums *s)
{
	memset(s->slots, 0, sizeof(s->slots));
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = key_hash(&s->rows[i].key) & (SLOTS - 1);

		while (s->slots[at])
			at = (at + 1) & (SLOTS - 1);
		s->slots[at] = i + 1;
	}
}

static void text_put(char *to, size_t room, const char *text)
{
	size_t n = strnlen(text, room - 1);

	memcpy(to, text, n);
	to[n] = '\0';
}

static void key_make(const struct sums *s, const struct sums_of *of, const struct proto_request *r,
		     struct key *key)
{
	*key = (struct key){.bucket = bucket_of(s, r->begin_ns),
			    .process = of->process,
			    .protocol = r->protocol,
			    .operation = r->operation,
			    .side = of->side,
			    .result = (uint8_t)r->result};
	text_put(key->service, sizeof(key->service), of->service);
	text_put(key->status, sizeof(key->status), r->status);
}

static bool key_matches(const struct key *x, int64_t bucket, const struct sums_of *of,
			const struct proto_request *r)
{
	return x->bucket == bucket && x->operation == r->operation && x->protocol == r->protocol &&
	       x->side == of->side && x->result == r->result &&
	       !memcmp(&x->process, &of->process, sizeof(x->process)) &&
	       !strncmp(x->service, of->service, sizeof(x->service) - 1) &&
	       !strncmp(x->status, r->status, sizeof(x->status) - 1);
}

/* The row of a request. A key is large: it is made only when the cache misses. */
static struct row *row_of(struct sums *s, const struct sums_of *of, const struct proto_request *r)
{
	int64_t bucket = bucket_of(s, r->begin_ns);
	struct row **recent = &s->recent[((uintptr_t)r->operation >> 4 ^ (uintptr_t)of->side << 3 ^
					  (uintptr_t)r->result) &
					 (RECENT - 1)];
	struct key key;

	if (*recent && key_matches(&(*recent)->key, bucket, of, r))
		return *recent;
	key_make(s, of, r, &key);
	if (s->n == SUMS_ROWS)
		rows_write(s, INT64_MAX);
	*recent = row_find(s, &key);
	return *recent;
}

/* ---- keeping single requests ---- */

static struct msg_single single_numbers(const struct sums *s, const struct proto_request *r,
					const struct link *l)
{
	bool answered = r->result == PROTO_OK || r->result == PROTO_ERROR;
	struct msg_single x = link_numbers(s, l);

	if (!answered)
		x.first_ns = 0;
	x.weight = 1;
	return x;
}

/* Partial: some of its kin are already forgotten, or were more than are kept. */
static void kin_take(const struct sums *s, struct single *x, const struct link *l)
{
	bool cut = false;

	x->kin = links_kin(s->links, l->span, &x->n_kin, &cut);
	if (cut || links_since(s->links) > l->begin_ns)
		x->numbers.partial = 1;
}

/* The place of a request: among those that failed, the slowest, the slowest of its operation, or
 * the sample, the first from `*kind` on that has room or holds a faster one. NULL: it is not kept.
 */
static struct single *place_find(struct sums *s, const char *protocol, const char *operation,
				 uint8_t side, uint8_t result, uint64_t ns, enum place *kind)
{
	bool answered = result == PROTO_OK || result == PROTO_ERROR;
	struct single *place = NULL;

	for (; !place && *kind < PLACE_NONE; ++*kind) {
		if (*kind == PLACE_FAILED && failed(result))
			place = failed_place(s, operation);
		else if (*kind == PLACE_SLOW && answered)
			place = slowest_place(s, ns);
		else if (*kind == PLACE_EACH)
			place = each_place(s, protocol, operation, side, ns);
		else if (*kind == PLACE_SAMPLE)
			place = sample_place(s);
	}
	return place;
}

/* A request that a slower one displaces looks for a place of the kinds after that one's. */
static void single_take(struct sums *s, const struct sums_of *of, const struct proto_request *r,
			const struct link *l)
{
	enum place kind = PLACE_FAILED;
	struct single *place = place_find(s, r->protocol, r->operation, of->side,
					  (uint8_t)r->result, since(r->begin_ns, r->end_ns), &kind);
	struct single x = {0}, out;

	if (!place)
		return;
	key_make(s, of, r, &x.key);
	x.numbers = single_numbers(s, r, l);
	text_put(x.trace, sizeof(x.trace), r->trace ? r->trace : "");
	kin_take(s, &x, l);
	while (place) {
		out = *place;
		*place = x;
		x = out;
		place = x.key.operation ? place_find(s, x.key.protocol, x.key.operation, x.key.side,
						     x.key.result, x.numbers.total_ns, &kind) :
					  NULL;
	}
	kin_drop(&x);
}

/* Of a second that has too many, the first ones. */
static void ring_take(struct sums *s, const struct sums_of *of, const struct proto_request *r,
		      const struct link *l)
{
	int64_t second = r->end_ns / NSEC_PER_SEC;
	struct single *x;

	if (second != s->ring_second)
		s->ring_second_n = 0;
	s->ring_second = second;
	if (s->ring_second_n == SUMS_RING || s->n_ring >= SUMS_RING * (uint64_t)s->bucket_s)
		return;
	s->ring_second_n++;
	mem_grow(s->ring, s->n_ring, s->cap_ring);
	x = &s->ring[s->n_ring++];
	*x = (struct single){.numbers = single_numbers(s, r, l)};
	x->numbers.weight = 0;
	key_make(s, of, r, &x->key);
	text_put(x->trace, sizeof(x->trace), r->trace ? r->trace : "");
}

/* ---- adding ---- */

static void link_make(const struct sums_of *of, const struct proto_request *r, struct link *l)
{
	bool server = of->side == STORE_SIDE_SERVER;
	uint64_t here = hash_u64(hash_u64(hash_bytes(HASH_SEED, &of->process, sizeof(of->process)),
					  (uint64_t)r->begin_ns),
				 r->begin_pos);

	*l = (struct link){.process = of->process,
			   .caller = r->caller,
			   .begin_ns = r->begin_ns,
			   .first_ns = r->first_ns,
			   .end_ns = r->end_ns,
			   .request_bytes = r->request_bytes,
			   .response_bytes = r->response_bytes,
			   .protocol = r->protocol,
			   .operation = r->operation,
			   .service = (char *)of->service,
			   .trace = (char *)r->trace,
			   .tid = of->tid,
			   .side = of->side,
			   .result = (uint8_t)r->result};
	text_put(l->status, sizeof(l->status), r->status);
	if (server) {
		l->tag = of->alone ? TABLES_TAG_OF(r->begin_ns) : 0; /* l7/data.bpf.h */
		l->span = of->alone ? link_span(&of->process, l->tag) :
				      link_id(hash_u64(here, of->exchange));
		l->parent = of->exchange;
		l->how = of->exchange ? LINK_BY_BYTES : LINK_NONE;
	} else {
		l->span = of->exchange ? of->exchange : link_id(here);
		l->parent = of->tag ? link_span(&of->process, of->tag) : 0;
		l->how = of->how;
	}
}

static void spread_add(struct hist *h, uint64_t ns)
{
	hist_add(h, hist_slot(ns), &(uint32_t){1}, 1);
}

static void part_add(struct row *x, enum request_part part, int64_t from_ns, int64_t to_ns)
{
	struct part *p = &x->parts[part - 1];
	uint64_t ns = since(from_ns, to_ns);

	if (!from_ns || !to_ns)
		return;
	spread_add(&p->spread, ns);
	p->total_ns += ns;
	p->max_ns = ns > p->max_ns ? ns : p->max_ns;
}

static void duration_add(struct row *x, const struct sums_of *of, const struct proto_request *r)
{
	uint64_t ns = since(r->begin_ns, r->end_ns);

	if (of->side == STORE_SIDE_SERVER)
		part_add(x, PART_QUEUED, r->came_ns, r->begin_ns);
	if (r->result != PROTO_OK && r->result != PROTO_ERROR)
		return;
	spread_add(&x->spread, ns);
	x->total_ns += ns;
	x->max_ns = ns > x->max_ns ? ns : x->max_ns;
	part_add(x, PART_TO_FIRST, r->begin_ns, r->first_ns);
}

void sums_request(struct sums *s, const struct sums_of *of, const struct proto_request *r)
{
	struct row *x = row_of(s, of, r);
	struct link l;

	x->n++;
	x->request_bytes += r->request_bytes;
	x->response_bytes += r->response_bytes;
	duration_add(x, of, r);
	if (x->key.bucket > s->singles_bucket) {
		singles_write(s);
		s->singles_bucket = x->key.bucket;
	}
	link_make(of, r, &l);
	single_take(s, of, r, &l);
	if (s->has_ring)
		ring_take(s, of, r, &l);
	if (of->linked && l.parent)
		links_put(s->links, &l);
}

void sums_bytes(struct sums *s, const struct sums_of *of, const char *protocol, int64_t at_ns,
		const struct byte_counts *more)
{
	struct bytes key = {.bucket = bucket_of(s, at_ns),
			    .process = of->process,
			    .side = of->side,
			    .protocol = protocol},
		     *b = NULL;
	uint64_t h = hash_u64(hash_bytes(HASH_SEED, &of->process, sizeof(of->process)),
			      (uint64_t)key.bucket);
	uint32_t at = (uint32_t)hash_str(hash_str(hash_u64(h, of->side), protocol), of->service) &
		      (2 * SUMS_BYTES - 1);

	snprintf(key.service, sizeof(key.service), "%s", of->service);
	for (; s->byte_slots[at] && !b; at = (at + 1) & (2 * SUMS_BYTES - 1)) {
		struct bytes *x = &s->bytes[s->byte_slots[at] - 1];

		if (x->bucket == key.bucket && x->side == key.side &&
		    !memcmp(&x->process, &key.process, sizeof(x->process)) &&
		    !strcmp(x->protocol, protocol) && !strcmp(x->service, key.service))
			b = x;
	}
	if (!b) {
		s->byte_slots[at] = ++s->n_bytes;
		b = &s->bytes[s->n_bytes - 1];
		*b = key;
	}
	b->count.seen += more->seen;
	b->count.parsed += more->parsed;
	b->count.skipped += more->skipped;
	b->count.blind += more->blind;
	b->count.blind_requests += more->blind_requests;
	if (s->n_bytes == SUMS_BYTES)
		bytes_write(s);
}

void sums_write(struct sums *s, int64_t now_ns)
{
	int64_t before = now_ns ? bucket_of(s, now_ns) : INT64_MAX;

	rows_write(s, before);
	rows_rehash(s);
	bytes_write(s);
	if (s->singles_bucket < before)
		singles_write(s);
	message_flush(s->to);
}
