// SPDX-License-Identifier: Apache-2.0
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

#define LATELY 64 /* a power of two */

struct row {
	int64_t bucket; /* seconds, utc */
	struct said_who who;
	const char *protocol, *operation; /* the protocols' */
	char service[SERVICE_MAX], status[PROTO_STATUS_MAX];
	uint8_t side, result;
	uint64_t number[SAID_NUMBERS];
	struct hist spread[1 + SAID_PARTS]; /* whole, and the parts; of these: */
	uint64_t part_ns[SAID_PARTS], part_max[SAID_PARTS];
};

struct single {
	struct row row; /* number: as of SAID_SINGLE */
	char trace[64];
	uint16_t flags;   /* of said */
	struct link *kin; /* what was asked for it; n_kin */
	uint32_t n_kin;
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
	struct links *links;
	struct idmap said; /* spans of this bucket that are said */
	uint32_t n_linked;
	struct row *lately[LATELY]; /* where requests as these were counted; NULL: look */
	struct single failed[SUMS_FAILED], slow[SUMS_SLOW], sample[SUMS_SAMPLE];
	uint32_t n_failed, n_slow, n_sample;
	uint64_t slow_ns; /* all of `slow` took this long or longer; 0: not known */
	uint64_t others;  /* that the sample stands for */
	uint64_t random;
	struct idmap named; /* that were said, of the bucket named_bucket */
	int64_t named_bucket;
};

struct sums *sums_new(struct protocols *p, struct saying *to, uint32_t bucket_s, int64_t offset_ns)
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
}

static void spread_release(struct row *r)
{
	for (int i = 0; i <= SAID_PARTS; i++)
		hist_release(&r->spread[i]);
}

void sums_free(struct sums *s)
{
	if (!s)
		return;
	kin_drop_all(s);
	links_free(s->links);
	idmap_release(&s->said);
	for (uint32_t i = 0; i < s->n; i++)
		spread_release(&s->rows[i]);
	idmap_release(&s->named);
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

/* ---- names ---- */

void sums_named(struct sums *s, const struct sums_of *of, const char *name, const char *address,
		int64_t at_ns)
{
	struct said x = {.what = SAID_NAMED, .side = of->side, .who = of->who};
	const char *text[SAID_TEXTS] = {[SAID_SERVICE] = address, [SAID_OPERATION] = name};
	uint64_t key = hash_str(
		hash_str(hash_u64(HASH_SEED, of->who.start_ns ^ (uint64_t)of->who.tgid << 32),
			 name),
		address);
	int64_t bucket = bucket_of(s, at_ns);
	bool fresh;

	if (s->named_bucket != bucket)
		idmap_clear(&s->named);
	s->named_bucket = bucket;
	if (s->named.n >= SUMS_NAMED)
		return;
	idmap_ref(&s->named, key, &fresh);
	x.utc_ns = bucket * NSEC_PER_SEC;
	if (fresh)
		saying_add(s->to, &x, text, NULL);
}

/* ---- saying ---- */

static void say(struct sums *s, uint8_t what, const struct row *r, uint8_t why, const char *trace,
		uint16_t flags)
{
	struct said x = {.what = what,
			 .side = r->side,
			 .result = r->result,
			 .why = why,
			 .flags = flags,
			 .who = r->who,
			 .utc_ns = r->bucket * NSEC_PER_SEC};
	const char *text[SAID_TEXTS] = {r->protocol, r->service,
					protocols_operation_now(s->protocols, r->operation,
								r->protocol,
								proto_service_port(r->service)),
					r->status, trace};
	const struct hist *h = &r->spread[what == SAID_PART ? why : 0];
	uint32_t steps[HIST_STEPS];

	memcpy(x.number, r->number, sizeof(x.number));
	if (what == SAID_PART) {
		memset(x.number, 0, sizeof(x.number));
		x.number[SAID_N] = hist_total(h);
		x.number[SAID_TOTAL] = r->part_ns[why - 1];
		x.number[SAID_MAX] = r->part_max[why - 1];
	}
	x.first_step = (uint16_t)(h->n ? h->first - HIST_FINE : 0);
	x.n_steps = h->n;
	for (uint32_t i = 0; i < h->n; i++)
		steps[i] = h->count[i] < UINT32_MAX ? (uint32_t)h->count[i] : UINT32_MAX;
	saying_add(s->to, &x, text, h->n ? steps : NULL);
}

static void say_row(struct sums *s, struct row *r)
{
	say(s, SAID_SUM, r, 0, NULL, 0);
	for (uint8_t part = 1; part <= SAID_PARTS; part++)
		if (r->spread[part].n)
			say(s, SAID_PART, r, part, NULL, 0);
	spread_release(r);
}

static void say_rows(struct sums *s, int64_t before)
{
	uint32_t kept = 0;

	memset(s->slots, 0, sizeof(s->slots));
	for (uint32_t i = 0; i < s->n; i++) {
		struct row *r = &s->rows[i];

		if (r->bucket < before) {
			say_row(s, r);
		} else if (i != kept++) {
			s->rows[kept - 1] = *r;
		}
	}
	s->n = kept;
	memset(s->lately, 0, sizeof(s->lately));
}

static void say_bytes(struct sums *s)
{
	for (uint32_t i = 0; i < s->n_bytes; i++) {
		const struct bytes *b = &s->bytes[i];
		struct said x = {.what = SAID_BYTES,
				 .side = b->side,
				 .who = b->who,
				 .utc_ns = b->bucket * NSEC_PER_SEC};
		const char *text[SAID_TEXTS] = {b->protocol, b->service};

		memcpy(x.number, b->number, sizeof(x.number));
		saying_add(s->to, &x, text, NULL);
	}
	s->n_bytes = 0;
	memset(s->byte_slots, 0, sizeof(s->byte_slots));
}

static void say_single(struct sums *s, const struct single *x, uint8_t why)
{
	bool fresh;

	say(s, SAID_SINGLE, &x->row, why, x->trace, x->flags);
	*idmap_ref(&s->said, x->row.number[SAID_SPAN], &fresh) = 1;
}

static void numbers_of(const struct sums *s, const struct link *x, uint64_t number[SAID_NUMBERS])
{
	number[SAID_AT] = (uint64_t)(x->begin_ns + s->offset_ns);
	number[SAID_FIRST] = x->first_ns > x->begin_ns ? (uint64_t)(x->first_ns - x->begin_ns) : 0;
	number[SAID_WHOLE] = x->end_ns > x->begin_ns ? (uint64_t)(x->end_ns - x->begin_ns) : 0;
	number[SAID_ASKED] = x->asked;
	number[SAID_ANSWERED] = x->answered;
	number[SAID_TID] = x->tid;
	number[SAID_SPAN] = x->span;
	number[SAID_PARENT] = x->parent;
	number[SAID_CALLER] = x->caller;
}

/* They stand for no other one. */
static void say_kin(struct sums *s, struct single *x)
{
	for (uint32_t i = 0; i < x->n_kin && s->n_linked < SUMS_LINKED; i++) {
		const struct link *l = &x->kin[i];
		struct row r = {.bucket = x->row.bucket,
				.who = l->who,
				.protocol = l->protocol,
				.operation = l->operation,
				.side = l->side,
				.result = l->result};
		bool fresh;

		idmap_ref(&s->said, l->span, &fresh);
		if (!fresh)
			continue;
		s->n_linked++;
		snprintf(r.service, sizeof(r.service), "%s", l->service);
		memcpy(r.status, l->status, sizeof(r.status));
		numbers_of(s, l, r.number);
		say(s, SAID_SINGLE, &r, SAID_LINKED, l->trace, l->how);
	}
}

/* All before what was asked for them: of what is both, the reason that it has by itself holds. */
static void say_singles(struct sums *s)
{
	for (uint32_t i = 0; i < s->n_failed; i++)
		say_single(s, &s->failed[i], SAID_FAILED);
	for (uint32_t i = 0; i < s->n_slow; i++)
		say_single(s, &s->slow[i], SAID_SLOW);
	for (uint32_t i = 0; i < s->n_sample; i++) {
		s->sample[i].row.number[SAID_WEIGHT] = (s->others + s->n_sample - 1) / s->n_sample;
		say_single(s, &s->sample[i], SAID_SAMPLE);
	}
	for (uint32_t i = 0; i < s->n_slow; i++)
		say_kin(s, &s->slow[i]);
	for (uint32_t i = 0; i < s->n_failed; i++)
		say_kin(s, &s->failed[i]);
	for (uint32_t i = 0; i < s->n_sample; i++)
		say_kin(s, &s->sample[i]);
	kin_drop_all(s);
	idmap_clear(&s->said);
	s->n_failed = s->n_slow = s->n_sample = s->n_linked = 0;
	s->slow_ns = 0;
	s->others = 0;
}

/* ---- rows ---- */

static uint32_t row_hash(const struct row *x)
{
	uint64_t h = hash_bytes(HASH_SEED, &x->who, sizeof(x->who));

	h = hash_str(hash_u64(hash_u64(h, (uint64_t)x->bucket), (uint64_t)(uintptr_t)x->operation),
		     x->service);
	h = hash_u64(hash_str(h, x->status), (uint64_t)(uintptr_t)x->protocol);
	return (uint32_t)hash_u64(h, (uint64_t)x->side << 8 | x->result);
}

static bool row_same(const struct row *a, const struct row *b)
{
	return a->bucket == b->bucket && a->operation == b->operation &&
	       a->protocol == b->protocol && a->side == b->side && a->result == b->result &&
	       !memcmp(&a->who, &b->who, sizeof(a->who)) && !strcmp(a->service, b->service) &&
	       !strcmp(a->status, b->status);
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

static void text_put(char *to, size_t room, const char *text)
{
	size_t n = strnlen(text, room - 1);

	memcpy(to, text, n);
	to[n] = '\0';
}

static void key_make(const struct sums *s, const struct sums_of *of, const struct proto_request *r,
		     struct row *key)
{
	*key = (struct row){.bucket = bucket_of(s, r->begin_ns),
			    .who = of->who,
			    .protocol = r->protocol,
			    .operation = r->operation,
			    .side = of->side,
			    .result = (uint8_t)r->result};
	text_put(key->service, sizeof(key->service), of->service);
	text_put(key->status, sizeof(key->status), r->status);
}

static bool row_is(const struct row *x, int64_t bucket, const struct sums_of *of,
		   const struct proto_request *r)
{
	return x->bucket == bucket && x->operation == r->operation && x->protocol == r->protocol &&
	       x->side == of->side && x->result == r->result &&
	       !memcmp(&x->who, &of->who, sizeof(x->who)) &&
	       !strncmp(x->service, of->service, sizeof(x->service) - 1) &&
	       !strncmp(x->status, r->status, sizeof(x->status) - 1);
}

/* A row is large: it is made and looked for where none of a request like this one was met lately.
 */
static struct row *row_of(struct sums *s, const struct sums_of *of, const struct proto_request *r)
{
	int64_t bucket = bucket_of(s, r->begin_ns);
	struct row **lately = &s->lately[((uintptr_t)r->operation >> 4 ^ (uintptr_t)of->side << 3 ^
					  (uintptr_t)r->result) &
					 (LATELY - 1)];
	struct row key;

	if (*lately && row_is(*lately, bucket, of, r))
		return *lately;
	key_make(s, of, r, &key);
	if (s->n == SUMS_ROWS)
		say_rows(s, INT64_MAX);
	*lately = row_find(s, &key);
	return *lately;
}

/* ---- single ones ---- */

static struct single *slowest_place(struct sums *s, uint64_t ns)
{
	struct single *least = &s->slow[0];

	if (s->n_slow < SUMS_SLOW)
		return &s->slow[s->n_slow++];
	if (ns <= s->slow_ns)
		return NULL;
	for (uint32_t i = 1; i < s->n_slow; i++)
		if (s->slow[i].row.number[SAID_WHOLE] < least->row.number[SAID_WHOLE])
			least = &s->slow[i];
	s->slow_ns = least->row.number[SAID_WHOLE];
	return s->slow_ns < ns ? least : NULL;
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

static struct single *failed_place(struct sums *s, const char *operation)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < s->n_failed; i++)
		same += s->failed[i].row.operation == operation;
	return same < SUMS_FAILED_EACH && s->n_failed < SUMS_FAILED ? &s->failed[s->n_failed++] :
								      NULL;
}

static void single_numbers(const struct sums *s, const struct sums_of *of,
			   const struct proto_request *r, const struct link *l,
			   uint64_t number[SAID_NUMBERS])
{
	bool answered = r->result == PROTO_OK || r->result == PROTO_ERROR;

	numbers_of(s, l, number);
	if (!answered)
		number[SAID_FIRST] = 0;
	number[SAID_WEIGHT] = 1;
	number[SAID_TAG] = of->side == STORE_SIDE_SERVER && of->alone ?
				   TABLES_TAG_OF(r->begin_ns) :
				   0; /* as probes/l7_data.bpf.h makes it */
}

/* With what was asked for it. SAID_PARTIAL: what was there once may be forgotten, or was too much.
 */
static void kin_take(const struct sums *s, struct single *x, const struct link *l)
{
	bool cut = false;

	x->kin = links_kin(s->links, l->span, &x->n_kin, &cut);
	if (cut || links_since(s->links) > l->begin_ns)
		x->flags |= SAID_PARTIAL;
}

static void single_put(struct single *to, const struct single *x)
{
	kin_drop(to);
	*to = *x;
}

/* What was slow and had to make room for a slower one is one of the others. */
static void single_take(struct sums *s, const struct sums_of *of, const struct proto_request *r,
			const struct link *l)
{
	bool failed = r->result == PROTO_ERROR || r->result == PROTO_NO_ANSWER,
	     answered = r->result == PROTO_OK || r->result == PROTO_ERROR;
	struct single *place = failed ? failed_place(s, r->operation) : NULL, *slow = NULL,
		      x = {.flags = l->how}, out;

	if (!place && answered)
		slow = slowest_place(
			s, r->end_ns > r->begin_ns ? (uint64_t)(r->end_ns - r->begin_ns) : 0);
	if (!place && !slow)
		place = sample_place(s);
	if (!place && !slow)
		return;
	key_make(s, of, r, &x.row);
	single_numbers(s, of, r, l, x.row.number);
	text_put(x.trace, sizeof(x.trace), r->trace ? r->trace : "");
	kin_take(s, &x, l);
	if (slow) {
		out = *slow;
		*slow = x;
		if (!out.row.operation)
			return;
		x = out;
		place = sample_place(s);
	}
	if (place)
		single_put(place, &x);
	else
		kin_drop(&x);
}

/* ---- what comes ---- */

static void link_make(const struct sums_of *of, const struct proto_request *r, struct link *l)
{
	bool server = of->side == STORE_SIDE_SERVER;
	uint64_t here = hash_u64(
		hash_u64(hash_bytes(HASH_SEED, &of->who, sizeof(of->who)), (uint64_t)r->begin_ns),
		r->begin_pos);

	*l = (struct link){.who = of->who,
			   .caller = r->caller,
			   .begin_ns = r->begin_ns,
			   .first_ns = r->first_ns,
			   .end_ns = r->end_ns,
			   .asked = r->request_bytes,
			   .answered = r->response_bytes,
			   .protocol = r->protocol,
			   .operation = r->operation,
			   .service = (char *)of->service,
			   .trace = (char *)r->trace,
			   .tid = of->tid,
			   .side = of->side,
			   .result = (uint8_t)r->result};
	text_put(l->status, sizeof(l->status), r->status);
	if (server) {
		l->span = of->alone ? link_span(&of->who, TABLES_TAG_OF(r->begin_ns)) :
				      link_id(hash_u64(here, of->exchange));
		l->parent = of->exchange;
		l->how = of->exchange ? SAID_BY_BYTES : SAID_NO_LINK;
	} else {
		l->span = of->exchange ? of->exchange : link_id(here);
		l->parent = of->tag ? link_span(&of->who, of->tag) : 0;
		l->how = of->tag ? of->how : SAID_NO_LINK;
	}
}

static void spread_add(struct hist *h, uint64_t ns)
{
	hist_add(h, hist_slot(ns), &(uint32_t){1}, 1);
}

static void part_add(struct row *x, enum said_part part, int64_t from_ns, int64_t to_ns)
{
	uint64_t ns = to_ns > from_ns ? (uint64_t)(to_ns - from_ns) : 0;

	if (!from_ns || !to_ns)
		return;
	spread_add(&x->spread[part], ns);
	x->part_ns[part - 1] += ns;
	x->part_max[part - 1] = ns > x->part_max[part - 1] ? ns : x->part_max[part - 1];
}

static void took_add(struct row *x, const struct sums_of *of, const struct proto_request *r)
{
	uint64_t ns = r->end_ns > r->begin_ns ? (uint64_t)(r->end_ns - r->begin_ns) : 0;

	if (of->side == STORE_SIDE_SERVER)
		part_add(x, SAID_QUEUED, r->came_ns, r->begin_ns);
	if (r->result != PROTO_OK && r->result != PROTO_ERROR)
		return;
	spread_add(&x->spread[0], ns);
	x->number[SAID_TOTAL] += ns;
	x->number[SAID_MAX] = ns > x->number[SAID_MAX] ? ns : x->number[SAID_MAX];
	part_add(x, SAID_TO_FIRST, r->begin_ns, r->first_ns);
}

void sums_request(struct sums *s, const struct sums_of *of, const struct proto_request *r)
{
	struct row *x = row_of(s, of, r);
	struct link l;

	x->number[SAID_N]++;
	x->number[SAID_REQUEST_BYTES] += r->request_bytes;
	x->number[SAID_RESPONSE_BYTES] += r->response_bytes;
	took_add(x, of, r);
	if (x->bucket > s->singles_bucket) {
		say_singles(s);
		memset(s->slow, 0, sizeof(s->slow));
		s->singles_bucket = x->bucket;
	}
	link_make(of, r, &l);
	single_take(s, of, r, &l);
	if (of->linked && l.parent)
		links_put(s->links, &l);
}

void sums_bytes(struct sums *s, const struct sums_of *of, const char *protocol, int64_t at_ns,
		const uint64_t number[SAID_NUMBERS])
{
	struct bytes key = {.bucket = bucket_of(s, at_ns),
			    .who = of->who,
			    .side = of->side,
			    .protocol = protocol},
		     *b = NULL;
	uint64_t h =
		hash_u64(hash_bytes(HASH_SEED, &of->who, sizeof(of->who)), (uint64_t)key.bucket);
	uint32_t at = (uint32_t)hash_str(hash_str(hash_u64(h, of->side), protocol), of->service) &
		      (2 * SUMS_BYTES - 1);

	snprintf(key.service, sizeof(key.service), "%s", of->service);
	for (; s->byte_slots[at] && !b; at = (at + 1) & (2 * SUMS_BYTES - 1)) {
		struct bytes *x = &s->bytes[s->byte_slots[at] - 1];

		if (x->bucket == key.bucket && x->side == key.side &&
		    !memcmp(&x->who, &key.who, sizeof(x->who)) && !strcmp(x->protocol, protocol) &&
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
